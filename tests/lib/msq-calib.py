"""msq-calib.py -- Python of tests/msq-calib.t"""

import h5py
import numpy as np

from lib.h5 import copied, create


def edge(b):
    return (
        np.float32(0)
        if b == 0
        else np.uint32(((127 - 24) * 64 + b - 1) << 17).view("f4") if b < 3074 else np.float32(np.inf)
    )


def scales(model, hessian, largest, percentile, *formats):
    top, percentile = np.float32(largest), float(percentile)
    f, h, n = h5py.File(model), h5py.File(hessian), []

    def look(name, g):
        if isinstance(g, h5py.Group) and "weight" in g and g["weight"].ndim == 2 and "layers" in name:
            s = h[name]
            k = np.delete(np.arange(len(s["absmax"])), g["split_index"][...] if "split_index" in g else [])
            below = np.cumsum(s["histogram"][...])
            b = 0 if percentile == 0 else int(np.argmax(below * 100.0 >= below[-1] * percentile)) + 1
            want = min(edge(b), s["absmax"][...][k].max()) / top
            assert g["act_scale"][...] == [want] and g["act_scale"].dtype == "f4", (name, g["act_scale"][...], want)
            assert (g.attrs["act_mode"], g.attrs["act_format"]) == ("static-tensor", *formats)
            n.append(name)

    f.visititems(look)
    assert len(n) == 14, n


def clipped(model):
    m = h5py.File(model)
    t = h5py.File("t.h5")["tokens"]
    ids = np.concatenate([[t.attrs["bos_id"]] if t.attrs["add_bos"] else [], t[...]]).astype(int)
    ids = ids[: len(ids) // 32 * 32]
    e = m["model/embed_tokens/weight"][...].astype("f8")[ids]
    x = np.abs(e / np.sqrt((e**2).mean(1, keepdims=True) + 1e-5) * m["model/layers/0/input_layernorm/weight"][...])
    clip = h5py.File("c.h5")["model/layers/0/self_attn/q_proj/act_scale"][0] * 7.0
    assert (x < clip * (1 + 1e-6)).mean() >= 0.999 > (x < clip / (1 + 1 / 64) * (1 - 1e-6)).mean()


def weights_stay(model):
    a, b, n = h5py.File(model), h5py.File("a.h5"), []

    def look(name, d):
        if isinstance(d, h5py.Dataset):
            assert d.dtype == b[name].dtype and np.array_equal(d[()], b[name][()]), name
            n.append(name)

    a.visititems(look)
    assert len(n) > 20 and a["lm_head/weight"].shape and "act_mode" not in b["lm_head"].attrs


def attributes(want, *paths):
    for p in paths:
        a = h5py.File(p)["model/layers/1/mlp/up_proj"].attrs
        assert " ".join(str(a.get("act_" + k)) for k in ("mode", "format", "clip")) == want, (p, dict(a))


def experts():
    f, h, few = h5py.File("am.h5"), h5py.File("hm.h5"), 0

    def look(name, g):
        nonlocal few
        if "act_scale" in g and "experts" in name:
            k = h[name]
            p = k.get("prior")
            few += p is not None
            want = max(k["absmax"][...].max(), p["absmax"][...].max() if p is not None else 0)
            assert abs(g["act_scale"][0] * 127 / want - 1) < 1e-6, name

    f.visititems(lambda name, g: look(name, g) if isinstance(g, h5py.Group) else None)
    assert few


def percentiles():
    f, h, few = h5py.File("am.h5"), h5py.File("hm.h5"), 0

    def edge(b):
        return np.float32(0) if b == 0 else np.uint32(((127 - 24) * 64 + b - 1) << 17).view("f4")

    def look(name, g):
        nonlocal few
        if "act_scale" in g and "experts" in name:
            k = h[name]
            p = k.get("prior")
            c, n = k["count"][()], len(k["absmax"])
            count = k["histogram"][...].astype("f8")
            top = k["absmax"][...].max()
            if p is not None:
                few += 1
                count += (n - c) / p["count"][()] * p["histogram"][...]
                top = max(top, p["absmax"][...].max())
            below = np.cumsum(count)
            want = min(edge(int(np.argmax(below * 100 >= below[-1] * 90)) + 1), top)
            assert abs(g["act_scale"][0] * 127 / want - 1) < 1e-6, (name, g["act_scale"][0] * 127, want)

    f.visititems(lambda name, g: look(name, g) if isinstance(g, h5py.Group) else None)
    assert few


def faults(g):
    with copied("a.h5", "lost.h5") as f:
        del f["model/layers/1/mlp/up_proj/act_scale"]
    with copied("d.h5", "wide.h5") as f:
        f["model/layers/1/mlp/up_proj"].attrs["act_clip"] = 1.5
    with copied("a.h5", "odd.h5") as f:
        f["model/layers/1/mlp/up_proj"].attrs["act_clip"] = 0.5
    with create("w.h5", "model") as f:
        f["a/weight"] = h5py.File(g)["lm_head/weight"][...]


def head():
    f = h5py.File("head.h5")
    assert len(f["lm_head/act_scale"]) == 1 and "act_scale" not in f["model/layers/0/mlp/up_proj"]


def embeddings():
    f = h5py.File("x.h5")
    assert "act_mode" in f["lm_head"].attrs and "act_mode" not in f["model/embed_tokens"].attrs


def static_kept():
    a, b = (h5py.File(p)["model/layers/0/mlp/up_proj"] for p in ("c.h5", "w8.h5"))
    assert a["act_scale"][0] == b["act_scale"][0] and b.attrs["act_format"] == "int4" and "codes" in b


def of_quantized():
    f, h, c = (h5py.File(p)["model/layers/1/mlp/up_proj"] for p in ("cq.h5", "hq.h5", "codes.h5"))
    assert (
        abs(f["act_scale"][0] * 127 / h["absmax"][...].max() - 1) < 1e-6
        and (f["codes"][...] == c["codes"][...]).all()
        and "weight" not in f
    )


def split():
    f = h5py.File("s.h5")
    assert any("split_index" in f["model/layers/%d/mlp/down_proj" % i] for i in (0, 1))
