"""conventions.py -- Python of tests/conventions.t"""

import h5py
import numpy as np

from lib.h5 import copied, numbers, read


def change(path, edit):
    with copied("t1.h5", path) as f:
        edit(f)


def cut(f, k):
    a = dict(f["tokens"].attrs)
    d = f["tokens"][:k]
    del f["tokens"], f["bytes"]
    f["tokens"] = d
    f["tokens"].attrs.update(a)
    f["bytes"] = np.ones(k, "u2")


def within(path, k):
    change(path, lambda f: (cut(f, k), f["tokens"].attrs.__setitem__("newline", 2)))


def make():
    with copied("prose1.h5", "prose0.h5") as f:
        f["tokens"].attrs["add_bos"] = 0
    with copied("prose1.h5", "t1.h5") as f:
        f["tokens"][...] = f["tokens"][...] % 58 + 3
        f["tokens"].attrs.update(vocab=61, bos_id=1)

    n = h5py.File("t1.h5")["tokens"].size

    change("plain.h5", lambda f: (cut(f, n - 1), f["tokens"].attrs.__setitem__("newline", 0)))

    for k in (190, 191, 192, 193):
        within(f"within{k}.h5", k)
    change("odd.h5", lambda f: f["tokens"].attrs.__setitem__("newline", 3))
    for name in ("position", "index"):
        change(name + ".h5", lambda f: f.__setitem__(name, np.arange(n, dtype="i4")))
    change("sequence.h5", lambda f: f.__setitem__("sequence", np.array([0, 170, n], "i8")))
    change("one.h5", lambda f: (cut(f, 170), f["tokens"].attrs.__setitem__("newline", 0)))

    def rest(f):
        a = dict(f["tokens"].attrs)
        d = f["tokens"][170:]
        del f["tokens"], f["bytes"]
        f["tokens"] = d
        f["tokens"].attrs.update(a)
        f["bytes"] = np.ones(n - 170, "u2")

    change("two.h5", rest)


def targets(row):
    want, got = h5py.File("prose1.h5")["test/" + row][...], read("r.h5", "nll_of_target")
    assert want.shape == got.shape and np.abs(want - got).max() < 1e-4, (want.shape, got.shape)
    v = numbers("out")
    assert v["tokens"] == len(got) and abs(v["nll"] - want.astype("f8").mean()) < 1e-5
    assert abs(v["bits_per_byte"] - v["nll"] / np.log(2)) < 1e-6, "a byte a target"
    w = read("r.h5", "window")
    assert w[0] == 0 and set(np.diff(w)) <= {0, 1} and w[-1] > 0


def errors_over_windows():
    k, i = h5py.File("k.h5"), h5py.File("i-k.h5")
    w = k["window"][...]

    def se(x):
        n, s = w.max() + 1, np.bincount(w, x - x.mean())
        return np.sqrt(n / (n - 1) * (s * s).sum()) / len(x)

    d = k["nll_of_target"][...] - k["nll_of_reference"][...]
    a, p, b = (numbers(f) for f in "kpb")
    nll, kl = i["nll_of_target"][...] - k["nll_of_target"][...], i["kl"][...] - k["kl"][...]
    want = [
        (a["kl_se_windows"], se(k["kl"][...])),
        (a["reference_nll_delta_se_windows"], se(d)),
        (p["paired_nll_delta_se_windows"], se(d)),
        (b["paired_nll_delta"], nll.mean()),
        (b["paired_nll_delta_se_windows"], se(nll)),
        (b["paired_kl_delta"], kl.mean()),
        (b["paired_kl_delta_se_windows"], se(kl)),
        (b["paired_kl_delta_se"], np.sqrt(kl.var() / (len(kl) - 1))),
    ]
    for got, x in want:
        assert x and abs(got - x) < 1e-3 * abs(x), want
    assert b["paired_kl_delta"] < 0


def rows():
    print("\n".join(h5py.File("prose1.h5")["test"]))


def newline():
    print(h5py.File("b.h5")["tokens"].attrs["newline"])


def mean_over_texts():
    v = [numbers(f) for f in ("all", "one", "two")]
    n = [x["tokens"] for x in v]
    assert n[0] == n[1] + n[2] and abs(v[0]["nll"] * n[0] - v[1]["nll"] * n[1] - v[2]["nll"] * n[2]) < 1e-5 * n[0]


def count(path):
    print(h5py.File(path)["model/layers/0/mlp/up_proj/count"][()])


def ids():
    print(h5py.File("t1.h5")["tokens"].size)


def shards():
    a, b = (h5py.File(f)["model/layers/0/mlp/up_proj"] for f in ("s.h5", "sum.h5"))
    x, y = a["hessian"][...].astype("f8"), b["hessian"][...].astype("f8")
    assert a["count"][()] == b["count"][()] and np.abs(x - y).max() < 1e-5 * np.abs(x).max()


def slid(ids):
    """Positions of windows of 100 with stride 40, over the ids and a BOS."""
    n, rows = int(ids) + 1, 0
    for b in range(0, n, 40):
        rows += min(100, n - b)
        if b + 100 >= n:
            break
    return rows
