"""hostile.py -- Python of tests/hostile.t"""

import json
import os
import pty
import subprocess

import h5py
import numpy as np

from lib.h5 import copied, create


def change(path, source, make):
    with copied(source, path) as f:
        make(f)


def replace(f, path, data, **how):
    attrs = dict(f[path].attrs)
    del f[path]
    f.create_dataset(path, data=data, **how).attrs.update(attrs)


def attribute(path, name, value):
    return lambda f: f[path].attrs.__setitem__(name, value)


def remove(*paths):
    return lambda f: [f.__delitem__(p) for p in paths]


def bare(f):
    [f["tokens"].attrs.__delitem__(k) for k in list(f["tokens"].attrs)]


def wrong(h):
    h[0, 1] *= 3


def beyond(h):
    h[0, 1] = h[1, 0] = 1.01 * np.sqrt(h[0, 0] * h[1, 1])


def faint(h):
    """The first input is so small that its square is 0."""
    h[0, :] *= np.float32(1e-24)
    h[:, 0] *= np.float32(1e-24)


def large(h):
    h *= 3e38 / abs(h).max()


def nan(h):
    h[2, 3] = h[3, 2] = np.nan


def huge(f):
    f["model/embed_tokens/weight"][...] *= 1e30
    f["model/layers/0/self_attn/o_proj/weight"][...] *= 1e8


