"""fbq-run.py -- Python of tests/fbq-run.t"""

import shutil

import h5py
import numpy as np
from ptqtools import Layer

from lib.h5 import copied, create


def matrix(g):
    return Layer(g.id).weight.astype("f8")


def whole(g):
    w = matrix(g)
    return w + matrix(g["branch_b"]) @ matrix(g["branch_a"]) if "branch_a" in g else w


def layers(f):
    out = []
    f.visititems(
        lambda name, o: (
            out.append(name) if isinstance(o, h5py.Group) and "/layers/" in name and name.endswith("_proj") else None
        )
    )
    return out


def plain(result, source, target):
    shutil.copy(source, target)
    with h5py.File(result) as a, h5py.File(target, "r+") as b:
        assert layers(a)
        for p in layers(a):
            w = whole(a[p]).astype("f4")
            del b[p]["weight"]
            b[p]["weight"] = w


def look(out, source, hessian, layers_file, bits):
    a, b, h = h5py.File(source), h5py.File(out), h5py.File(hessian)
    said = {l.split("\t")[0]: l.rstrip("\n").split("\t") for l in open(layers_file) if l.startswith("/")}
    head = [l.rstrip("\n").split("\t") for l in open(layers_file) if l.startswith("layer")][0]
    for p in layers(b):
        w, q, H = a[p]["weight"][()].astype("f8"), b[p], h[p]["hessian"][()].astype("f8")
        e, m, n, row = w - whole(q), *w.shape, dict(zip(head, said["/" + p]))
        assert set(q) >= {"codes", "scale", "branch_a", "branch_b"} and "weight" not in q, p
        loss = np.trace(e @ H @ e.T) / np.trace(w @ H @ w.T)
        assert abs(float(row["error"]) / loss - 1) < 2e-3, (p, row["error"], loss)
        assert float(row["error"]) <= float(row["start"]) * 1.0001, (p, row)
        if row["bound"] != "-":
            cell = q["scale"][()].repeat(8, 1)[:, :n] * (0.5 + 2.0**-19)
            assert (abs(e) <= cell).all() and abs((abs(e) / cell).max() - float(row["bound"])) < 1e-4, p
        want = eval(bits, {"m": m, "n": n})
        assert abs(float(row["bits"]) - want) < 1e-4 * want, (p, row["bits"], want)


def codes_stay(layer):
    a, b = h5py.File("gptq.h5"), h5py.File("after.h5")
    for m in "codes", "scale", "zero":
        assert np.array_equal(a[layer][m][()], b[layer][m][()])


def less_branch(result, source, target):
    shutil.copy(source, target)
    with h5py.File(result) as a, h5py.File(target, "r+") as b:
        for p in layers(a):
            b[p]["weight"][...] = b[p]["weight"][()] - matrix(a[p]["branch_b"]) @ matrix(a[p]["branch_a"])


def same_codes(first, second):
    # W - B A is summed in another order: a weight can be halfway between two codes
    a, b = h5py.File(first), h5py.File(second)
    same = [np.mean(a[p]["codes"][()] == b[p]["codes"][()]) for p in layers(a)]
    assert np.mean(same) > 0.999, same
    assert all(np.allclose(a[p]["scale"][()], b[p]["scale"][()], rtol=1e-3) for p, s in zip(layers(a), same) if s == 1)
    assert any(s == 1 for s in same)


def part_without_branch():
    raw = open("parts", "rb").read()
    n = at = 0
    while n < 3:
        at += 128 + int(raw[at + 35 : at + 55])
        n += 1
    open("cut.h5.part", "wb").write(raw[: at + 100])


def four_columns():
    with create("four.h5", "model") as f:
        for n, rows in ("a", 16), ("b", 4):
            f[n + "/weight"] = np.ones((rows, 32), "f4")


def lone_layer():
    r = np.random.default_rng(1)
    w = r.standard_normal((48, 64)).astype("f4")
    x = r.standard_normal((300, 64))
    x[:, [3, 40]] *= 60
    s = w[:, [3, 40]].astype("f2")
    w[:, [3, 40]] = 0
    with create("sp.h5", "model") as f:
        f["a/weight"], f["a/split_index"], f["a/split_weight"] = w, np.array([3, 40], "i4"), s
    with create("sph.h5", "hessian") as f:
        f["a/hessian"], f["a/count"] = (x.T @ x).astype("f4"), np.int64(300)


def columns_out():
    f = h5py.File("spo.h5")

    w = matrix(f["a"]), whole(f["a"])
    assert not w[0][:, [3, 40]].any() and not w[1][:, [3, 40]].any()


def change(name, f):
    with copied("fbquant.h5", name) as h:
        f(h["/model/layers/0/mlp/up_proj"])


def rank(g):
    w = g["branch_b/weight"][:, :2]
    del g["branch_b/weight"]
    g["branch_b/weight"] = w


def nan(g):
    g["branch_a/weight"][1, 2] = float("nan")


def loop(g):
    g.copy("branch_a", "a")
    g.move("a", "branch_a/branch_a")


def bias(g):
    g["branch_a/bias"] = [0.0, 1, 2]


def huge(g):
    for m, shape in ("branch_a", (100, 32)), ("branch_b", (44, 100)):
        del g[m]["weight"]
        g[m]["weight"] = __import__("numpy").zeros(shape, "f4")


def faults():
    change("no-b.h5", lambda g: g.__delitem__("branch_b"))

    change("rank.h5", rank)

    change("nan.h5", nan)

    change("loop.h5", loop)

    change("bias.h5", bias)

    change("huge.h5", huge)
    change("empty.h5", lambda g: g["branch_a"].__delitem__("weight"))
