"""vq8.py -- Python of tests/vq8.t"""

import shutil

import h5py
import numpy as np

from lib.h5 import copied, create


def make():
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 320).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    with h5py.File("odd.h5", "w") as f:  # tiles at both edges extend beyond the layer
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"
        f["a/weight"] = np.random.default_rng(2).standard_normal((23, 99)).astype("f4")


def entry(code, place):
    x = (code.astype("u4") * np.uint32(8) + place.astype("u4")) * np.uint32(2654435761)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x45D9F3B)
    x = (x ^ x >> np.uint32(16)) >> np.uint32(8)
    return np.where(code > 0, x.astype("f4") * np.float32(2**-23) - np.float32(1), np.float32(0))


def storage(o):
    x = o.attrs.get("storage", "")
    return x.decode() if isinstance(x, bytes) else x


def plain(source, target, layer=None):
    shutil.copy(source, target)
    found = []
    with h5py.File(target, "r+") as f:
        f.visititems(lambda name, o: found.append(name) if storage(o).startswith("vq") else None)
        for name in found:
            g = f[name]
            m, n = int(g["codes"].attrs["rows"]), int(g["codes"].attrs["columns"])
            code, scale, group = g["codes"][...], g["scale"][...], int(g.attrs["group"])
            o, i = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
            s = scale.reshape(-1)[0] if group < 0 else scale[o, i // group if group else 0 * i]
            bits = int(g.attrs["bits"])
            if storage(g) == "vq8":
                assert bits == 6 and code.shape == (-(-m // 2), -(-n // 4)) and code.max() < 60
                w = entry(code[o // 2, i // 4], o % 2 * 4 + i % 4) * s
            else:
                assert bits == 16 and code.shape == (-(-m // 8), 2 * n)
                code = code[:, 0::2] + code[:, 1::2].astype("u4") * 256
                k = code[o // 8, i]
                w = entry(np.where(o % 8 < 4, k % 250, k // 250), o % 8) * s
            assert len(np.unique(code)) > 5
            if layer and name.endswith(layer):
                print("%.6g" % ((bits * code.size + 32 * scale.size) / (m * n)))
            for d in "codes", "scale":
                del g[d]
            for a in "storage", "group", "bits", "compute", "scale_dtype":
                g.attrs.pop(a, None)
            g["weight"] = w.astype("f4")
    assert found


def changed(name, change, source="q.h5"):
    with copied(source, name + ".h5") as f:
        change(f["model/layers/0/mlp/down_proj"])


def wide(name, change):
    changed(name, change, "q16.h5")


def cut(g):
    codes, attributes = g["codes"][:15], dict(g["codes"].attrs)
    del g["codes"]
    g["codes"] = codes
    g["codes"].attrs.update(attributes)


def faults():
    changed("code", lambda g: g["codes"].__setitem__((3, 2), 60))
    changed("word", lambda g: g["packed"].__setitem__((3, slice(None)), 0xFFFFFFFF), "p.h5")
    changed("rows", lambda g: g["codes"].attrs.__setitem__("rows", 34))
    changed("columns", lambda g: g["codes"].attrs.__delitem__("columns"))

    changed("few", cut)
    changed("compute", lambda g: (g.attrs.__setitem__("compute", "vq8"), g.__setitem__("scale8", [1.0])))
    wide("wide", lambda g: g["codes"].__setitem__((3, slice(4, 6)), (62500 % 256, 62500 // 256)))
    wide("last", lambda g: g["codes"].__setitem__((3, slice(4, 6)), (62499 % 256, 62499 // 256)))
    wide("bits", lambda g: g.attrs.modify("bits", 8))
    wide("nobits", lambda g: g.attrs.__delitem__("bits"))
    wide("byte", lambda g: g["codes"].attrs.__delitem__("columns"))
    changed("single", lambda g: g.attrs.update(storage="int6"))


def words(path, name):
    p = h5py.File(path)[name]
    print(p.shape, p.attrs["columns"], p.attrs["rows"])