def faults():
    U = "model/layers/0/mlp/up_proj"

    plain = h5py.File("model.h5")
    # another vocabulary, tokenizer, context
    change("vocab.h5", "tokens.h5", attribute("tokens", "vocab", 999))
    change("digest.h5", "tokens.h5", attribute("tokens", "tokenizer_sha256", "0" * 64))

    change("bare.h5", "tokens.h5", bare)
    change("true.h5", "tokens.h5", attribute("tokens", "add_bos", True))
    change("half.h5", "tokens.h5", attribute("tokens", "vocab", 61.5))
    change("wide.h5", "tokens.h5", lambda f: replace(f, "tokens", f["tokens"][()].astype("i8") + (1 << 32)))
    change("minus.h5", "tokens.h5", lambda f: replace(f, "tokens", f["tokens"][()] - 1000))
    change("real.h5", "tokens.h5", lambda f: replace(f, "tokens", f["tokens"][()].astype("f4")))
    # places of the 64 tokens
    for name, place, data in (
        ("short-sequences", "sequence", [0, 8, 63]),
        ("no-sequences", "sequence", [0]),
        ("empty-sequence", "sequence", [0, 8, 8, 64]),
        ("real-sequences", "sequence", [0.0, 64.0]),
        ("minus-position", "position", [-1] + [0] * 63),
        ("three-positions", "position", [[0] * 3] * 64),
        ("far-position", "position", [1 << 20] * 64),
        ("few-positions", "position", range(63)),
        ("large-index", "index", range(1, 65)),
        ("long-index", "index", range(64)),
        ("real-modality", "modality", [0.5] * 64),
        ("few-modalities", "modality", np.zeros(3, "u1")),
    ):
        change(f"{name}.h5", "tokens.h5", lambda f: f.__setitem__(place, np.array(data)))
    change(
        "twice-index.h5",
        "tokens.h5",
        lambda f: (
            f.__setitem__("sequence", np.arange(0, 65, 8)),
            f.__setitem__("index", np.array([0, 1, 2, 2, 3, 4, 5, 6] * 8)),
        ),
    )
    change("images.h5", "tokens.h5", lambda f: f.create_group("images").__setitem__("0", np.zeros((2, 2, 3), "u1")))

    # Hessians and orders
    def hessian(make):
        def do(f):
            h = f[U + "/hessian"][()]
            make(h)
            f[U + "/hessian"][...] = h

        return do

    change("skew.h5", "hessian.h5", hessian(wrong))

    change("large.h5", "hessian.h5", hessian(large))
    change("faint.h5", "hessian.h5", hessian(faint))
    change("beyond.h5", "hessian.h5", hessian(beyond))

    change("nan-hessian.h5", "hessian.h5", hessian(nan))
    change("small-hessian.h5", "hessian.h5", lambda f: replace(f, U + "/hessian", np.eye(3, dtype="f4")))
    change("no-count.h5", "hessian.h5", lambda f: f[U + "/count"].__setitem__((), 0))
    change("few-layers.h5", "hessian.h5", remove("model/layers/1"))
    change("no-group.h5", "order.h5", lambda f: f.attrs.__delitem__("group"))
    change("no-attributes.h5", "order.h5", lambda f: [f.attrs.__delitem__(k) for k in ("group", "order", "key")])
    change("twice-order.h5", "order.h5", lambda f: f[U + "/order"].__setitem__(0, f[U + "/order"][1]))
    # quantized layers
    change("both.h5", "codes.h5", lambda f: f.__setitem__(U + "/weight", plain[U + "/weight"][()]))
    change("two-codes.h5", "packed.h5", lambda f: f.__setitem__(U + "/codes", h5py.File("codes.h5")[U + "/codes"][()]))
    change("bits.h5", "codes.h5", attribute(U, "bits", 5))
    change("bits-none.h5", "codes.h5", lambda f: f[U].attrs.__delitem__("bits"))
    change("minus-codes.h5", "codes.h5", lambda f: replace(f, U + "/codes", f[U + "/codes"][()].astype("i8") - 5))
    change("large-codes.h5", "codes.h5", lambda f: replace(f, U + "/codes", f[U + "/codes"][()].astype("i4") + 256))
    change(
        "signed-packed.h5",
        "packed.h5",
        lambda f: replace(f, U + "/packed", (f[U + "/packed"][()] | 1 << 31).astype("u4").view("i4")),
    )
    change(
        "small-packed.h5",
        "packed.h5",
        lambda f: replace(f, U + "/packed", (f[U + "/packed"][()] & 0x7FFFFFFF).astype("i4")),
    )
    change("scale8.h5", "codes.h5", lambda f: f.__setitem__(U + "/scale8", np.ones(1, "f4")))
    change("large-scale.h5", "codes.h5", lambda f: replace(f, U + "/scale", f[U + "/scale"][()].astype("f8") * 1e300))
    change(
        "modality-scales.h5",
        "codes.h5",
        lambda f: (
            attribute(U, "act_mode", "static-modality")(f),
            attribute(U, "act_format", "int8")(f),
            f.__setitem__(U + "/act_scale", np.ones(2, "f4")),
        ),
    )
    change(
        "one-modality.h5",
        "codes.h5",
        lambda f: (
            attribute(U, "act_mode", "static-modality")(f),
            attribute(U, "act_format", "int8")(f),
            f.__setitem__(U + "/act_scale", np.ones(1, "f4")),
        ),
    )

    def rounded(f, **how):
        g = f[U]
        for name, value in how.items():
            if value is None:
                continue
            if name == "act_scale":
                g[name] = np.full(value, 0.1, "f4")
            else:
                g.attrs[name] = value

    change("mode-none.h5", "codes.h5", lambda f: rounded(f, act_format="int8", act_scale=1))
    change("mode-number.h5", "codes.h5", lambda f: rounded(f, act_format="int8", act_scale=1, act_mode=3))
    change("many-scales.h5", "codes.h5", lambda f: rounded(f, act_format="int8", act_scale=8, act_mode="static-tensor"))
    change("saturate.h5", "codes.h5", attribute(U, "saturate", 100.0))
    change("storage.h5", "codes.h5", attribute(U, "storage", 5))
    change("misnamed.h5", "model.h5", lambda f: f.move(U + "/weight", U + "/wieght"))
    change("misnamed-codes.h5", "codes.h5", lambda f: f.move(U + "/codes", U + "/cods"))

    def many(f):
        n = len(f[U + "/absmax"])
        count = (2**63 - 1) // n
        f[U + "/count"][()] = count
        f[U + "/histogram"][...] = 0
        f[U + "/histogram"][1] = count * n

    change("many-tokens.h5", "hessian.h5", many)
    change("no-bos.h5", "tokens.h5", lambda f: f["tokens"].attrs.__delitem__("bos_id"))
    change("add-five.h5", "tokens.h5", attribute("tokens", "add_bos", 5))
    with create("table.h5", "model") as f:
        f["a\tb\nall/weight"] = np.ones((4, 8), "f4")
    # files
    change("number.h5", "model.h5", attribute("/", "ptq_version", 1))
    change("version.h5", "model.h5", attribute("/", "ptq_version", "2"))
    change(
        "lzf.h5",
        "model.h5",
        lambda f: replace(f, U + "/weight", f[U + "/weight"][()], compression="lzf", chunks=(4, 4)),
    )
    change(
        "overflow.h5", "model.h5", lambda f: f["model/norm/weight"].__setitem__(..., f["model/norm/weight"][()] * 1e38)
    )

    change("norm.h5", "model.h5", huge)
    for kind in ("odd", "layer"):
        change(f"norm-{kind}.h5", "model.h5", lambda f: f["model/norm"].attrs.__setitem__("norm", kind))
    change("norm-none.h5", "model.h5", lambda f: f.pop("model/norm/weight"))
    change("gain-none.h5", "model.h5", lambda f: f.pop("model/layers/1/input_layernorm/weight"))
    with h5py.File("block.h5", "w", userblock_size=1024) as b:
        for k, v in plain.attrs.items():
            b.attrs[k] = v
        for k in plain:
            plain.copy(k, b)
    with h5py.File("latest.h5", "w", libver="latest") as b:
        for k, v in plain.attrs.items():
            b.attrs[k] = v
        for k in plain:
            plain.copy(k, b)
        b["note"] = np.arange(3)
        b["note"].attrs["about"] = "a user's own"


def scale(*at, of="scale"):
    return lambda g: g[of].__setitem__(at[:-1] or ..., at[-1])


