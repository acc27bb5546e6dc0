"""hessian-accum.py -- Python of tests/hessian-accum.t"""

import h5py
import numpy as np

from lib.h5 import create, read


def make():
    r = np.random.default_rng(1)

    with create("t.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 61, 1000).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    x = r.standard_normal((70, 33)).astype("f4")
    with create("act.h5", "activations") as f:
        f["a/input"], f["b/input"] = x, x.astype("f2")
        f["c"] = f["a"]
    b = h5py.h5t.IEEE_F16LE.copy()
    b.set_fields(15, 7, 8, 0, 7)
    b.set_ebias(127)
    bits = (x.view("u4") >> 16).astype("u2")
    with create("bf16.h5", "activations") as f:
        f.create_group("a")
        f.create_group("b")
        d = h5py.h5d.create(f.id, b"a/input", b, h5py.h5s.create_simple(x.shape))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, b)
        f["b/input"] = (bits.astype("u4") << 16).view("f4")
    with create("int.h5", "activations") as f:
        f["a/input"] = np.ones((4, 4), "i4")
    with create("nan.h5", "activations") as f:
        y = x.copy()
        y[3, 4] = np.nan
        f["a/input"] = y


def near(one, other, limit):
    a, b = h5py.File(one), h5py.File(other)
    limit, names = float(limit), []

    def look(name, d):
        if isinstance(d, h5py.Dataset) and name != "config":
            x, y = a[name][...].astype("f8"), d[...].astype("f8")
            names.append(name)
            if name.endswith("histogram") and limit:
                x, y = x.sum(), y.sum()  # numbers at an edge may be in the next bin
            assert x.shape == y.shape and np.abs(x - y).max() <= limit * np.abs(x).max(), name

    b.visititems(look)
    assert names


def numbers(model):
    m, f = h5py.File(model), h5py.File("h.h5")
    ids = np.concatenate([[1], read("t.h5", "tokens")])[: 31 * 32]
    e = m["model/embed_tokens/weight"][...].astype("f8")[ids]
    x = e / np.sqrt((e**2).mean(1, keepdims=True) + 1e-5) * m["model/layers/0/input_layernorm/weight"][...]
    g = f["model/layers/0/self_attn/q_proj"]
    for name, want in (("hessian", x.T @ x), ("absmax", np.abs(x).max(0)), ("mean_abs", np.abs(x).mean(0))):
        assert np.abs(g[name][...] - want).max() < 1e-6 * np.abs(want).max(), name


def all_layers():
    f = h5py.File("h.h5")
    assert f.attrs["ptq_kind"] == "hessian" and "config" in f
    for i in "01":
        b = f["model/layers/" + i]
        q = b["self_attn/q_proj"]
        assert (
            q == b["self_attn/k_proj"] == b["self_attn/v_proj"]
            and b["mlp/up_proj"] == b["mlp/gate_proj"]
            and q != b["mlp/up_proj"]
        )
        for g, n in ((q, 32), (b["self_attn/o_proj"], 32), (b["mlp/up_proj"], 32), (b["mlp/down_proj"], 44)):
            h = g["hessian"][...]
            assert (
                h.dtype == "f4"
                and h.shape == (n, n)
                and (h == h.T).all()
                and np.linalg.eigvalsh(h.astype("f8")).min() > -1e-3 * h.max()
            )
            assert g["count"][()] == 31 * 32 and g["count"].dtype == "i8"
            assert g["absmax"].shape == g["mean_abs"].shape == (n,) and (g["mean_abs"][...] <= g["absmax"][...]).all()
            assert (np.diag(h) >= g["absmax"][...] ** 2 * 0.999).all() and (
                np.diag(h) <= 31 * 32 * g["absmax"][...] ** 2 * 1.001
            ).all()
    assert "lm_head" not in f and "embed_tokens" not in f["model"]


def shared():
    b = h5py.File("s.h5")["model/layers/1"]
    assert b["self_attn/q_proj"] == b["self_attn/v_proj"] != b["mlp/up_proj"]


def set_range(path, *lines):
    a = h5py.File(path, "r+").attrs
    digest = a["calibration"].split()[0]
    a["calibration"] = "\n".join(
        (digest if d == "." else d * 64) + " " + r for d, r in (l.split(" ", 1) for l in lines)
    )


def bf16_inputs():
    for p, whole in (("h.h5", False), ("bf.h5", True)):
        a = read(p, "model/layers/1/mlp/down_proj/absmax").view("u4")
        assert (a % 65536 == 0).all() == whole


def activations():
    x, f = h5py.File("act.h5"), h5py.File("a.h5")
    for n in "ab":
        v = x[n]["input"][...].astype("f8")
        assert np.abs(f[n]["hessian"][...] - v.T @ v).max() < 1e-4 and f[n]["count"][()] == 70
        assert np.allclose(f[n]["fourth"][...], (v**4).sum(0), rtol=1e-13, atol=0) and f[n]["fourth"].dtype == "f8"
        bins = (np.abs(v).astype("f4").view("u4") >> 17).astype(int) - (127 - 24) * 64 + 1  # 64 per octave from 2^-24
        assert (f[n]["histogram"][...] == np.bincount(np.clip(bins.ravel(), 0, 3073), minlength=3074)).all() and f[n][
            "histogram"
        ].dtype == "i8"
    assert f["a"] == f["c"]


def bf16_activations():
    f, x = h5py.File("b.h5"), abs(read("bf16.h5", "b/input").astype("f8"))
    a, b = f["a"], f["b"]
    assert (abs(a["hessian"][...].astype("f8") - b["hessian"][...]) <= (2 * 18 + 2) * 2.0**-24 * (x.T @ x)).all()
    assert a["count"][()] == 70 and a["hessian"][...].any()
    for n in "absmax", "mean_abs", "fourth", "histogram":
        assert (a[n][...] == b[n][...]).all(), n


def to_the_count():
    a, s = h5py.File("a.h5"), h5py.File("s.h5")
    for n in "ab":
        assert (a[n]["histogram"][...] == s[n]["histogram"][...]).all()


def lacks(member):
    del h5py.File("lacks.h5", "r+")["b"][member]


def faults():
    with h5py.File("a.h5") as a:
        for name, m, i, v in (
            ("minus", "histogram", 5, -1),
            ("many", "histogram", 5, 1 << 40),
            ("nan", "fourth", 3, float("nan")),
        ):
            with h5py.File("bad-" + name + ".h5", "w") as f:
                f.attrs.update(a.attrs)
                a.copy("a", f)
                f["a"][m][i] = v


def after_attention():
    a, b = h5py.File("plain-h.h5"), h5py.File("kv-h.h5")
    p = "model/layers/0/self_attn/%s_proj/hessian"
    assert np.array_equal(a[p % "q"], b[p % "q"]) and not np.array_equal(a[p % "o"], b[p % "o"])
