"""aifs-order.py -- Python of tests/aifs-order.t"""

import json
import subprocess

import h5py
import numpy as np


def make():
    r = np.random.default_rng(1)

    def tokens(path, n, edit=None, modality=None, **more):
        with h5py.File(path, "w") as f:
            f.attrs["ptq_kind"], f.attrs["ptq_version"], f.attrs["history"] = "tokens", "1", "by hand"
            d = f.create_dataset("tokens", data=r.integers(3, 61, n).astype("i4"))
            d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"], d.attrs["tokenizer_sha256"] = (1, 1, 61, "0" * 64)
            f["bytes"] = r.integers(1, 9, n).astype("u2")
            if modality is not None:
                f["modality"] = np.array(modality, "u1")
            if "image_span" in more and "image_grid" not in more:
                more["image_grid"] = np.ones((len(more["image_span"]), 3), "i4")
                for i in range(len(more["image_span"])):
                    f[f"images/{i}"] = np.zeros((2, 2, 3), "u1")
            for name, value in more.items():
                f[name] = value
            if edit:
                edit(f)

    tokens("spec.h5", 6, modality=[0, 0, 1, 1, 0, 0])
    m = np.zeros(60, "u1")
    span = [[2, 4], [8, 3], [20, 1], [23, 8], [50, 9]]
    for first, n in span:
        m[first : first + n] = 1
    images = lambda f: [
        f.create_dataset(f"images/{i}", data=r.integers(0, 256, (4, 5, 3)).astype("u1")) for i in range(5)
    ]
    tokens(
        "mixed.h5",
        60,
        images,
        m,
        sequence=np.array([0, 20, 45, 60]),
        image_span=np.array(span),
        image_grid=np.full((5, 3), 2, "i4"),
        other=np.arange(60),
    )
    tokens("one.h5", 60, None, m)
    tokens(
        "three.h5", 60, None, m, sequence=np.array([0, 20, 45, 60]), position=np.arange(180, dtype="i4").reshape(60, 3)
    )
    tokens("placed.h5", 60, None, m, sequence=np.array([0, 20, 45, 60]), position=np.arange(60, dtype="i4") % 23)
    tokens("text.h5", 9, modality=np.zeros(9))
    tokens("plain.h5", 9)
    tokens("visual.h5", 9, modality=np.ones(9))
    tokens("kinds.h5", 4, modality=[0, 1, 2, 0])
    tokens("few.h5", 4, modality=[1, 0, 1])
    tokens("none.h5", 0, modality=np.zeros(0))
    tokens(
        "few-bytes.h5", 4, lambda f: (f.pop("bytes"), f.__setitem__("bytes", np.ones(3, "u2"))), modality=[0, 1, 0, 0]
    )
    tokens("no-modality.h5", 4, image_span=np.array([[1, 2]]))
    for name, s in (
        ("far", [[3, 2]]),
        ("before", [[-1, 2]]),
        ("nothing", [[1, 0]]),
        ("long", [[1, 2**62]]),
        ("text-in", [[0, 2]]),
        ("flat", [1, 2]),
    ):
        tokens(f"span-{name}.h5", 4, modality=[0, 1, 1, 0], image_span=np.array(s))
    # text first, as another tool might order it: visual tokens are last, and not in order
    tokens("other.h5", 6, modality=[0, 0, 0, 0, 1, 1], index=np.array([5, 0, 4, 1, 3, 2], "i4"))
    tokens(
        "split.h5",
        6,
        modality=[0, 0, 0, 0, 1, 1],
        index=np.array([5, 0, 4, 1, 3, 2], "i4"),
        image_span=np.array([[4, 2]]),
    )