def quantized_faults():
    U = "model/layers/0/mlp/up_proj"

    def change(name, base, what):
        with copied(base + ".h5", name + ".h5") as f:
            what(f[U])

    def attribute(value):
        return lambda g: g.attrs.__setitem__("scale_dtype", value)

    change("mx-three", "mxfp4", scale(0, 1, 3))
    change("mx-small", "mxfp4", scale(0, 0, 2.0**-128))
    change("mx-zero", "mxfp4", scale(0, 0, 0))
    change("mx-f32", "mxfp4", attribute("f32"))
    change("mx-nan", "mxfp4", scale(0, 0, np.nan))
    change("mx-none", "mxfp4", lambda g: g.attrs.__delitem__("scale_dtype"))
    change("mx-divided", "mxfp4", lambda g: g.__setitem__("scale_tensor", np.ones(1, "f4")))
    change("nv-odd", "nvfp4", scale(0, 0, 17))
    change("nv-large", "nvfp4", scale(0, 0, 480))
    change("nv-none", "nvfp4", lambda g: g.__delitem__("scale_tensor"))
    for name, v in ("zero", 0), ("nan", np.nan), ("inf", np.inf), ("minus", -1), ("tiny", 1e-38), ("last", 1.4e-36):
        change("nv-" + name, "nvfp4", scale(v, of="scale_tensor"))
    change(
        "nv-two", "nvfp4", lambda g: (g.__delitem__("scale_tensor"), g.__setitem__("scale_tensor", np.ones(2, "f4")))
    )
    change("bf-odd", "int4", scale(0, 0, np.float32(1 + 2**-10)))
    change("bf-word", "int4", attribute("bfloat16"))
    change("bf-number", "int4", attribute(3))
    change("bf-left", "int4", lambda g: g.attrs.__delitem__("scale_dtype"))
    change("half-large", "e2m1", scale(0, 0, 65536))
    change("u8-half", "uint4", scale(0, 0, 1.5))
    change("u8-zero", "uint4", scale(0, 0, 0))
    change("u8-large", "uint4", scale(0, 0, 256))
    change("u8-alone", "uint4", lambda g: (g.attrs.__delitem__("compute"), g.attrs.__delitem__("saturate"),
                                           g.__delitem__("scale8")))
    change("half-e4m3", "e2m1", attribute("e4m3fn"))


def streams():
    raw, images = open("stream", "rb").read(), []
    while raw:
        n = int.from_bytes(raw[28:36], "little")
        images.append(raw[:n])
        raw = raw[n:]
    images.insert(3, images[2])  # a block twice, with all parts numbered correctly
    with open("doubled", "wb") as out:
        for i, image in enumerate(images):
            open("image.h5", "wb").write(image)
            with h5py.File("image.h5", "r+") as f:
                f.attrs.modify("part", i), f.attrs.modify("parts", len(images))
            out.write(open("image.h5", "rb").read())


def end_shown_once():
    outer, inner = pty.openpty()
    child = subprocess.Popen(
        ["sample-tokens", "--length", "600", "--ctx", "8", "model.h5", "-o", "out/r"], stderr=inner
    )
    os.close(inner)
    said = b""
    try:
        while part := os.read(outer, 4096):
            said += part
    except OSError:
        pass
    assert child.wait() == 0 and said.count(b"600/600") == 1, said


def at_terminal(stream, command):
    outer, inner = pty.openpty()
    streams = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) | {
        stream: inner
    }
    child = subprocess.run(command.split(), **streams)
    os.set_blocking(outer, False)
    try:
        said = os.read(outer, 1 << 16).decode()
    except BlockingIOError:
        said = ""
    os.close(inner), os.close(outer)
    return child.returncode, child.stderr, said


def terminal():
    status, error, said = at_terminal("stdout", "tensor-diff -q --layers */q_proj --reference model.h5 codes.h5")
    assert status == 0 and "\t" not in said and "  " in said, (status, error, said)
    for stream, name, rest in ("stdout", "output", "model.h5"), ("stdin", "input", "-o out/r"):
        status, error, said = at_terminal(stream, "dpq-run -q --compensate none " + rest)
        assert status == 2 and f"standard {name} is a terminal" in error, (status, error)


def touch_byte():
    f = open("input.h5", "r+b")
    f.seek(-1, 2)
    b = f.read(1)
    f.seek(-1, 2)
    f.write(b)


def record_json():
    v, a = json.load(open("json")), h5py.File("out/r").attrs
    print(all(v[k] == a[k] for k in v), len(v) > 3)


def table_json():
    v, f = json.load(open("json"))["rows"], h5py.File("out/r")
    print(all(v[i]["sigma"] == x for i, x in enumerate(f["sigma"])), len(v))


def zero_point(path):
    with h5py.File(path, "r+") as f:
        g = f["model/layers/0/mlp/up_proj"]
        g["zero"] = np.full(g["scale"].shape, 3, "u1")


def set_code(path, code):
    with h5py.File(path, "r+") as f:
        f["model/layers/1/mlp/up_proj/codes"][3, 2] = int(code)
