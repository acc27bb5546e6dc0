"""dpq-run.py -- Python of tests/dpq-run.t"""

import hashlib
import shutil
from statistics import NormalDist

import h5py
import numpy as np
from ptqtools import Layer

from lib.h5 import copied, create, layers_of, read


def make(model, other):
    r = np.random.default_rng(1)

    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 60, 2000).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    # a layer without a model, with a dead channel and a row of zeros
    w, x = r.standard_normal((24, 100)).astype("f4"), r.standard_normal((400, 100)) @ r.standard_normal((100, 100))
    x[:, 7] = 0
    w[3] = 0
    with create("layer.h5", "model") as f:
        f["a/weight"], f["a/note"] = w, np.arange(3)

    def hessian(path, h, count=400, absmax=np.abs(x).max(0)):
        with create(path, "hessian") as f:
            f["a/hessian"], f["a/count"], f["a/absmax"], f["a/mean_abs"] = (
                h.astype("f4"),
                np.int64(count),
                absmax.astype("f4"),
                absmax.astype("f4"),
            )

    h = x.T @ x
    hessian("hess.h5", h)
    hessian("none-seen.h5", h, 0)
    hessian("small.h5", h[:50, :50], absmax=np.ones(50))
    bad = h.copy()
    bad[5, 9] = bad[9, 5] = np.nan
    hessian("nan-hess.h5", bad)
    bad = h.copy()
    bad[5, 9] = np.inf
    hessian("inf-hess.h5", bad)
    bad = -h
    bad[np.arange(100), np.arange(100)] = np.diag(h)
    hessian("indefinite.h5", bad * 100 - 99 * np.diag(np.diag(bad)))
    hessian("singular.h5", np.ones((100, 100)))
    hessian("absmax.h5", h, absmax=np.full(100, np.nan))
    with create("nan.h5", "model") as f:
        v = w.copy()
        v[2, 3] = np.nan
        f["a/weight"] = v
    with create("inf.h5", "model") as f:
        v = w.copy()
        v[2, 3] = np.inf
        f["a/weight"] = v
    v = np.zeros((3, 8), "f4")
    v[0] = 14, 4.5, 9, 13, -4.5, -9, -13, 0.25
    v[1] = 7, 0.5, 1.5, 2.5, -0.5, -1.5, 3, 0
    with create("ties.h5", "model") as f:
        f["a/weight"] = v
    with create("act.h5", "model") as f:
        f["a/weight"], f["a/act_scale"] = w, np.float32([0.25])
        f["a"].attrs.update(act_format="int8", act_mode="static-tensor")
    with create("int.h5", "model") as f:
        f["a/weight"] = np.ones((4, 4), "i4")
    with create("no-layer.h5", "model") as f:
        f["a/norm"] = np.ones(4, "f4")
    with h5py.File("kind.h5", "w") as f:
        f["a/weight"] = w
    with create("version.h5", "model") as f:
        f.attrs["ptq_version"] = "2"
        f["a/weight"] = w
    with create("external.h5", "model") as f:
        f["a/weight"] = h5py.ExternalLink("layer.h5", "/a/weight")
    with create("big-endian.h5", "model") as f:
        f["a/weight"] = w.astype(">f4")
    with create("chunked.h5", "model") as f:
        f.create_dataset("a/weight", data=w.astype("f8"), chunks=(8, 50), compression=1)
    with create("order-bad.h5", "order") as f:
        f["a/order"] = np.zeros(100, "i4")
    with create("order-short.h5", "order") as f:
        f["a/order"] = np.arange(50, dtype="i4")


def integer_scales(path, most, saturated=False):
    """Scales are integers, and scale8 is max|w|/most of each row; some |(code - zero) scale| exceed 127, or none."""
    with h5py.File(path) as f:
        a = Layer(f["a"].id)
        assert a.scale_dtype == "u8" and a.storage == "uint4" and len(a.scale8) == len(a.codes)
        scale, zero = a.scale[:, a.group_index], a.zero[:, a.group_index].astype(int)
        assert (scale == scale.round()).all() and scale.min() >= 1 and scale.max() <= 17
        v = (a.codes - zero) * scale
        assert not np.array_equal(scale, np.ones_like(scale))
        assert (abs(v).max() > 127) == bool(saturated), abs(v).max()
        assert np.array_equal(a.weight, v.clip(-127, 127).astype("f4") * np.c_[a.scale8])
        w = read("layer.h5", "a/weight")
        assert np.allclose(a.scale8, np.where(abs(w).max(1), abs(w).max(1) / float(most), 1), rtol=1e-6)


