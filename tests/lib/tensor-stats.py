"""tensor-stats.py -- Python of tests/tensor-stats.t"""

import csv
import json

import h5py
import numpy as np
from ptqtools import Layer

from lib.h5 import create


def make():
    r = np.random.default_rng(1)

    with create("w.h5", "model") as f:
        w = r.laplace(0.1, 1, (70, 300))
        w[3] = 0
        f["b/weight"] = w.astype("f2")
        f["a10/weight"] = w[:5].astype("f4")
        f["a9/weight"] = np.float32([[-1, 1], [1, -1]])
        f["norm/weight"] = np.ones(4, "f4")
        f["b/bias"] = np.full(70, 1e6, "f4")
    with create("nan.h5", "model") as f:
        w[2, 2] = np.nan
        f["b/weight"] = w.astype("f4")
    with create("none.h5", "model") as f:
        f["norm/weight"] = np.ones(4, "f4")
    with h5py.File("kind.h5", "w") as f:
        f["b/weight"] = np.ones((2, 2), "f4")


def numbers(table, model):
    """Computes every number of TABLE again, in numpy, from the members of MODEL's weights."""
    def bits(g):
        if "weight" in g:
            return 8 * g["weight"].dtype.itemsize
        (m, n), scale = g["codes"].shape, g["scale"]
        bits = 4 * m * n + scale.size * 32 + g["zero"].size * 4 + 32 * (g.attrs["compute"] == "e4m3fn")
        return (bits + ("group_index" in g) * n * np.ceil(np.log2(scale.shape[1]))) / m / n

    rows = list(csv.DictReader(open(table), delimiter="\t"))
    f = h5py.File(model)
    total = count = 0
    for row in rows[:-1]:
        g = f[row["layer"]]
        w = Layer(g.id).weight.astype("f8")
        m, n = w.shape
        u = w.mean()
        live = np.abs(w).max(1) > 0
        s = w[live].std(1) / np.abs(w[live]).max(1)
        want = dict(
            rows=m,
            columns=n,
            bits=bits(g),
            sigma=s.mean(),
            sigma_min=s.min(),
            sigma_max=s.max(),
            deviation=w.std(),
            kurtosis=((w - u) ** 4).mean() / w.var() ** 2,
            absmax=np.abs(w).max(),
            incoherence=np.abs(w).max() * (m * n) ** 0.5 / np.linalg.norm(w),
        )
        for k, v in want.items():  # six digits are printed
            assert abs(float(row[k]) - v) <= 1e-5 * abs(v), (row["layer"], k, row[k], v)
        total += bits(g) * m * n
        count += m * n
    assert rows[-1]["layer"] == "all" and abs(float(rows[-1]["bits"]) - total / count) < 1e-5 * total / count
    assert float(rows[-1]["absmax"]) == max(float(r["absmax"]) for r in rows[:-1])
    print(len(rows) - 1)


def hessian(path, diag, count=4, fourth=None):
    with create(path, "hessian") as f:
        n = len(diag)
        f["a/hessian"], f["a/count"] = np.diag(np.float32(diag)), np.int64(count)
        f["a/absmax"] = f["a/mean_abs"] = np.arange(n, dtype="f4")
        if fourth:
            f["a/fourth"] = np.float64(fourth)


def hessians():
    hessian("h.h5", [4, 0, 8, 80])
    hessian("h-fourth.h5", [4, 0, 8, 80], fourth=[4, 0, 16, 2000])
    hessian("h-minus.h5", [1, -1])
    hessian("h-nan.h5", [1, float("nan")])
    hessian("h-none.h5", [1, 1], 0)


def as_json():
    d = json.load(open("j"))
    assert [r["layer"] for r in d["rows"]] == ["/a9", "/a10", "/b"]
    assert d["rows"][0]["rows"] == 2 and d["rows"][0]["kurtosis"] == 1 and set(d["all"]) == {"bits", "absmax"}


def record():
    f = h5py.File("r.h5")
    rows = list(csv.DictReader(open("a"), delimiter="\t"))
    assert (
        f.attrs["ptq_kind"] == "result"
        and [s.decode() for s in f["layer"]] == ["/a9", "/a10", "/b"]
        and f["rows"].dtype == "i8"
    )
    assert set(f) == set(rows[0]) and all(
        abs(f[k][2] - float(rows[2][k])) <= 1e-5 * f[k][2] for k in ("sigma", "kurtosis", "bits")
    )
    assert abs(f.attrs["bits"] - float(rows[3]["bits"])) < 1e-4 and f.attrs["history"].startswith("tensor-stats ")


def channels(table, model):
    """Every row of --channels again, in numpy: the root mean square and the largest magnitude of each column."""
    rows = list(csv.DictReader(open(table), delimiter="\t"))
    f = h5py.File(model)
    layers = list(dict.fromkeys(r["layer"] for r in rows))
    assert len(layers) > 2
    at = 0
    for name in layers:
        w = Layer(f[name].id).weight.astype("f8")
        for j in range(w.shape[1]):
            r = rows[at]
            rms, most = (w[:, j] ** 2).mean() ** 0.5, abs(w[:, j]).max()
            assert (r["layer"], r["channel"]) == (name, str(j))
            assert abs(float(r["rms"]) - rms) <= 1e-5 * rms and abs(float(r["absmax"]) - most) <= 1e-5 * most, r
            at += 1
    assert at == len(rows)


def hessian_channels(table, file):
    rows = list(csv.DictReader(open(table), delimiter="\t"))
    with h5py.File(file) as f:
        for r in rows:
            g, j = f[r["layer"]], int(r["channel"])
            want = (g["hessian"][j, j] / g["count"][()]) ** 0.5
            assert abs(float(r["rms"]) - want) <= 1e-5 * want, r
            assert abs(float(r["absmax"]) - g["absmax"][j]) <= 1e-5 * g["absmax"][j], r
        assert len(rows) == sum(f[n]["hessian"].shape[0] for n in {r["layer"] for r in rows})
