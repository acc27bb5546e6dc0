"""awq-scale.py -- Python of tests/awq-scale.t"""

import h5py
import numpy as np

from lib.h5 import copied


def weight(f, p):
    return f[p]["weight"][()].astype("f8")


def factors(x, r):
    s = np.maximum(x**r, 1e-4)
    return s / np.sqrt(s.max() * s.min())


def search(ref, name, bits, group, said, after, *inputs):
    bits, group = int(bits), int(group)
    a, b, h = h5py.File(f"{ref}/{name}.h5"), h5py.File(after), h5py.File(f"{name}-h.h5")
    rows = {l.split("\t")[0]: [float(x) for x in l.split("\t")[1:]] for l in open(said) if l.startswith("/")}

    def nearest(v):  # asymmetric, min-max
        q = np.zeros(v.shape)
        for g in range(0, v.shape[1], group):
            w = v[:, g : g + group]
            low, high = np.minimum(w.min(1, keepdims=True), 0), np.maximum(w.max(1, keepdims=True), 0)
            top = 2**bits - 1
            s = ((high - low) / top).astype("f4").astype("f8")
            s[s == 0] = 1
            z = np.rint(-low * top / np.where(high > low, high - low, 1))
            q[:, g : g + group] = (np.clip(np.rint(w / s) + z, 0, top) - z) * s
        return q

    def inputs_of(p):  # H and mean |x|; for an expert with few tokens including its prior, which counts as `in` tokens
        g = h[p]
        H, x = (g[m][()].astype("f8") for m in ("hessian", "mean_abs"))
        c, n = float(g["count"][()]), len(x)
        if c >= n or "prior" not in g:
            return H, x
        g = g["prior"]
        return H + (n - c) * g["hessian"][()] / float(g["count"][()]), (c * x + (n - c) * g["mean_abs"][()]) / n

    def loss(p, s):
        v = (weight(a, p) * s).astype("f4").astype("f8")
        e = (v - nearest(v)) / s
        return np.sum(e @ inputs_of(p)[0] * e)

    want, used = {}, []
    for i in inputs:
        source, readers = i.split("=") if "=" in i else i.split("<")[::-1]
        readers = readers.split(",")
        x = inputs_of(max(readers, key=lambda p: h[p]["count"][()]))[1]
        all_ = np.array([[loss(p, factors(x, r / 20)) for p in readers] for r in range(20)])
        best = all_.sum(1).argmin()
        used.append(best)
        s = factors(x, best / 20)
        for k, p in enumerate(readers):
            W = weight(a, p)
            whole = np.sum(W @ inputs_of(p)[0] * W)
            got = rows["/" + p]
            assert got[0] == best / 20, (p, got, best)
            assert abs(got[1] * whole / all_[0, k] - 1) < 1e-4 and abs(got[2] * whole / all_[best, k] - 1) < 1e-4, (
                p,
                got,
            )
            want[p] = want.get(p, W) * s
        if "<" in i:
            n = len(s)
            W = want.get(source, weight(a, source)).copy()
            W[-n:] /= s[:, None]
            want[source] = W
            if "bias" in a[source]:
                c = a[source]["bias"][()].astype("f8")
                c[-n:] /= s
                assert abs(b[source]["bias"][()] - c).max() <= 2**-23 * abs(c).max(), source
        else:
            for m in set(a[source]) & {"weight", "bias"}:
                o = float(name.startswith("gemma") and m == "weight")
                c = (a[source][m][()].astype("f8") + o) / s - o
                assert abs(b[source][m][()] - c).max() <= 2**-23 * (abs(c) + 1).max(), (source, m)
    assert max(used) > 0, used  # otherwise nothing is tested
    for p, W in want.items():
        assert abs(b[p]["weight"][()] - W).max() <= 2**-23 * abs(W).max(), p


