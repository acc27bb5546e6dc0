"""tensor-diff.py -- Python of tests/tensor-diff.t"""

import csv
import json

import h5py
import numpy as np

from lib.h5 import copied, create, read


def layers(path, **groups):
    with create(path, "model") as f:
        for name, value in groups.items():
            f[name.replace("__", "/")] = value


def hessian(path, h, name="a", count=300):
    with create(path, "hessian") as f:
        f[name + "/hessian"] = h.astype("f4")
        f[name + "/count"] = np.int64(count)
        f[name + "/absmax"] = f[name + "/mean_abs"] = np.ones(len(h), "f4")


def change(path, source, edit):
    with copied(source, path) as f:
        edit(f)


def touch(name, at, value):
    def edit(f):
        f[name][at] = value

    return edit


def make(model, biased):
    r = np.random.default_rng(1)
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 60, 2000).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    w = r.standard_normal((70, 100)).astype("f4")
    v = w.astype("f2")
    x = r.standard_normal((300, 100)) @ r.standard_normal((100, 100))

    layers("w.h5", a__weight=w)
    layers("v.h5", a__weight=v)
    layers("two.h5", a__weight=w, c__weight=w[:3])
    layers("tall.h5", a__weight=w[:50])
    layers("one.h5", a__weight=np.float32([[3, 4]]))
    layers("other.h5", a__weight=np.float32([[3, 4.5]]))
    bad = w.copy()
    bad[1, 1] = np.inf
    layers("inf.h5", a__weight=bad)
    layers("n.h5", a__weight=w, n__weight=np.float32([1, 2, np.nan]))
    layers("n0.h5", a__weight=w, n__weight=np.float32([1, 2, 3]))
    layers("int.h5", a__weight=w, n__weight=np.int32([1, 2, 3]))
    h = x.T @ x
    hessian("h.h5", h)
    hessian("small.h5", h[:50, :50])
    hessian("elsewhere.h5", h, "b")
    hessian("unseen.h5", h, count=0)
    h[3, 4] = np.nan
    hessian("nan-h.h5", h)
    hessian("hand.h5", np.float32([[2, 1], [1, 4]]))

    change("norm.h5", model, touch("model/norm/weight", 3, 7))
    change("bias.h5", biased, touch("model/layers/0/self_attn/k_proj/bias", 1, 5))
    change("embed.h5", model, touch("model/embed_tokens/weight", (3, 3), 5))
    change("gone.h5", biased, lambda f: f.__delitem__("model/layers/1/self_attn/v_proj/bias"))
    change("no-layer.h5", model, lambda f: f.__delitem__("model/layers/1/mlp/up_proj"))


def numbers():
    w, v, h = (
        read("w.h5", "a/weight").astype("f8"),
        read("v.h5", "a/weight").astype("f8"),
        read("h.h5", "a/hessian").astype("f8"),
    )
    row, mean = csv.DictReader(open("a"), delimiter="\t")
    e = w - v
    error = (e * e).sum() / (w * w).sum()
    want = dict(
        mse=(e * e).mean(),
        weight_error=error,
        sqnr=-10 * np.log10(error),
        largest=np.abs(e).max(),
        output_error=np.trace(e @ h @ e.T) / np.trace(w @ h @ w.T),
    )
    for k, x in want.items():
        assert abs(float(row[k]) - x) <= 1e-5 * abs(x), (k, row[k], x)
    assert row["tensor"] == "/a" and row["storage"] == "f16" and all(mean[k] == row[k] for k in want if k != "largest")


def as_json():
    d = json.load(open("j"))
    assert d["rows"][0]["tensor"] == "/a" and abs(d["all"]["output_error"] / d["rows"][0]["output_error"] - 1) < 1e-12


def record():
    f = h5py.File("r.h5")
    assert f.attrs["ptq_kind"] == "result" and f["tensor"][0] == b"/a"
    assert (
        abs(f.attrs["output_error"] / f["output_error"][0] - 1) < 1e-12
        and f["sqnr"].dtype == "f8"
        and "largest" not in f.attrs
    )


def same_report():
    a, b = ([l.rstrip().split("\t") for l in open(f)][1:] for f in ("report", "x"))
    assert len(a) == len(b) == 15
    for r, s in zip(a, b):
        assert (
            r[0] == s[0]
            and abs(float(r[1]) / float(s[6]) - 1) < 2e-5
            and (r[2] == "-" or abs(float(r[2]) / float(s[2]) - 1) < 2e-6)
        ), (r, s)
