"""places.py -- Python of tests/places.t"""

import h5py
import numpy as np

from lib.h5 import copied, create, numbers


def tokens(path, ids, add_bos=1, **more):
    with create(path, "tokens") as f:
        d = f.create_dataset("tokens", data=np.array(ids, "i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, add_bos, 61
        f["bytes"] = np.full(len(ids), 3, "u2")
        for name, data in more.items():
            f[name] = data


def make():
    r = np.random.default_rng(3)
    ids, ends = r.integers(3, 61, 90), [0, 20, 27, 28, 60, 90]

    tokens("all.h5", ids, sequence=np.array(ends, "i8"))
    for i, (a, b) in enumerate(zip(ends, ends[1:])):
        tokens(f"part{i}.h5", ids[a:b], sequence=np.array([0, b - a], "i8"))
    # visual tokens first, then text, each in order (AIFS); positions are stored, or follow from the index
    visual = (np.arange(90) // 7 % 2).astype("u1")
    order = np.concatenate([a + np.argsort(1 - visual[a:b], kind="stable") for a, b in zip(ends, ends[1:])])
    place = np.concatenate([np.arange(b - a) for a, b in zip(ends, ends[1:])]).astype("i4")
    tokens(
        "reordered.h5",
        ids[order],
        sequence=np.array(ends, "i8"),
        index=place[order],
        position=place[order],
        modality=visual[order],
    )
    tokens("by-index.h5", ids[order], sequence=np.array(ends, "i8"), index=place[order])
    tokens("positions.h5", ids, sequence=np.array(ends, "i8"), position=place)
    tokens("elsewhere.h5", ids, sequence=np.array(ends, "i8"), position=place[::-1].copy())
    for m in (0, 1):
        tokens(f"modality{m}.h5", ids, 0, sequence=np.array(ends, "i8"), modality=np.full(90, m, "u1"))
    tokens("text.h5", ids, 0, sequence=np.array(ends, "i8"))
    tokens("mixed.h5", ids, sequence=np.array(ends, "i8"), modality=visual)
    tokens("third.h5", ids, sequence=np.array(ends, "i8"), modality=np.full(90, 2, "u1"))


def scaled(path, mode, scales):
    with copied("q.h5", path) as f:

        def visit(name, g):
            if "codes" in g:
                g["act_scale"] = scales
                g.attrs["act_format"], g.attrs["act_mode"] = "int8", mode

        f.visititems(lambda n, o: visit(n, o) if isinstance(o, h5py.Group) else None)


def scaled_models():
    scaled("two.h5", "static-modality", np.array([0.05, 0.4], "f4"))
    for i, s in enumerate((0.05, 0.4)):
        scaled(f"one{i}.h5", "static-tensor", np.array([s], "f4"))


def near(one, other):
    a, b = numbers(one), numbers(other)
    assert a.keys() == b.keys() and all(abs(a[k] - b[k]) <= 3e-6 * abs(a[k]) for k in a), (a, b)


def mean_over_parts():
    n, s = map(sum, zip(*((float(a), float(a) * float(b)) for a, b in map(str.split, open("parts")))))
    v = dict(map(str.split, open("all")))
    assert n == 90 and abs(s / n - float(v["nll"])) < 3e-7 * float(v["nll"])


def look(name, d):
    if isinstance(d, h5py.Dataset) and name != "config":
        for other in ("parts.h5", "reordered.hessian"):
            x, y = d[...].astype("f8"), h5py.File(other)[name][...].astype("f8")
            if name.endswith(
                "histogram"
            ):  # some numbers cross an edge, as in experts.t; one may always do so, and
                # with it the first tokens of all five sequences, which are the same token at the same place
                assert x.sum() == y.sum() and np.abs((x - y).cumsum()).max() <= 5 + 1e-3 * x.sum(), (name, other)
            else:
                assert np.abs(x - y).max() <= 1e-5 * np.abs(x).max(), (name, other)


def hessians():
    a = h5py.File("sum.h5")

    a.visititems(look)


def neither():
    a, b, c = (float(dict(map(str.split, open(f)))["nll"]) for f in ("mixed", "two", "one"))
    assert a != b and a != c


def modalities():
    with h5py.File("mixed-h.h5") as a, h5py.File("plain-h.h5") as b:
        x, y = (f["model/layers/1/mlp/up_proj/hessian"][()] for f in (a, b))
        assert x.shape == (2, *y.shape) and abs(x.sum(0) - y).max() <= 1e-5 * abs(y).max()
