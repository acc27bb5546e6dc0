"""basis.py -- Python of tests/basis.t"""

import hashlib
import json
import re
import struct

import h5py
import numpy as np

from lib.h5 import copied, create, read


def quantized():
    for i in (1, 2):
        with create(f"q{i}.h5", "rotation") as f:
            n = h5py.File("llama-gqa.h5")["model/norm/weight"].shape[0]
            f["residual"] = np.linalg.qr(np.random.default_rng(i).standard_normal((n, n)))[0].astype("f4")


def moved(one, other):
    a, b = h5py.File(one), h5py.File(other)
    far = []
    a.visititems(
        lambda p, o: (
            far.append(np.linalg.norm(o[()] - b[p][()]) / np.linalg.norm(o[()])) if p.endswith("/hessian") else None
        )
    )
    basis = "same" if a.attrs["basis"] == b.attrs["basis"] else "other"
    print(basis, "same" if max(far) < 2**-4 else "other", f"{max(far):.3g}")


def order(name):  # embeddings, blocks by number, the rest; each by path in natural order
    block = re.match(r"model\.layers\.(\d+)\.", name)
    part = 0 if name.startswith("model.embed_tokens") else 1 + int(block[1]) if block else 10**9
    return part, [int(x) if x.isdigit() else x for x in name.split(".")]


def digest(folder):
    raw = open(folder + "/model.safetensors", "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + n])
    head.pop("__metadata__", None)
    digest = hashlib.sha256(open(folder + "/config.json", "rb").read())
    names = {"F32": "f32", "F16": "f16", "BF16": "bf16"}

    tied = {} if "lm_head.weight" in head else {"lm_head.weight": head["model.embed_tokens.weight"]}
    for name, t in sorted({**head, **tied}.items(), key=lambda x: order(x[0])):
        data = raw[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]]
        digest.update(
            " ".join(["/" + name.replace(".", "/"), names[t["dtype"]], *map(str, t["shape"])]).encode() + b"\n"
        )
        if len(data) <= 65536:
            digest.update(data)
        else:
            for i in range(64):
                digest.update(data[(len(data) - 1024) // 63 * i :][:1024])
    print(digest.hexdigest())


def change_weights(folder, kind, value):
    """Changes weights in a folder: multiplies by a factor, or rounds to a fraction of the largest."""
    path, what, x = folder + "/model.safetensors", kind, float(value)
    raw = bytearray(open(path, "rb").read())
    (n,) = struct.unpack("<Q", raw[:8])
    for name, t in json.loads(raw[8 : 8 + n]).items():
        if name == "__metadata__" or (what == "gains") != (len(t["shape"]) == 1):
            continue
        begin, end = (8 + n + o for o in t["data_offsets"])
        assert t["dtype"] == "F32"
        w = np.frombuffer(bytes(raw[begin:end]), "<f4").astype("f8")
        raw[begin:end] = (
            (w * x if what in ("gains", "scale") else np.round(w / (abs(w).max() * x)) * (abs(w).max() * x))
            .astype("<f4")
            .tobytes()
        )
    open(path, "wb").write(raw)


def basis(path):
    return h5py.File(path).attrs.get("basis", "none")


def own_tokens(source, target):
    with copied(source, target) as f:
        f.attrs["basis"] = "0" * 64


def change_a_bit():
    raw = bytearray(open("changed/model.safetensors", "rb").read())
    raw[-1] ^= 1
    open("changed/model.safetensors", "wb").write(raw)


def no_digest():
    with copied("r1.h5", "bad.h5") as f:
        f.attrs["basis"] = "none"


def calibration(path):
    print(h5py.File(path).attrs.get("calibration", "none").replace("\n", ";"))


def tokens_digest():
    print(hashlib.sha256(read("llama-gqa-t.h5", "tokens").astype("<i4").tobytes()).hexdigest())


def tokens_attribute():
    print(h5py.File("llama-gqa-t.h5")["tokens"].attrs["tokens_sha256"])
