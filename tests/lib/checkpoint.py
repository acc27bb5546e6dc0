"""checkpoint.py -- Hugging Face folders, for tests of several tools: types, bit fields and layers of packed
checkpoints, readers and writers of safetensors"""

import json
import os
import struct

import h5py
import numpy as np
import ptqtools

from lib.h5 import copied, layers_of

TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1",
         "F8_E4M3": "u1", "F8_E8M0": "u1"}
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
FP4 = np.concatenate([FP4, -FP4]).astype("f4")


def identical(a, b):
    """Same shape, type and bytes; -0 differs from 0."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


# --- types and bit fields ---
def half(a):
    """f32 rounded to bf16, to nearest, ties to even, as bits."""
    u = np.ascontiguousarray(a, "f4").view("u4")
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype("u2")


def single(t):
    """A tensor of bf16 (as bits), f16 or f32, converted to f32."""
    return (t.astype("u4") << 16).view("f4") if t.dtype == "u2" else t.astype("f4")


def fp8(code):
    """Values of e4m3fn codes: sign, 4 bits of exponent with bias 7, 3 bits of mantissa."""
    sign, e, m = code >> 7, (code >> 3 & 15).astype("i4"), (code & 7).astype("f8")
    x = np.where(e > 0, np.ldexp(1 + m / 8, e - 7), np.ldexp(m / 8, -6))
    assert not (code & 127 == 127).any()
    return np.where(sign > 0, -x, x).astype("f4")


def power(e):
    """Values of e8m0 codes, 2^(e - 127)."""
    return np.ldexp(np.float32(1), e.astype("i4") - 127)


def fields(words, bits, n):
    """n fields of `bits` bits along the last axis, from the lowest bit of each row of words."""
    b = np.unpackbits(np.ascontiguousarray(words).view("u1"), axis=-1, bitorder="little")[..., :n * bits]
    return (b.reshape(*b.shape[:-1], n, bits) << np.arange(bits)).sum(-1, dtype="i4")


def dense(codes, bits):
    """The inverse of fields(): codes one after the other in words of 32 bits."""
    rows, n = codes.shape
    b = np.zeros((rows, -(-n * bits // 32) * 32), "u1")
    b[:, :n * bits] = (codes[:, :, None] >> np.arange(bits) & 1).reshape(rows, -1)
    return np.packbits(b, axis=1, bitorder="little").view("<i4")


# --- folders ---
def parts(path):
    """Header and data of a file."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(n)), f.read(), 8 + n


def safetensors(path):
    """Tensors of a file as stored, after the checks of every reader: no gap, no overlap, aligned."""
    header, data, start = parts(path)
    assert header.pop("__metadata__") == {"format": "pt"}
    found, end = {}, 0
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        a, b = t["data_offsets"]
        kind = np.dtype(TYPES[t["dtype"]])
        assert a == end and (start + a) % kind.itemsize == 0, (path, name)
        found[name], end = np.frombuffer(data[a:b], kind).reshape(t["shape"]), b
    assert end == len(data)
    return found


def folder(path):
    """All tensors of a folder, from one file or by its index."""
    index = os.path.join(path, "model.safetensors.index.json")
    if not os.path.exists(index):
        return safetensors(os.path.join(path, "model.safetensors"))
    with open(index) as f:
        map = json.load(f)
    found, total = {}, 0
    for file in sorted(set(map["weight_map"].values())):
        here = safetensors(os.path.join(path, file))
        assert all(map["weight_map"][n] == file for n in here)
        total += sum(t.nbytes for t in here.values())
        found |= here
    assert sorted(found) == sorted(map["weight_map"]) and total == map["metadata"]["total_size"]
    assert len(os.listdir(path)) >= 2 + len(set(map["weight_map"].values()))
    return found


def config(path):
    with open(os.path.join(path, "config.json")) as f:
        return json.load(f)


def save(path, tensors, config):
    """Writes a folder of tensors, name: (dtype, array), at any place in the file."""
    os.makedirs(path)
    header, body = {}, b""
    for name, (dtype, a) in tensors.items():
        data = np.ascontiguousarray(a).tobytes()
        assert len(data) == np.dtype(TYPES[dtype]).itemsize * np.size(a), name
        header[name] = dict(dtype=dtype, shape=list(np.shape(a)), data_offsets=[len(body), len(body) + len(data)])
        body += data
    text = json.dumps(header).encode()
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)


def load(path):
    """Reads the tensors that save() wrote."""
    header, data, _ = parts(os.path.join(path, "model.safetensors"))
    return {name: (h["dtype"], np.frombuffer(data[slice(*h["data_offsets"])], TYPES[h["dtype"]]).reshape(h["shape"]))
            for name, h in header.items()}, config(path)


# --- layers of model files ---
def units(g):
    """Units and scales of a layer, [out, in] each, by the reader for Python; a weight is their product."""
    layer = ptqtools.Layer(g.id)
    wide = lambda t: np.broadcast_to(np.atleast_2d(t)[:, layer.group_index], layer.shape)
    units = ptqtools.grids[layer.storage][layer.codes] - (0 if layer.zero is None else wide(layer.zero))
    scale = wide(layer.scale if layer.scale_tensor is None else layer.scale / layer.scale_tensor)
    if layer.compute == "none":
        return units.astype("f4"), scale
    scale8 = np.broadcast_to(np.c_[layer.scale8], layer.shape)
    return ptqtools.nearest(layer.compute, units * scale, layer.saturate), scale8


def weights(g):
    """The weights of a layer in double, rounded once to float32."""
    return np.multiply(*(t.astype("f8") for t in units(g))).astype("f4").astype("f8")


def reported(model, report, written):
    """The report has the relative Frobenius norm of the change of each changed weight, and the largest change;
    written(name, shape): the weight that a reader reads, in double."""
    with open(report) as f:
        lines = dict(line.split("\t") for line in f.read().splitlines()[1:])
    worst = float(lines.pop("all"))
    assert lines and worst == max(map(float, lines.values()))
    with h5py.File(model) as f:
        for path in layers_of(f):
            w, name = weights(f[path]), path.replace("/", ".")
            change = np.linalg.norm(written(name, w.shape) - w) / np.linalg.norm(w)
            # float32 products, printed with six digits
            assert abs(float(lines.pop(name, 0)) - change) <= 1e-5 * change, (name, change)
    assert not lines


def middle(source, path, but=""):
    """Sets zero points to the middle code, except in layers named `but`; codes from the smallest to the largest."""
    with copied(source, path) as f:
        for g in (f[name] for name in layers_of(f) if not but or but not in name):
            top = 1 << g.attrs["bits"]
            g["zero"][...] = top >> 1
            n = min(top, g["codes"].shape[1] - 1)
            g["codes"][:, :n] = np.arange(n)
            g["codes"][:, -1] = top - 1


def divisor(path):
    """Sets the divisor of scales to a power of two, so that f16 represents the quotients."""
    with h5py.File(path, "r+") as f:
        for name in layers_of(f):
            if "scale_tensor" in f[name]:
                f[name]["scale_tensor"][...] = 1024


DOWN = "model/layers/0/mlp/down_proj"


def scale(value, source, path):
    with copied(source, path) as f:
        f[DOWN]["scale"][1, 0] = float(value)
