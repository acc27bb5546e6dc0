# SPDX-License-Identifier: GPL-3.0-or-later
"""Of device.t: tokens, and the results of a device next to those of the processor."""
import os
import shutil
import sys

import h5py
import numpy as np

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ref")


def tokens(path="t.h5", vocab="40", n="600"):
    ids = np.random.default_rng(1).integers(0, int(vocab), int(n))
    with h5py.File(path, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
        f["tokens"] = ids.astype("i4")
        f["tokens"].attrs["add_bos"] = 0


def spoil(model, copy):
    """A copy whose first block cannot be read."""
    shutil.copy(model, copy)
    with h5py.File(copy, "r+") as f:
        f["model/layers/0/mlp/down_proj/weight"][0, 0] = np.nan


def nll(a, b, most):
    """The negative log-likelihoods of two records: the largest difference is at most `most`."""
    with h5py.File(a) as f, h5py.File(b) as g:
        x, y = f["nll_of_target"][...], g["nll_of_target"][...]
    worst = np.abs(x - y).max()
    if not (len(x) > 100 and worst <= float(most)):
        sys.exit(f"{len(x)} targets, the largest difference is {worst:g}, expected at most {most}")


def few(a, b, by, share):
    """At most a share of the negative log-likelihoods differ by more than `by`, and their means by less."""
    with h5py.File(a) as f, h5py.File(b) as g:
        x, y = f["nll_of_target"][...], g["nll_of_target"][...]
    differ = (np.abs(x - y) > float(by)).mean()
    if not (len(x) > 100 and differ <= float(share) and abs((x - y).mean()) < float(by)):
        sys.exit(f"{differ:g} of {len(x)} targets differ by more than {by}, the mean by {(x - y).mean():g}")


def _datasets(f):
    found = {}
    f.visititems(lambda name, o: found.update({name: o[...]}) if isinstance(o, h5py.Dataset) else None)
    return {k: v for k, v in found.items() if v.dtype.kind in "fiu"}


def hessians(a, b, most):
    """Every sum, relative to the largest of its dataset. Bins of the histogram may change by rounding."""
    with h5py.File(a) as f, h5py.File(b) as g:
        x, y = _datasets(f), _datasets(g)
    if x.keys() != y.keys() or not any(k.endswith("hessian") for k in x):
        sys.exit(f"other datasets: {sorted(x.keys() ^ y.keys())}")
    for name, u in x.items():
        v, by = y[name].astype(float), float(most)
        u = u.astype(float)
        if name.endswith("histogram"):
            if u.sum() != v.sum() or np.abs(u - v).sum() > 0.1 * u.sum():
                sys.exit(f"{name}: {u.sum():g} and {v.sum():g} counts, {np.abs(u - v).sum():g} differ")
        elif not np.abs(u - v).max() <= by * max(np.abs(u).max(), 1e-30):
            sys.exit(f"{name}: differs by {np.abs(u - v).max():g} of {np.abs(u).max():g}")


def extreme(model):
    """A copy whose weights in one layer are next to the least float, and in another next to the largest."""
    shutil.copy(model, "extreme.h5")
    with h5py.File("extreme.h5", "r+") as f:
        for name, most in ("up_proj", 2e-44), ("gate_proj", 3e38):
            w = f[f"model/layers/0/mlp/{name}/weight"]
            x = w[()].astype("f8")
            w[...] = (x * most / np.abs(x).max()).astype("f4")


def scales(a, b):
    """Scales of two quantized models: finite and above 0; those of the two layers of extreme() are equal."""
    with h5py.File(a) as f, h5py.File(b) as g:
        x, y = _datasets(f), _datasets(g)
    for k in (k for k in x if k.endswith("/scale")):
        if not ((x[k] > 0) & (x[k] < np.inf) & (y[k] > 0) & (y[k] < np.inf)).all():
            sys.exit(f"{k}: a scale is 0 or infinite")
        if "layers/0/mlp/up_proj" in k and (x[k] != y[k]).mean() > 0.02:
            sys.exit(f"{k}: {(x[k] != y[k]).sum()} of {x[k].size} differ")


def codes(a, b, most):
    """Codes of two quantized models; the share that may differ."""
    with h5py.File(a) as f, h5py.File(b) as g:
        x, y = _datasets(f), _datasets(g)
    names = [k for k in x if k.endswith("/codes")]
    differ = sum(int((x[k] != y[k]).sum()) for k in names)
    total = sum(x[k].size for k in names)
    if not (total and differ <= float(most) * total):
        sys.exit(f"{differ} of {total} codes differ, expected at most {most} of them")
