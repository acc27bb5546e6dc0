"""e8p.py -- Python of tests/e8p.t"""

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
