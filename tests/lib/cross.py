"""cross.py -- Python of tests/cross.t"""

import hashlib
import json
import re

import h5py
import numpy as np

from lib.h5 import copied, create, read
from lib.vision import tokens


def based(name, path, source):
    """A copy of a model with the basis of this name."""
    with copied(source, path) as f:
        f.attrs["basis"] = hashlib.sha256(name.encode()).hexdigest()
        f.attrs["history"] = f"model-import 1 {name}"


def make(ref, *names):
    for name in names:
        based(name, f"{name}.h5", f"{ref}/{name}.h5")
    ids = np.random.default_rng(1).integers(3, 61, 1000).astype("i4")
    with create("t.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=ids)
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61


def weight(f, name):
    """The effective weight of a layer: plain, or int3 with scales of groups."""
    g = f[name]
    if "weight" in g:
        return g["weight"][...].astype("f8")
    codes, scale = g["codes"][...].astype("f8"), g["scale"][...].astype("f8")
    grid = np.arange(-3, 4)  # int3
    return grid[codes.astype(int)] * scale[:, np.arange(codes.shape[1]) // g.attrs["group"]]


def norm(x, gain):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain


def rotate(x):
    """Rotary positions of [windows, tokens, heads, d]."""
    d = x.shape[3]
    angle = np.arange(x.shape[1])[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def inputs(path, ids):
    """Inputs of the layers of llama-gqa, [tokens, in] by name, in float64."""
    f, y = h5py.File(path), {}
    w = lambda name: weight(f, name)
    heads, kv, d = 4, 2, 8
    x = w("model/embed_tokens")[ids]
    windows, n = ids.shape
    for i in "01":
        b = f"model/layers/{i}/"
        h = norm(x, f[b + "input_layernorm/weight"][...])
        for name in "qkv":
            y[b + f"self_attn/{name}_proj"] = h
        q, k, v = (
            (h @ w(b + f"self_attn/{name}_proj").T).reshape(windows, n, m, d)
            for name, m in (("q", heads), ("k", kv), ("v", kv))
        )
        q, k = rotate(q), np.repeat(rotate(k), heads // kv, 2)
        s = np.einsum("wihd,wjhd->whij", q, k) / np.sqrt(d)
        s = np.where(np.tri(n, dtype=bool), s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        o = np.einsum("whij,wjhd->wihd", s, np.repeat(v, heads // kv, 2)).reshape(windows, n, -1)
        y[b + "self_attn/o_proj"] = o
        x = x + o @ w(b + "self_attn/o_proj").T
        h = norm(x, f[b + "post_attention_layernorm/weight"][...])
        y[b + "mlp/gate_proj"] = y[b + "mlp/up_proj"] = h
        g = h @ w(b + "mlp/gate_proj").T
        m = g / (1 + np.exp(-g)) * (h @ w(b + "mlp/up_proj").T)
        y[b + "mlp/down_proj"] = m
        x = x + m @ w(b + "mlp/down_proj").T
    y["lm_head"] = norm(x, f["model/norm/weight"][...])
    return {name: v.reshape(-1, v.shape[-1]) for name, v in y.items()}


def near(got, want, what, by=2e-5):
    """Inputs in float32 differ from those in float64 by some 2^-20 of their size."""
    assert got.shape == want.shape and np.abs(got - want).max() <= by * np.abs(want).max() + 1e-30, (
        what,
        np.abs(got - want).max(),
    )


def sums(model, quantized):
    ids = np.concatenate([[1], read("t.h5", "tokens")])[: 31 * 32].reshape(31, 32)
    z, x = inputs(model, ids), inputs(quantized, ids)
    f = h5py.File("c.h5")
    found = []
    f.visit(lambda name: found.append(name[:-6]) if name.endswith("/cross") else None)
    assert len(z) == 15 and {f[n] for n in found} == {f[n] for n in z}
    for name in z:
        c = f[name + "/cross"]
        first = "/0/" in name and name[-6] in "qkv"
        assert c.dtype == "f4" and (z[name] == x[name]).all() == first, name
        near(c[...].astype("f8"), z[name].T @ x[name], name)
        near(f[name + "/hessian"][...].astype("f8"), x[name].T @ x[name], name)


def members(path, last):
    """Datasets of these names."""
    y = {}

    def look(name, d):
        if isinstance(d, h5py.Dataset) and name.split("/")[-1] in last:
            y[name] = d[...]

    h5py.File(path).visititems(look)
    assert y
    return y


ALL = {"hessian", "count", "absmax", "mean_abs", "fourth", "histogram"}


def others(a, b):
    x, y = members(a, ALL), members(b, ALL)
    assert x.keys() == y.keys() and all((x[n] == y[n]).all() for n in x)
    assert "cross" in {n.split("/")[-1] for n in members(a, {"cross"})} and "lm_head" in h5py.File(b)


def same_sums(a, b, limit):
    x, y = (members(p, {"hessian", "cross"}) for p in (a, b))
    assert x.keys() == y.keys() and any("cross" in n for n in x)
    for n in x:
        assert np.abs(x[n].astype("f8") - y[n]).max() <= float(limit) * np.abs(x[n]).max(), n


def transposed(a, b):
    x, y = members(a, {"cross"}), members(b, {"cross"})
    assert x.keys() == y.keys()
    with h5py.File(a) as f, h5py.File(b) as g:
        for n in x:
            # a BLAS may add the products of a transpose in another order. Both sums are within
            # (tokens + 2) 2^-24 Σ |z| |x| of the exact sum, and √(Σ z² Σ x²) bounds that.
            h = [np.sqrt(np.diagonal(file[n[:-5] + "hessian"][...]).astype("f8")) for file in (g, f)]
            error = np.abs(x[n].astype("f8") - y[n].T)
            assert (error <= 2 * 1000 * 2.0**-24 * h[0][:, None] * h[1]).all(), n
    assert any((x[n] != x[n].T).any() for n in x)


def images(ref, *names):
    for name in names:
        based(name, f"{name}.h5", f"{ref}/{name}.h5")
        with h5py.File(f"{name}.h5") as f:
            tokens(f"{name}-t.h5", f)


def itself(path, visual=None):
    f = h5py.File(path)
    x = members(path, {"cross"})
    assert not visual or {c.ndim for c in x.values()} == {2, 3}
    for n, c in x.items():
        h = f[n[:-5] + "hessian"][...]
        assert c.shape == h.shape and (c == h).all(), n  # by definition, not by the order of products
    hessians = members(path, {"hessian"})
    assert len(hessians) == len(x)


def gains(model, where):
    """simple.h5: the model with gains of norms in few bits. larger.h5: every second gain and bias twice as large."""
    norms = []
    with copied(model, "simple.h5") as f:
        plus = json.loads(f["config"][()])["model_type"].startswith("gemma")  # gains are 1 + weight
        f.visit(norms.append)
        norms = [name for name in norms if re.search(where + ".*(norm|ln_)[^/]*/(weight|bias)$", name)]
        for name in norms:
            f[name][...] = np.round(f[name][...] * 64) / 64
    assert norms
    with copied("simple.h5", "larger.h5") as f:
        for name in norms:
            one = plus and name.endswith("weight")
            f[name][1::2] = 2 * (f[name][1::2] + one) - one


def larger(part=""):
    """The first norm gives D x in larger.h5 where it gives x in simple.h5: Σ D x xᵀ = D Σ x xᵀ."""
    with h5py.File("cross.h5") as f, h5py.File("larger-h.h5") as g:
        found = 0
        for name, c in members("cross.h5", {"cross"}).items():
            path = name[:-5]
            d = np.where(np.arange(c.shape[-1]) % 2, 2, 1)
            if "prior" in path or not (g[path + "absmax"][...] == d * f[path + "absmax"][...]).all():
                continue
            h = f[path + "hessian"][...].astype("f8")
            # each sum is within (tokens + 2) 2^-24 Σ |z| |x| of the exact one, and √(Σ z² Σ x²) bounds that
            root = np.sqrt(np.diagonal(h, axis1=-2, axis2=-1))
            bound = 2 * 1000 * 2.0**-24 * d[:, None] * root[..., :, None] * root[..., None, :]
            assert (np.abs(c - d[:, None] * h) <= bound).all(), name
            assert (np.abs(c - d * h) > bound).any(), name  # Σ x zᵀ is another matrix
            found += path.startswith(part)
    assert found


def added(one, two, total):
    a, b, y = (members(p, {"hessian", "cross"}) for p in (one, two, total))
    for n in y:
        assert (np.abs(a[n].astype("f8") + b[n] - y[n]) <= 2.0**-23 * np.abs(y[n])).all(), n


def experts_model(model):
    """moved.h5: other weights of the router and of the experts in the first sparse block, after the same inputs."""
    dice = np.random.default_rng(5)
    with copied(model, "moved.h5") as f:
        block = sorted(f["test/router"])[0]
        path = moe(f, block)
        for name in ["gate"] + [f"experts/{e}/{n}" for e in f[path + "/experts"] for n in f[path + "/experts/" + e]]:
            w = f[path + "/" + name + "/weight"]
            w[...] += (0.3 * w[...].std() * dice.standard_normal(w.shape)).astype("f4")
        ids = f["test/tokens"][...].ravel()
    with create("ref.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=ids)
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = -1, 0, 61


def moe(f, block):
    c = json.loads(f["config"][()])
    return f"model/layers/{block}/" + ("block_sparse_moe" if c["model_type"] == "mixtral" else "mlp")


def experts(model, count):
    n = int(count)
    pair, own, f = h5py.File(model), h5py.File("moved.h5"), h5py.File("e.h5")
    block = sorted(pair["test/router"])[0]
    path, k = moe(pair, block), json.loads(pair["config"][()])["num_experts_per_tok"]
    x = pair[f"test/router/{block}/input"][:n].astype("f8")  # the same in both models
    logits = x @ own[path + "/gate/weight"][...].astype("f8").T
    choice = np.argsort(-logits, 1, kind="stable")[:, :k]
    assert n < 9 or (np.sort(choice) != pair[f"test/router/{block}/choice"][:n]).any()

    def inner(m, e):
        names = ("w1", "w3") if "w1" in m[f"{path}/experts/{e}"] else ("gate_proj", "up_proj")
        g, u = (x @ m[f"{path}/experts/{e}/{name}/weight"][...].astype("f8").T for name in names)
        return g / (1 + np.exp(-g)) * u

    priors = 0
    for e in range(logits.shape[1]):
        rows = (choice == e).any(1)
        for name in f[f"{path}/experts/{e}"]:
            g = f[f"{path}/experts/{e}/{name}"]
            down = name in ("w2", "down_proj")
            z, y = (inner(pair, e), inner(own, e)) if down else (x, x)
            near(g["cross"][...].astype("f8"), z[rows].T @ y[rows], (e, name))
            assert ("prior" in g) == (rows.sum() < x.shape[1] if not down else rows.sum() < y.shape[1])
            if "prior" in g:
                first = y.shape[1] if down else n
                near(g["prior/cross"][...].astype("f8"), z[:first].T @ y[:first], (e, name, "prior"))
                priors += 1
    assert priors