def moved(before, after):
    a, b = h5py.File(before), h5py.File(after)
    n = len(a["tokens"])
    s = a["sequence"][...] if "sequence" in a else [0, n]
    m, at = a["modality"][...], []
    for first, end in zip(s, s[1:]):  # sorted() is stable
        at += sorted(range(first, end), key=lambda i: m[i] == 0)
    start = np.repeat(s[:-1], np.diff(s))
    assert (b["index"][...] == np.array(at) - start).all() and b["index"].dtype == "i4"
    for name in ("tokens", "bytes", "modality", "position"):
        assert (name in a) == (name in b)
        if name in a:
            assert np.array_equal(a[name][...][at], b[name][...]) and a[name].dtype == b[name].dtype, name
    assert dict(a["tokens"].attrs) == dict(b["tokens"].attrs) and len(b["tokens"].attrs) == 4
    for name in ("sequence", "image_grid", "other") + tuple(f"images/{i}" for i in range(5)):
        assert (name in a) == (name in b)
        if name in a:
            assert np.array_equal(a[name][...], b[name][...]), name
    if "image_span" in a:
        for (f, k), (g, l) in zip(a["image_span"][...], b["image_span"][...]):
            assert k == l and [at[i] for i in range(g, g + l)] == list(range(f, f + k))
    assert a.attrs["history"] in b.attrs["history"] and b.attrs["history"].startswith("aifs-order ")


def same_but_history(one, other):
    a, b = h5py.File(one), h5py.File(other)
    names = [[], []]
    for f, n in zip((a, b), names):
        f.visit(n.append)
    assert names[0] == names[1], names
    for n in names[0]:
        assert dict(a[n].attrs) == dict(b[n].attrs), n
        if isinstance(a[n], h5py.Dataset):
            assert a[n].dtype == b[n].dtype and np.array_equal(a[n][...], b[n][...]), n


def likelihoods(path):
    vocab = json.loads(h5py.File(path)["config"][()])["vocab_size"]
    worst = 0
    for name in "one", "mixed", "placed":
        with h5py.File(name + ".h5") as f, h5py.File("m.h5", "w") as g:
            g.attrs["ptq_kind"], g.attrs["ptq_version"] = "tokens", "1"
            g["tokens"] = f["tokens"][...] % vocab
            g["tokens"].attrs.update(bos_id=0, add_bos=0, vocab=vocab)
            for k in "bytes", "modality", "sequence", "position":
                if k in f:
                    g[k] = f[k][...]
        subprocess.run(["aifs-order", "m.h5", "-o", "n.h5"], check=True)
        f, g = h5py.File("m.h5"), h5py.File("n.h5")
        s = f["sequence"][...] if "sequence" in f else np.array([0, 60])
        for convention in "gptq", "bos":
            v, bos = [], convention == "bos"
            for t, o in ("m.h5", "a.h5"), ("n.h5", "b.h5"):
                p = subprocess.run(
                    [
                        "eval-ppl",
                        "-q",
                        "--tokens",
                        t,
                        "--ctx",
                        str(60 + bos),
                        "--convention",
                        convention,
                        path,
                        "-o",
                        o,
                    ],
                    capture_output=True,
                    text=True,
                )
                assert p.returncode == 0, p.stderr
                v.append(dict(map(str.split, p.stdout.splitlines())))
            a, b = h5py.File("a.h5"), h5py.File("b.h5")
            x, y = a["nll_of_target"][...], b["nll_of_target"][...]
            k = 0
            assert v[0]["tokens"] == v[1]["tokens"] == str(len(x))
            for first, end in zip(s, s[1:]):  # for each row the place of its target in the sequence
                at = [0] * bos + [i + bos for i in g["index"][first:end] if i + 1 < end - first]
                n = len(at)
                assert (a["target"][k : k + n][at] == b["target"][k : k + n]).all()
                worst = max(worst, np.abs(x[k : k + n][at] - y[k : k + n]).max())
                k += n
            assert k == len(x) and (a["target"][...] != b["target"][...]).any()
            assert (
                abs(a.attrs["nll"] - b.attrs["nll"]) < 1e-4
                and abs(a.attrs["bits_per_byte"] - b.attrs["bits_per_byte"]) < 1e-4
            )
    assert worst < 1e-4, worst


def six_tokens():
    f = h5py.File("s.h5")
    assert list(f["index"][...] + 1) == [3, 4, 1, 2, 5, 6] and list(f["modality"][...]) == [1, 1, 0, 0, 0, 0]


def first_places():
    a, b = h5py.File("other.h5"), h5py.File("x.h5")
    assert list(b["index"][...]) == [2, 3, 0, 1, 4, 5] and list(b["tokens"][...]) == list(
        a["tokens"][...][[5, 4, 1, 3, 2, 0]]
    )
