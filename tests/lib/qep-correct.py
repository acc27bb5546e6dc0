"""qep-correct.py -- Python of tests/qep-correct.t"""

import importlib

import h5py
import numpy as np

from lib.h5 import copied, read

make = importlib.import_module("lib.cross").make


def names_of(f):
    """Paths of the linear layers of blocks."""
    found = []
    f.visititems(lambda n, g: found.append(n) if isinstance(g, h5py.Group) and "weight" in g and g["weight"].ndim == 2
                 and "/layers/" in "/" + n + "/" or isinstance(g, h5py.Group) and "/h/" in n and "weight" in g
                 and g["weight"].ndim == 2 else None)
    return [n for n in found if not n.startswith("test")]


def moments(h, name):
    """H and G of a layer, completed by the prior."""
    g = h[name]
    y = [g[m][...].astype("f8") for m in ("hessian", "cross")]
    n, c = len(y[0]), g["count"][()]
    if c < n and "prior" in g:
        p = g["prior"]
        y = [s + (n - c) / p["count"][()] * p[m][...].astype("f8") for s, m in zip(y, ("hessian", "cross"))]
    return y


def equation(model, hessian, out, alpha, damp, layers):
    alpha, damp = float(alpha), float(damp)
    m, h, o = h5py.File(model), h5py.File(hessian), h5py.File(out)
    changed = 0
    for name in names_of(m):
        w, got = m[name + "/weight"][...], o[name + "/weight"][...]
        if not any(name.endswith("/" + l) for l in layers.split()) or name.endswith("mlp/gate"):
            assert (w == got).all(), name
            continue
        s, g = moments(h, name)
        dead = np.diag(s) == 0
        s[dead, dead] = 1
        w = w.astype("f8")
        w[:, dead] = 0
        ridge = damp * np.diag(s)[~dead].mean()
        p = (g - s * ~dead) @ np.linalg.inv(s + ridge * np.eye(len(s)))
        want = w + alpha * w @ p
        want[:, dead] = 0
        # rounded once to float, and the inverse in double adds far less; sums with a prior are rounded to float too
        by = 1e-5 if "prior" in h[name] else 2.0**-24
        off = np.abs(got - want).max()
        assert got.dtype == "f4" and off <= by * np.abs(want).max(), (name, off)
        first = "/0/" in name and name.rsplit("/")[-1] in ("q_proj", "k_proj", "v_proj", "c_attn")
        assert first or np.abs(want - w).max() > 1e-3 * np.abs(w).max(), name
        changed += 1
    assert changed


def dead(hessian, out):
    with copied(hessian, out) as f:
        for name in ("mlp/down_proj", "self_attn/o_proj"):
            g = f["model/layers/1/" + name]
            s, c = g["hessian"], g["cross"]
            s[5], s[:, 5], c[:, 5] = 0, 0, 0


def is_dead(out):
    f = h5py.File(out)
    for name in ("mlp/down_proj", "self_attn/o_proj"):
        w = f[f"model/layers/1/{name}/weight"][...]
        assert (w[:, 5] == 0).all() and (w[:, 6] != 0).any()


def least_squares(model, hessian, out):
    name = "model/layers/1/self_attn/o_proj"
    s, g = moments(h5py.File(hessian), name)
    want = read(model, name + "/weight").astype("f8") @ g @ np.linalg.inv(s)
    got = read(out, name + "/weight")
    assert np.linalg.cond(s) < 1e4  # a ridge of 1e-6 changes it by less than 1e-2
    assert np.abs(got - want).max() < 1e-2 * np.abs(want).max()


def weights(path):
    f, y = h5py.File(path), {}
    f.visititems(lambda n, d: y.update({n: d[...]}) if n.endswith("/weight") else None)
    return y


def same_weights(a, b):
    x, y = weights(a), weights(b)
    assert x and x.keys() == y.keys() and all((x[n] == y[n]).all() for n in x)


def rounded(a, b, kind):
    x, f = weights(a), h5py.File(b)
    changed = 0
    for n, v in x.items():
        if f[n].id.get_type().get_size() == 4:
            continue
        bits = v.view("u4").astype("u8")
        short = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype("u4").view("f4")
        assert (f[n][...] == (v.astype("f2") if kind == "f16" else short)).all(), n
        changed += 1
    assert changed == 12


def spoil(hessian, out):
    with copied(hessian, out) as f:
        f["model/layers/1/self_attn/o_proj/cross"][3, 4] = np.nan
