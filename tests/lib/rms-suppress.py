"""rms-suppress.py -- Python of tests/rms-suppress.t"""

import shutil
import subprocess

import h5py
import numpy as np

from lib.h5 import copied, read


def make():
    with copied("plain.h5", "model.h5") as f:
        w = f["transformer/h/0/mlp/c_proj/weight"]
        w[:, 5] *= 12
        w[:, 0] *= 9
        w = f["transformer/h/1/mlp/c_proj/weight"]
        w[:, 127] *= 9


def sylvester(n):
    return np.ones((1, 1)) if n == 1 else np.kron([[1, 1], [1, -1]], sylvester(n // 2))


def look(path, bits):
    bits = int(bits)
    h = sylvester(128) / np.sqrt(128)
    a, b, rows = h5py.File("model.h5"), h5py.File(path), [l.split() for l in open("table")]
    assert len(rows) == 2
    for i, row in enumerate(rows):
        path = f"/transformer/h/{i}/mlp/c_proj"
        assert row[0] == path
        w = a[path + "/weight"][()].astype("f8")
        old = w @ h.T
        before, after = abs(old).max(), abs(w).max(0)
        want = np.flatnonzero(after > before)
        mean = np.sqrt(128) * abs(old.mean(1)).max()
        assert list(want) == ([0, 5] if i == 0 else [127]), want
        assert np.allclose([float(x) for x in row[1:]], [before, after.max(), mean, len(want)], rtol=1e-4), (
            row,
            before,
            after.max(),
            mean,
        )
        assert abs(mean - after[0]) < 1e-6  # the paper's left side is the first channel of such a matrix
        g = b[path]
        assert list(g["split_index"][()]) == list(want) and g["split_index"].dtype == "i4"
        s = g["split_weight"][()]
        if bits == 16:
            assert s.dtype == "f2" and np.array_equal(s, w[:, want].astype("f2")) and "split_scale" not in g
        else:
            scale = g["split_scale"][()]
            assert (
                s.dtype == "i1"
                and abs(s).max(0).tolist() == [127] * len(want)
                and (abs(s * scale - w[:, want]) <= scale / 2 * 1.0001).all()
            )
        rest = g["weight"][()]
        assert not rest[:, want].any()
        rest[:, want] = w[:, want]
        assert np.array_equal(rest, w)
        assert g.attrs["online_hadamard"] == 128 and np.array_equal(g["bias"][()], a[path + "/bias"][()])


def half():
    with copied("model.h5", "half.h5") as f:
        for i in "01":
            w = f[f"transformer/h/{i}/mlp/c_proj/weight"]
            w[...] = w[()].astype("f2")


def put(f, p, x):
    attrs = dict(f[p].attrs)
    del f[p]
    f[p] = x
    f[p].attrs.update(attrs)


def damaged():
    shutil.copy("split.h5", "whole.h5")
    shutil.copy("split.h5", "bare.h5")
    shutil.copy("h.h5", "bare-h.h5")
    for i, columns in (0, [0, 5]), (1, [127]):
        path = f"transformer/h/{i}/mlp/c_proj"
        with h5py.File("whole.h5", "r+") as f:  # unchanged except for rounding
            w = f[path + "/weight"][()]
            w[:, columns] = f[path + "/split_weight"][()]
            f[path + "/weight"][...] = w
            del f[path + "/split_weight"], f[path + "/split_index"]
        with h5py.File("bare.h5", "r+") as f:
            del f[path + "/split_weight"], f[path + "/split_index"]
        with h5py.File("bare-h.h5", "r+") as f:  # dead channels
            h = f[path + "/hessian"][()]
            h[columns] = 0
            h[:, columns] = 0
            f[path + "/hessian"][...] = h


def static_scales():
    subprocess.run(
        "dpq-run -q --group 32 --hessian h.h5 --compute e4m3fn --pow2-scale no split.h5 -o q.h5", shell=True, check=True
    )
    h, q = h5py.File("h.h5"), h5py.File("q.h5")
    for i, columns in (0, [0, 5]), (1, [127]):
        path = f"transformer/h/{i}/mlp/c_proj"
        top = np.delete(h[path + "/absmax"][()], columns).max()
        assert np.allclose(q[path + "/act_scale"][()], top / 448, rtol=1e-6), (q[path + "/act_scale"][()], top / 448)


def faults():
    P = "transformer/h/0/mlp/c_proj"

    def change(path, make, source="split.h5"):
        with copied(source, path) as f:
            make(f[P])

    def put(g, name, x):
        if name in g:
            del g[name]
        g[name] = x

    change("no-index.h5", lambda g: g.__delitem__("split_index"))
    change("no-weight.h5", lambda g: g.__delitem__("split_weight"))
    change("beyond.h5", lambda g: put(g, "split_index", np.array([0, 128], "i4")))
    change("twice.h5", lambda g: put(g, "split_index", np.array([5, 5], "i4")))
    change("three.h5", lambda g: put(g, "split_index", np.array([5, 6, 7], "i4")))
    change("nan.h5", lambda g: put(g, "split_weight", np.full((32, 2), np.nan, "f2")))
    change("unscaled.h5", lambda g: g.__delitem__("split_scale"), "eight.h5")
    change("scaled.h5", lambda g: put(g, "split_scale", np.ones(2, "f4")))
    change("empty.h5", lambda g: put(g, "split_index", np.zeros(0, "i4")))
    change("minus.h5", lambda g: put(g, "split_scale", -np.ones(2, "f4")), "eight.h5")
    change("huge.h5", lambda g: g["weight"].__setitem__((slice(None), 5), 1e6), "model.h5")
    change(
        "head.h5",
        lambda g: (
            put(g.file["lm_head"], "split_index", np.array([1], "i4")),
            put(g.file["lm_head"], "split_weight", np.ones((61, 1), "f2")),
        ),
    )


def spread():
    with copied("plain.h5", "spread.h5") as f:  # one large weight before the rotation
        for i in "01":
            w = f[f"transformer/h/{i}/mlp/c_proj/weight"]
            x = w[()]
            x[3] += 20 * sylvester(128)[7] / np.sqrt(128)
            w[...] = x


def zeros():
    f = h5py.File("q.h5")
    for i, columns in (0, [0, 5]), (1, [127]):
        g = f[f"transformer/h/{i}/mlp/c_proj"]
        zero = g["zero"][()][:, [c // 32 for c in columns]]
        assert (
            np.array_equal(g["codes"][()][:, columns], zero)
            and len(g["split_index"]) == len(columns)
            and g["split_weight"].dtype == "f2"
        )
        assert (g["codes"][()] != np.repeat(g["zero"][()], 32, 1)).mean() > 0.5


def unrotated():
    with copied("split.h5", "u.h5") as f:
        del f.attrs["rotated"]
        for i in "01":
            del f[f"transformer/h/{i}/mlp/c_proj"].attrs["online_hadamard"]


def of_modality(source, first, path):
    """Tokens of two modalities, window by window in turn, beginning with this one."""
    with copied(source, path) as f:
        f["modality"] = ((np.arange(len(f["tokens"])) // 32 + int(first)) % 2).astype("u1")


def swapped(a, b):
    """The modalities of one file are exchanged in the other, and so are the scales."""
    x, y = [read(p, "transformer/h/0/mlp/c_proj/act_scale") for p in (a, b)]
    assert len(x) == 2 and x[0] != x[1] and (x == y[::-1]).all(), (x, y)