def forget(path):
    """Removes the history of a file."""
    with h5py.File(path, "r+") as f:
        del f.attrs["history"]


def digest(path):
    """The digest of a file of at most 16 MiB (docs/format.md)."""
    with open(path, "rb") as f:
        return hashlib.sha256(hashlib.sha256(f.read()).digest()).hexdigest()


def grid(name):  # value of each code
    if name[0] == "e":
        x, y = int(name[1]), int(name[3])
        c = np.arange(2 ** (x + y))
        e, m = c >> y, c % 2**y
        v = np.where(e > 0, 2.0**e * (1 + m / 2**y), m / 2 ** (y - 1))
        return np.concatenate([v, -v])
    n = int(name[-1])
    if name[0] == "i":
        return np.arange(2**n - 1) - (2.0 ** (n - 1) - 1)
    h = 2 ** (n - 1)
    o = 0.5 * ((1 - 1 / (2 * (2**n - 1))) + (1 - 0.5 ** (n + 1)))
    q = NormalDist().inv_cdf
    up = [q(p) for p in np.linspace(o, 0.5, h + 1)[:-1]]
    down = [-q(p) for p in np.linspace(o, 0.5, h)[:-1]]
    return np.float32(np.array(down + [0] + up[::-1]) / up[0]).astype("f8")


def nearest(path, name):
    f = h5py.File(path)
    w = read("layer.h5", "a/weight").astype("f8")
    g, s, c = grid(name), f["a/scale"][...].astype("f8"), f["a/codes"][...]
    group = f["a"].attrs["group"]
    s = np.full(w.shape, s.item()) if group < 0 else np.repeat(s, group if group else 100, 1)[:, :100]
    assert (
        f["a"].attrs["storage"] == name
        and (group < 0 or (s[3] == 1).all())
        and (g[c[3]] == 0).all()
        and "zero" not in f["a"]
    )
    if group == 0:
        assert np.array_equal(
            f["a/scale"][:, 0], np.where(np.abs(w).max(1) > 0, np.abs(w).max(1) / g.max(), 1).astype("f4")
        )
    off = np.abs(g[c] * s - w)
    least = np.abs(g * s[..., None] - w[..., None]).min(2)
    assert (off <= least + 1e-12).all() and len(np.unique(c)) > min(len(g), 16) / 2, (off - least).max()


def fp4(path, reference, kind):
    f, ref = h5py.File(path)["a"], h5py.File(reference)
    assert f.attrs["group"] == (32 if kind == "mx" else 16) and f.attrs["scale_dtype"] == (
        "e8m0" if kind == "mx" else "e4m3fn"
    )
    assert np.array_equal(f["scale"][...], ref[kind + "_scale"][...]), "scale"
    assert np.array_equal(f["codes"][...], ref[kind + "_codes"][...]), np.argwhere(
        f["codes"][...] != ref[kind + "_codes"][...]
    )
    if kind == "nv":
        assert f["scale_tensor"].shape == (1,) and f["scale_tensor"][0] == ref["nv_tensor"][0]


