"""reader.py -- Python of tests/reader.t"""

import itertools
import json

import numpy as np
import ptqtools

from lib.checkpoint import folder, identical
from lib.h5 import copied, create, formats, layers_of, plain, set_config


def same_values():
    """The tool lists the values of the valid codes of every format."""
    table = {}
    with open("values.json") as f:
        for r in json.load(f)["rows"]:
            table.setdefault(r["format"], {})[r["code"]] = np.float32(r["value"])
    assert sorted(table) == sorted(ptqtools.grids)
    for name, grid in ptqtools.grids.items():
        found = {c: v for c, v in enumerate(grid) if not np.isnan(v)}
        assert grid.dtype == "f4" and found.keys() == table[name].keys(), name
        assert all(v.tobytes() == table[name][c].tobytes() for c, v in found.items()), name


def blocks(model, n):
    """n blocks, repeated from those of the model."""
    with copied(model, model + ".h5") as f:
        for i in range(2, n):
            f.copy(f"model/layers/{i % 2}", f"model/layers/{i}")
        set_config(f, num_hidden_layers=n)


def make(source):
    """A model with a layer for each format, and plans that assign the formats."""
    names = formats().split(",")
    rounding = [n for n in names if not n.startswith("uint") and "fp4" not in n]
    plain(source, "model")
    blocks("model", max(11, -(-len(names) // 7)))  # 2 before 10
    with ptqtools.open("model.h5") as m:
        layers = [a.name for a in m.layers() if "/layers/" in a.name]
    scales = itertools.cycle(["f32", "bf16", "f16", "e8m0", "e4m3fn"])
    groups = itertools.cycle(["16", "channel", "7", "tensor"])
    with open("storage.plan", "w") as f:
        for a, n in zip(layers, names):
            scale = "" if "fp4" in n else f" scale-dtype={next(scales)}"
            print(a, f"storage={n} group={next(groups)}{scale}", file=f)
        print(*(f"{a} keep\n" for a in layers[len(names):]), sep="", end="", file=f)
    stored, scale8 = itertools.cycle(["uint8", "int6", "e2m3"]), itertools.cycle(["tensor", "channel"])
    with open("compute.plan", "w") as f:
        for i, (a, n) in enumerate(zip(layers, rounding)):
            top, scale = max(1, float(np.nanmax(ptqtools.grids[n]))), ["e8m0", "e8m0", "u8", "e8m0", "f32"][i % 5]
            limit = f" saturate={max(1, 0.7 * top)!r}" if i % 3 == 0 else ""
            print(a, f"storage={next(stored)} group=16 scale-dtype={scale} compute={n} top={top!r}"
                  f" scale8={next(scale8)}{limit}", file=f)
        print(*(f"{a} keep\n" for a in layers[len(rounding):]), sep="", end="", file=f)
    vectors = "e8p e8p3 e8p4 1mad1 1mad2-10 1mad3 1mad4-11 3inst1-13 3inst2 3inst3-10 3inst4".split()
    with open("vectors.plan", "w") as f:
        for a, n in zip(layers, vectors):
            print(a, f"storage={n}", file=f)
        print(*(f"{a} keep\n" for a in layers[len(vectors):]), sep="", end="", file=f)


def about(path, packed):
    """Every format, scales and groups of every kind; the same codes from packed codes; the history."""
    with ptqtools.open(path) as m, ptqtools.open(packed) as p:
        quantized = [a for a in m.layers() if a.storage]
        assert sorted(a.storage for a in quantized) == sorted(formats().split(","))
        assert {a.scale_dtype for a in quantized} == {None, "bf16", "f16", "e8m0", "e4m3fn"}
        assert {a.group for a in quantized if "group_index" in a} == {7, 16}
        assert {a.group for a in quantized if "group_index" not in a} >= {0, -1}
        for a, b in zip(quantized, (b for b in p.layers() if b.storage), strict=True):
            assert a.name == b.name and a.shape == b.shape and "codes" in a and "packed" in b, a.name
            assert (a.codes == b.codes).all() and b.codes.dtype == "u1", a.name
        assert m.config["num_hidden_layers"] == 11 and m.history["history"][0].startswith("dpq-run ")
        assert m.history["history:hessian"][0].startswith("hessian-accum ")


def same_weights(path, exported):
    """All matrices of the file equal those of the folder, bit for bit."""
    found = folder(exported)
    with ptqtools.open(path) as m:
        for layer in m.layers():
            name = layer.name[1:].replace("/", ".") + ".weight"
            if name == "lm_head.weight" and m.config.get("tie_word_embeddings"):
                continue
            w, wanted = layer.whole, found.pop(name)
            assert identical(w, wanted), layer.name
    assert all(t.ndim == 1 for t in found.values()), list(found)


def split(source, path):
    """Splits two columns of most layers, as f16 or as int8 with scales."""
    dice = np.random.default_rng(1)
    with copied(source, path) as f:
        for i, name in enumerate(n for n in layers_of(f) if "/layers/1/" not in n):
            g, m = f[name], len(f[name]["codes"])
            g["split_index"] = np.array([3, 7], "i4")
            g["split_weight"] = dice.integers(-9, 9, (m, 2)).astype("i1") if i % 2 else dice.random((m, 2)).astype("f2")
            if i % 2:
                g["split_scale"] = dice.random(2).astype("f4")


def hand_made(path, **changes):
    """A file of one layer, /a."""
    parts = dict(codes=np.array([[0, 3, 14]], "u1"), scale=np.ones((1, 1), "f4"), storage="int4", group=0) | changes
    with create(path, "model") as f:
        g = f.create_group("a")
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                g[name] = value
            elif value is not None:
                g.attrs[name] = value


def second(source, path):
    """Blocks with a second precision, which no tool writes, and codes in wider integers, as a file by hand may be."""
    with copied(source, path) as f:
        for name in layers_of(f):
            g = f[name]
            if "codes" not in g:
                continue
            codes, attributes = g["codes"][()].astype("i8"), dict(g["codes"].attrs)
            del g["codes"]
            g["codes"], g["scale8"] = codes, np.array([0.01], "f4")
            g["codes"].attrs.update(attributes)
            g.attrs["compute"], g.attrs["saturate"] = "e4m3fn", 300.0


def members():
    """Each member equals the file's, with text as str, and None if absent; no other name is an attribute."""
    words = dict(storage="int4", group=0, scale_dtype="f32", compute=np.bytes_("none"), act_mode="dynamic-token",
                 act_clip=0.5, online_hadamard=2, output_hadamard=4, saturate=1.5, bits=4, act_format="int8")
    arrays = {n: np.arange(3, dtype="f4") + i for i, n in enumerate(set(ptqtools.MEMBERS) - words.keys()) if "_" in n}
    arrays = {n: a for n, a in arrays.items() if not n.startswith("branch")}
    hand_made("members.h5", **words, **arrays)
    hand_made("few.h5")
    with ptqtools.open("members.h5") as m, ptqtools.open("few.h5") as few:
        (a,), (b,) = m.layers(), few.layers()
        assert all(getattr(a, n) == (v if n != "compute" else "none") for n, v in words.items())
        assert all((getattr(a, n) == v).all() for n, v in arrays.items()) and len(arrays) > 6
        assert all(getattr(b, n) is None for n in set(ptqtools.MEMBERS) - {"storage", "group", "scale"})
        assert not hasattr(a, "scales") and (b.group_index == 0).all()


def errors(*paths):
    """The errors of files that cannot be read, one per line."""
    with open("text.h5", "w") as f:
        f.write("no HDF5\n" * 100)
    hand_made("code.h5", codes=np.array([[15]], "u1"))
    hand_made("scale.h5", scale=None)
    hand_made("mine.h5", storage="mine")
    hand_made("zero.h5", storage="uint4")
    hand_made("group.h5", scale=np.ones((1, 2), "f4"), group=2, group_index=np.array([0, 0, -1], "i4"))
    hand_made("column.h5", split_index=np.array([-1], "i4"), split_weight=np.ones((1, 1), "f4"))
    hand_made("block.h5", codes=np.array([[0, 0x7C] + 16 * [0]], "u1"), storage="iq4_nl", scale=None, group=None)
    hand_made("wide.h5", codes=np.array([[256]], "i8"))
    for path in paths:
        try:
            with ptqtools.open(path) as m:
                print([a.whole for a in m.layers()])
        except ptqtools.Error as e:
            print(e)


def told(path):
    """A format that the caller defines."""
    ptqtools.grids["mine"] = np.arange(15, dtype="f4") / 2
    with ptqtools.open(path) as m:
        assert [a.weight.tolist() for a in m.layers()] == [[[0, 1.5, 7]]]
