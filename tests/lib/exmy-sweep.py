"""exmy-sweep.py -- Python of tests/exmy-sweep.t"""

import json
import math
import re
import statistics

import h5py
import numpy as np

from lib.h5 import create, read


def make():
    r = np.random.default_rng(1)

    w = r.standard_normal((40, 300)).astype("f4")
    w[3] = 0
    with create("w.h5", "model") as f:
        f["a/weight"] = w
        f["zero/weight"] = np.zeros((4, 8), "f4")
    with create("two.h5", "model") as f:
        f["a/weight"] = w
        f["b/weight"] = r.laplace(size=(7, 90)).astype("f4")
    w[5, 6] = np.inf
    with create("inf.h5", "model") as f:
        f["a/weight"] = w


def normal(bits, code):
    h, inverse = 2 ** (bits - 1), statistics.NormalDist().inv_cdf
    o = 1 - 1 / (4 * (2 * h - 1)) - 1 / (8 * h)
    return (
        -inverse(o + (0.5 - o) * code / (h - 1)) / inverse(o)
        if code < h - 1
        else inverse(o + (0.5 - o) * (2 * h - 1 - code) / h) / inverse(o)
    )


def float_(x, y, bias, code):
    sign, e, m = -1 if code >> x + y else 1, code >> y & (1 << x) - 1, code & (1 << y) - 1
    return sign * (math.ldexp(2**y + m, e - bias - y) if e else math.ldexp(m, 1 - bias - y))


def values(page):
    table, size = {}, {}
    for r in json.load(open("values.json"))["rows"]:
        table.setdefault(r["format"], {})[r["code"]] = r["value"]

    known = dict(
        mxfp4=(2, 1, 1, 6),
        nvfp4=(2, 1, 1, 6),
        e4m3fn=(4, 3, 7, 448),
        e4m3ieee=(4, 3, 7, 240),
        e5m2ieee=(5, 2, 15, 57344),
    )
    assert len(table) == 8 + 7 + 7 + 34 + 5, len(table)
    for f, got in table.items():
        n = [int(x) for x in re.findall(r"\d+", f)]
        if f in known:
            x, y, bias, top = known[f]
            rule, codes = lambda c: float_(x, y, bias, c), 2 ** (1 + x + y)
        elif f[0] == "e":
            (x, y), top = n, math.inf
            rule, codes = lambda c: float_(x, y, 0, c), 2 ** (1 + x + y)
        else:
            rule, codes, top = (
                dict(i=lambda c: c - (2 ** (n[0] - 1) - 1), u=lambda c: c, n=lambda c: normal(n[0], c))[f[0]],
                2 ** n[0] - (f[0] == "i"),
                math.inf,
            )
        size[f] = codes // 2 if f in known or f[0] == "e" else codes  # floats, as in the paper: without the sign
        want = {c: rule(c) for c in range(codes) if abs(rule(c)) <= top}
        assert set(got) == set(want), f
        for c in got:
            assert abs(got[c] - want[c]) <= (1e-7 if f[0] == "n" and f != "nvfp4" else 0), (f, c, got[c], want[c])
    page = open(page).read().split("Values of some formats")[1].split("```")[1]
    lines = re.sub(r"\n {4}", " ", page).strip().split("\n")
    assert len(lines) == 21
    for line in lines:
        (f, first), values = line.split(":")[0].split(), line.split(":")[1].split()
        got, at = table[f], int(first)
        for v in values:
            while at not in got:
                at += 1  # a code without a value
            assert np.float32(got[at]) == got[at] == np.float32(v) and math.copysign(1, got[at]) == math.copysign(
                1, float(v)
            ), (line, at, got[at])
            at += 1
        assert first != "0" or f == "e4m3fn" or at == size[f], line
    for name, coded in ("plain.h5", False), ("coded.h5", True):
        with create(name, "model") as h:
            for f, got in table.items():
                c = np.array(sorted(got), "u1")[None]
                if not coded:
                    h[f + "/weight"] = np.array([[got[int(k)] for k in c[0]]], "f4")
                    continue
                g = h.create_group(f)
                g["codes"] = c
                g["scale"] = np.ones((1, 1), "f4")
                g.attrs.update(
                    storage=f,
                    group=np.int64(0),
                    bits=np.int64(np.ceil(np.log2(c.max() + 1)) if f not in known or f in ("mxfp4", "nvfp4") else 8),
                )
                if f[0] == "u":
                    g["zero"] = np.zeros((1, 1), "u1")
                if f == "mxfp4":
                    g.attrs["scale_dtype"] = "e8m0"
                if f == "nvfp4":
                    g.attrs["scale_dtype"] = "e4m3fn"
                    g["scale_tensor"] = np.ones(1, "f4")


