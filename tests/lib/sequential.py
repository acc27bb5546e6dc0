"""sequential.py -- Python of tests/sequential.t"""

import struct
import sys

import h5py
import numpy as np

from lib.h5 import arguments, create


def make():
    r = np.random.default_rng(3)

    def tokens(name, n, vocab=61, top=60):
        with create(name, "tokens") as f:
            d = f.create_dataset("tokens", data=r.integers(3, top, n).astype("i4"))
            d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, vocab

    tokens("tokens.h5", 600)
    tokens("few.h5", 10)
    tokens("vocab.h5", 600, 62)
    tokens("ids.h5", 600, 61, 90)
    tokens("sparse.h5", 40)
    with create("layer.h5", "model") as f:
        f["a/weight"] = r.standard_normal((8, 16)).astype("f4")


def tree(path):
    y = {}

    def visit(name, o):
        y[name] = {k: str(v) for k, v in o.attrs.items()}
        if isinstance(o, h5py.Dataset):
            y[name]["data"] = o[()] if o.dtype == object else (o.shape, str(o.dtype), o[()].tobytes())

    with h5py.File(path) as f:
        f.visititems(visit)
    return y


def same_layers():
    for line in sys.stdin:  # OUT PLAIN LAYERS: two files that must agree, and the number of quantized layers
        out, plain, layers = line.split()
        try:
            a, b = tree(out), tree(plain)
            differ = set(a) ^ set(b) or [n for n in a if a[n] != b[n]]
            found = sum(n.endswith("/codes") for n in a)
            print(*sorted(differ) or ["same" if found == int(layers) else f"{found} layers, not {layers}"])
        except OSError as e:
            print(e)


def faults():
    with h5py.File("tiny.h5") as a, h5py.File("nan.h5", "w") as b:
        for n in a:
            a.copy(n, b)
        for n, v in a.attrs.items():
            b.attrs[n] = v
        b["model/layers/1/self_attn/o_proj/weight"][0, 0] = np.inf
    raw, i, parts = open("stream", "rb").read(), 0, []
    while i < len(raw):
        n = (
            struct.unpack("<Q", raw[i + 28 : i + 36])[0]
            if raw[i + 8] > 1
            else struct.unpack("<Q", raw[i + 40 : i + 48])[0]
        )
        parts.append(raw[i : i + n])
        i += n
    open("headless", "wb").write(b"".join(parts[:-1]))
    open("blocks", "wb").write(b"".join(parts[1:]))


def history(path):
    """The history of the last command, and the names of the other histories."""
    with h5py.File(path) as f:
        return "\n".join([arguments(path), " ".join(sorted(n for n in f.attrs if n.startswith("history:")))])