def listed(t):  # the positive numbers of a type; f32:7: of at most 7 significant bits, 8 at most
    if ":" in t:
        x, bits = listed(t.split(":")[0]), int(t.split(":")[1])
        return x[np.frexp(x)[0] * 2.0**bits % 1 == 0]
    if t == "e8m0":
        return 2.0 ** np.arange(-127, 128)
    if t == "e4m3fn":
        c = np.arange(1, 127)
        return np.where(c < 8, c / 512, 2.0 ** (c // 8 - 7) * (1 + c % 8 / 8))
    if t == "f16":
        return np.arange(1, 0x7C00, dtype="u2").view("f2").astype("f8")
    assert t in ("bf16", "f32")
    return (np.arange(1, 0x7F80, dtype="u4") << 16).astype("u4").view("f4").astype("f8")


def scales(*paths):
    def nearest(all, x):
        i = np.clip(np.searchsorted(all, x), 1, len(all) - 1)
        return np.minimum(np.abs(all[i] - x), np.abs(all[i - 1] - x))

    w = read("layer.h5", "a/weight").astype("f8")
    for path in paths:
        f = h5py.File(path)["a"]
        name, t, group = f.attrs["storage"], f.attrs.get("scale_dtype", "f32"), f.attrs["group"]
        s = f["scale"][...].astype("f8")
        assert path.startswith(f"x-{name}-{t}") and f["scale"].dtype == "f4", path
        t = path.split("-")[2]
        assert np.isin(s, listed(t)).all(), path
        top = {"i": 7, "u": 15, "e": 12, "n": 6}[name[0]]
        uint = name[0] == "u"
        d = 1
        size = 100 if group <= 0 else group
        r = w.reshape(1, -1) if group < 0 else np.pad(w, ((0, 0), (0, -w.shape[1] % size))).reshape(-1, size)
        low, high = np.minimum(r.min(1), 0), np.maximum(r.max(1), 0)
        span = high - low if uint else np.maximum(-low, high)
        assert ("scale_tensor" in f) == t.startswith("e4m3fn"), path
        if "scale_tensor" in f:
            d = np.float32(listed(t).max() * top / (w.max() - w.min() if uint else np.abs(w).max()))
            assert f["scale_tensor"][0] == d, path
        q, zero = s.reshape(-1), span == 0
        x = span / top * float(d)
        if t == "e8m0":
            assert (
                q == np.where(zero, 1, 2.0 ** (np.floor(np.log2(np.where(zero, 1, span))) - np.floor(np.log2(top))))
            ).all(), path
        else:
            assert (np.abs(q - x) <= nearest(listed(t), x) + 1e-15)[~zero].all() and (q[zero] == 1).all(), path


def products_fit(path):
    f = h5py.File(path)["a"]
    s, z = f["scale"][...].astype("f8"), f["zero"][...].astype("f8")
    for x in s, z * s:
        assert np.array_equal(x, x.astype("f2").astype("f8"))
    assert z.max() > 8 and (s.astype("f2").view("u2") & 15 == 0).all() and len(np.unique(s)) > 20


def tree(path):
    y = {}

    def visit(n, o):
        y[n] = [
            sorted((k, str(v)) for k, v in o.attrs.items()),
            (o.shape, o.dtype, o[()].tobytes()) if isinstance(o, h5py.Dataset) else 0,
        ]

    with h5py.File(path) as f:
        f["model"].visititems(visit)
    return y


def alike(one, other):
    a, b = tree(one), tree(other)
    differ = sorted(n for n in set(a) | set(b) if a.get(n) != b.get(n))
    print(*differ[:3] or [sum(n.endswith("/codes") for n in a)])


def permuted(order, source, target):
    """A copy of the layer with its columns in this order."""
    with copied(source, target) as f:
        f["a/weight"][...] = f["a/weight"][()][:, read(order, "a/order")]


def permuted_codes(order, of_order, of_permuted):
    """The codes of the permuted layer, at their columns in the layer with an order."""
    o = read(order, "a/order")
    group = np.empty(len(o), int)
    group[o] = np.arange(len(o)) // 32
    assert (read(of_order, "a/group_index") == group).all()
    assert (read(of_order, "a/codes")[:, o] == read(of_permuted, "a/codes")).all()
    for member in "a/scale", "a/zero":
        assert (read(of_order, member) == read(of_permuted, member)).all()


def plain(source, target):
    shutil.copy(source, target)
    with h5py.File(source) as q, h5py.File(target, "r+") as f:
        for n in layers_of(q):
            del f[n]
            f[n + "/weight"] = Layer(q[n].id).weight


def mapped(e1m3, int5):
    a, b = h5py.File(e1m3), h5py.File(int5)
    layers = layers_of(a)
    for n in layers:
        c = a[n]["codes"][...].astype(int)
        e, m = c >> 3 & 1, c & 7
        value = np.where(c >> 4, -1, 1) * np.where(e, 2 * (1 + m / 8), m / 4)
        assert (value * 4 == b[n]["codes"][...].astype(int) - 15).all() and (
            a[n]["scale"][...] == b[n]["scale"][...] * 4
        ).all(), n
    print(len(layers))


def codes(path):
    print(*(c for r in h5py.File(path)["a/codes"][:2] for c in r))


def act(path):
    g = h5py.File(path)["a"]
    a = g.attrs
    print(a.get("act_format"), a.get("act_mode"), *(g["act_scale"] if "act_scale" in g else []))


def act_scale(divisor, *power_of_two):
    s = np.float32(read("hess.h5", "a/absmax").max() / np.float32(divisor))
    print(np.float32(2 ** np.ceil(np.log2(s))) if power_of_two else s)


def readable():
    f = h5py.File("file.h5")
    assert f["model/layers/1/mlp/up_proj/scale8"].shape == (1,)


def no_absmax():
    with copied("mh.h5", "no-absmax.h5") as f:
        del f["model/layers/1/mlp/down_proj/absmax"]
