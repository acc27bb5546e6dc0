"""e8p.py -- Python of tests/e8p.t"""

import h5py
import numpy as np

from lib.h5 import create


def make():
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 640).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61


def bits(m, n):
    """Bits per weight as tensor-stats prints them, of a layer of m x n weights."""
    m, n = int(m), int(n)
    print("%.6g" % (2 + (32 + m + n) / (m * n)))


def layers(name):
    """The quantized layers of a file, and whether each is rotated."""
    with h5py.File(name, "r") as f:
        y = {}
        f.visititems(lambda path, x: y.update({path: "output_hadamard" in x.attrs and "input_signs" in x})
                     if isinstance(x, h5py.Group) and "codes" in x else None)
        return y


def rotated(name):
    print(*sorted(path for path, is_rotated in layers(name).items() if is_rotated))


def unrouted(name):
    """All but gate and up of shared experts."""
    print(*sorted(p for p in layers(name) if not p.endswith(("shared_expert/gate_proj", "shared_expert/up_proj"))))