def clipped(before, after, said):
    scaled, clipped = h5py.File(before), h5py.File(after)
    group, seen = 16, 0
    rows = {l.split("\t")[0]: [float(x) for x in l.split("\t")[1:]] for l in open(said) if l.startswith("/")}
    assert len(rows) == 14, rows
    for p, (ratio, nearest, better, best, share) in rows.items():
        v, w = scaled[p]["weight"][()], clipped[p]["weight"][()]
        if p.endswith(("q_proj", "k_proj")):
            assert np.array_equal(v, w) and share == 0 and best == better
            continue
        n = 0
        for g in range(0, v.shape[1], group):
            x, y = v[:, g : g + group], w[:, g : g + group]
            top, most = abs(x).max(1), abs(y).max(1)
            i = np.rint(20 * (1 - most / top))
            assert (abs(1 - most / top - i / 20) < 1e-6).all() and (i < 10).all(), p
            assert np.array_equal(np.clip(x, -most[:, None], most[:, None]), y), p
            n += (i > 0).sum()
        groups = v.shape[0] * -(-v.shape[1] // group)
        assert abs(n / groups - share) < 1e-5, (p, n / groups, share)
        seen += n
    assert seen > 100, seen


def table(f, column):
    rows = [l.rstrip("\n").split("\t") for l in open(f) if l[:1] in "/l"]
    return {r[0]: float(r[rows[0].index(column)]) for r in rows[1:]}


def no_worse(said):
    old, new = (table(f, "error") for f in ("before", "after"))
    near, best = (table(said, c) for c in ("nearest", "scaled"))
    assert len(near) == 12
    for p in near:  # rows of up_proj are scaled, too, so they have other weights there
        assert abs(old[p] / near[p] - 1) < 1e-4 and ("up_proj" in p or abs(new[p] / best[p] - 1) < 1e-4), (
            p,
            old[p],
            near[p],
            new[p],
            best[p],
        )


def changed(name, change):
    with copied("llama-gqa-h.h5", name) as f:
        change(f)


def none(f):
    del f["model"]


def one_input():
    q = "model/layers/0/self_attn/q_proj"

    def narrow(f):
        for m in "hessian", "absmax", "mean_abs":
            a = f[q][m][()]
            del f[q][m]
            f[q][m] = a[:8, :8] if a.ndim == 2 else a[:8]

    def crooked(f):
        a = f[q]["hessian"][()]
        a[3, 5] += 1e6
        del f[q]["hessian"]
        f[q]["hessian"] = a

    def without(f):
        del f[q]["mean_abs"]

    for change in narrow, crooked, without, none:
        changed(change.__name__ + ".h5", change)


def rows_of_values():
    a, b = h5py.File("gpt2.h5"), h5py.File("clipped-gpt2.h5")
    x, y = (f["transformer/h/0/attn/c_attn/weight"][()] for f in (a, b))
    n = len(x) // 3
    assert np.array_equal(x[: 2 * n], y[: 2 * n]) and (abs(y[2 * n :]) < abs(x[2 * n :])).sum() > 20


def no_input_worse(ref, name):
    a, h = h5py.File(f"{ref}/{name}.h5"), h5py.File(f"{name}-h.h5")
    sums = {}
    for l in open(f"{name}.said"):
        if l[0] != "/":
            continue
        p, r, x, y = l.split("\t")
        W = a[p]["weight"][()].astype("f8")
        whole = np.sum(W @ h[p]["hessian"][()] * W)
        key = p.rsplit("/", 1)[0] + (
            p.rsplit("/", 1)[1] if "down" in p or "o_proj" in p or "fc2" in p or "out_proj" in p else ""
        )
        if "expert" in p:
            continue  # their Hessians have a prior
        t = sums.setdefault(key, [0, 0])
        t[0] += float(x) * whole
        t[1] += float(y) * whole
    assert len(sums) >= 3
    for k, (x, y) in sums.items():
        assert y <= x * (1 + 1e-6), (k, x, y)


def bf16():
    f = h5py.File("half.h5")["model/layers/0/mlp/up_proj/weight"]
    assert f.id.get_type().get_size() == 2


def faults(model):
    with copied(model, "nan.h5") as f:
        f["model/layers/1/mlp/down_proj/weight"][2, 3] = float("nan")