def errors():
    w = read("w.h5", "a/weight").astype("f8")
    s = h5py.File("sweep.h5")
    assert s.attrs["ptq_kind"] in ("sweep", b"sweep") and len(s["curve/sigma"]) == 2 * 49
    live = w[np.abs(w).max(1) > 0]
    x = live / np.abs(live).max(1, keepdims=True)
    sigma = x.std(1)
    row = {k: v[0] for k, v in s["layer"].items()}
    assert row["channels"] == 40 and row["zero_channels"] == 1
    for k, v in dict(
        mean=sigma.mean(),
        deviation=sigma.std(),
        least=sigma.min(),
        quarter=np.quantile(sigma, 0.25),
        median=np.median(sigma),
        twentieth=np.quantile(sigma, 0.05),
        three_quarters=np.quantile(sigma, 0.75),
        nineteen_twentieths=np.quantile(sigma, 0.95),
        largest=sigma.max(),
        in_band=((sigma >= 0.3) & (sigma <= 0.35)).mean(),
    ).items():
        assert abs(row[k] - v) < 1e-6, (k, row[k], v)
    step = np.abs(live).max(1, keepdims=True) / 15
    error = (((np.rint(live / step) * step - live) / np.abs(live).max(1, keepdims=True)) ** 2).mean(1).mean()
    i = [n for n, f in enumerate(s["error/format"].asstr()) if f == "int5"][0]
    assert abs(s["error/error"][i] / error - 1) < 1e-5, (s["error/error"][i], error)


def all_layers():
    x = [r / np.abs(r).max() for n in "ab" for r in h5py.File("two.h5")[n]["weight"][...].astype("f8") if r.any()]
    sigma = np.array([r.std() for r in x])
    head, *rows = (l.rstrip("\n").split("\t") for l in open("layers"))
    last = dict(zip(head, rows[-1]))
    assert len(rows) == 3 and last["layer"] == "all" and last["channels"] == "47" and last["zero_channels"] == "1", last
    for k, v in dict(
        mean=sigma.mean(),
        deviation=sigma.std(),
        twentieth=np.quantile(sigma, 0.05),
        median=np.median(sigma),
        nineteen_twentieths=np.quantile(sigma, 0.95),
        in_band=((sigma >= 0.12) & (sigma <= 0.28)).mean(),
    ).items():
        assert abs(float(last[k]) - v) < 1e-5, (k, last[k], v)


def every_digit():
    t = {(r["format"], r["code"]): r["value"] for r in json.load(open("values.json"))["rows"]}
    f = h5py.File("values.h5")["values"]
    rows = [l.rstrip("\n").split("\t") for l in open("lines")][1:]
    assert len(rows) == 48
    for i, (n, c, v) in enumerate(rows):
        assert np.float32(v) == t[n, int(c)] == f["value"][i] and (f["format"].asstr()[i], f["code"][i]) == (
            n,
            int(c),
        ), (n, c, v)


def uniform(curve, values):
    """Between two values, the integral of the squared distance to the nearer one is gap³/12; the density is 1/2."""
    curve, values = (json.load(open(n))["rows"] for n in (curve, values))
    cubes, last, top = {}, {}, {}
    for r in curve:
        f = r["format"]
        assert abs(r["sigma"] - 3**-0.5) < 1e-15 and abs(r["relative"] / r["error"] - 3) < 1e-12, f
        assert 0 < r["sampled_se"] < r["error"] / 100 and abs(r["sampled"] - r["error"]) < 4 * r["sampled_se"], f
        if f.startswith("uint"):
            continue
        top[f] = max(v["value"] for v in values if v["format"] == f)
        x = np.unique([v["value"] for v in values if v["format"] == f and v["value"] >= -top[f]])
        cubes[f], last[f] = (np.diff(x) ** 3).sum(), x[-1] - x[-2]
        assert abs(cubes[f] / top[f] ** 3 / 24 / r["error"] - 1) < 1e-12, f
    pairs = 0
    for f in cubes:
        g = re.sub(r"m(\d)$", lambda m: f"m{int(m[1]) + 1}", f)
        if f[0] == "e" and g in cubes:
            # up to the largest value of ExMy, which ExM(y+1) has too; it has one gap more at each end
            assert top[g] == top[f] + last[g] and abs(cubes[f] / (cubes[g] - 2 * last[g] ** 3) - 4) < 1e-12, f
            pairs += 1
    assert pairs == 8
