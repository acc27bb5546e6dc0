"""plan-bits.py -- Python of tests/plan-bits.t"""

import csv
import itertools
import re
import shutil

import h5py
import numpy as np

from lib.h5 import copied, create


def one_history(a, b):
    """twin-B: file b with the commands of file a."""
    shutil.copy(b, "twin-" + b)
    with h5py.File(a) as f, h5py.File("twin-" + b, "r+") as g:
        for key in [k for k in g.attrs if k.startswith("history")]:
            del g.attrs[key]
        for key in [k for k in f.attrs if k.startswith("history")]:
            g.attrs[key] = f.attrs[key]


def without_history(*names):
    """hand-NAME: the files without attributes of commands."""
    for name in names:
        shutil.copy(name, "hand-" + name)
        with h5py.File("hand-" + name, "r+") as f:
            for key in [k for k in f.attrs if k.startswith("history")]:
                del f.attrs[key]


def make():
    r = np.random.default_rng(1)
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 60, 600).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61


def stored(path):
    with h5py.File(path) as f:
        return [s.decode() for s in f["unit"][()]], f["size"][()], f["kl"][()]


def replaced(model, source, layer, target):
    """The model with one weight of another file."""
    with copied(model, target) as f, h5py.File(source) as g:
        f[layer + "/weight"][()] = g[layer + "/weight"][()]


def signs(model, target):
    """The model with signs of the inputs of all layers, which its weights undo."""
    rng = np.random.default_rng(3)
    with copied(model, target) as f:
        for b in f["model/layers"].values():
            for names in (("q", "k", "v"), ("o",), ("gate", "up"), ("down",)):
                group = b["self_attn" if names[0] in "qo" else "mlp"]
                s = rng.choice([-1, 1], group[names[0] + "_proj/weight"].shape[1]).astype("i1")
                for name in names:
                    g = group[name + "_proj"]
                    g["weight"][()] = g["weight"][()] * s
                    g["input_signs"] = s


def kl(path, unit, candidate):
    print("%.6g" % stored(path)[2][int(unit), int(candidate)])


def projections(model):
    """The numbers of weights of the layers of all blocks."""
    with h5py.File(model) as f:
        return sum(d.size for b in f["model/layers"].values() for g in ("mlp", "self_attn")
                   for d in (p["weight"] for p in b[g].values()))


def chosen(plan):
    """The candidates of the lines of a plan, by the file in the comment."""
    lines = [s for s in open(plan) if not s.startswith("#")]
    assert lines.pop(0) == "* keep\n"
    return [["q2.h5", "q3.h5", "q5.h5"].index(re.search(r"# (q.\.h5)", s)[1]) for s in lines]


def least(size, kl, budget):
    """The least sum of KL: all choices of one half of the units, with the best of the other half."""
    n = len(size) // 2 or 1

    def sums(part):
        every = itertools.product(range(size.shape[1]), repeat=len(part))
        index = np.array(list(every), dtype=int).reshape(-1, len(part))
        return size[part, index].sum(1), kl[part, index].sum(1)

    a, ka = sums(np.arange(n))
    b, kb = sums(np.arange(n, len(size)))
    order = np.argsort(b, kind="stable")
    b, kb = b[order], np.minimum.accumulate(kb[order])
    at = np.searchsorted(b, budget - a, side="right") - 1
    return (ka + np.where(at < 0, np.inf, kb[at])).min()


def best(model, path, plan, bits):
    _, size, kl = stored(path)
    weights = projections(model)
    budget = int(float(bits) * weights)
    choice = chosen(plan)
    i = np.arange(len(choice))
    assert len(choice) == len(size)
    assert size[i, choice].sum() <= budget
    np.testing.assert_allclose(kl[i, choice].sum(), least(size, kl, budget), rtol=1e-12)
    said = open(plan).read()
    assert "; optimal\n" in said
    np.testing.assert_allclose(float(re.search(r"KL (\S+) predicted", said)[1]), kl[i, choice].sum(), rtol=1e-3)
    said = float(re.search(r"(\S+) bits per weight", said)[1])
    np.testing.assert_allclose(said, size[i, choice].sum() / weights, rtol=1e-4)


def scaled(layers, path, *diffs):
    names, _, kl = stored(layers)
    other, _, got = stored(path)
    assert names == other
    rows = [csv.DictReader(open(d), delimiter="\t") for d in diffs]
    error = np.array([[float(r["output_error"]) for r in c if r["tensor"] in names] for c in rows]).T
    np.testing.assert_array_equal(got[:, 0], kl[:, 0])
    np.testing.assert_allclose(got, kl[:, :1] * error / error[:, :1], rtol=1e-4)  # printed with six digits


def blocks(path):
    with h5py.File(path) as f:
        print(sum("experts" in b["mlp"] for b in f["model/layers"].values()))


def tie(model, out):
    """The model with its embedding as head."""
    shutil.copyfile(model, out)
    with h5py.File(out, "r+") as f:
        del f["lm_head/weight"]
        f["lm_head/weight"] = f["model/embed_tokens/weight"]


def size(model, bits):
    """Bytes: the weights of the units with so many bits, and all other numbers of the model."""
    rest = 0

    def add(name, d):
        nonlocal rest
        planned = re.match(r"model/layers/\d+/.*_proj/weight$", name)
        if isinstance(d, h5py.Dataset) and d.ndim and not planned:
            rest += d.size * d.dtype.itemsize

    with h5py.File(model) as f:
        f.visititems(add)
    print(int(rest + float(bits) * projections(model) / 8 + 1e-9))


def bad():
    with copied("costs.h5", "bad.h5") as f:
        f["kl"][0, 0] = np.nan
    with copied("costs.h5", "other.h5") as f:
        f["size"][0, 0] += 1
    with copied("costs.h5", "bare.h5") as f:
        del f["lines"]
    with copied("costs.h5", "short.h5") as f:
        text = f["lines"][()].decode()
        del f["lines"]
        f["lines"] = text[: text.rindex("\n\n")]
    with copied("costs.h5", "none.h5") as f:
        for name in ("kl", "size"):
            shape = f[name].shape
            dtype = f[name].dtype
            del f[name]
            f.create_dataset(name, (shape[0], 0), dtype)
    with copied("costs.h5", "more.h5") as f:
        text = f["lines"][()].decode()
        del f["lines"]
        f["lines"] = text + text
    with copied("q3.h5", "less.h5") as f:
        del f["model/layers/1/mlp/up_proj"]
    with copied("q3.h5", "split.h5") as f:
        g = f["model/layers/1/mlp/down_proj"]
        g["split_index"] = np.array([3], "i4")
        g["split_weight"] = np.zeros((g["codes"].shape[0], 1), "f2")
    with copied("q3.h5", "modality.h5") as f:
        g = f["model/layers/1/mlp/down_proj"]
        g["act_scale"] = np.array([1, 1], "f4")
        g.attrs["act_mode"], g.attrs["act_format"] = "static-modality", "int8"
