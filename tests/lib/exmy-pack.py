"""exmy-pack.py -- Python of tests/exmy-pack.t"""

import h5py
import numpy as np

from lib.h5 import copied, create


def make():
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 640).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61


def five_bits():
    c, p = h5py.File("codes.h5"), h5py.File("packed.h5")
    n = 0

    def see(name, o):
        nonlocal n
        if not isinstance(o, h5py.Group) or "packed" not in o:
            return
        n += 1
        code = c[name]["codes"][...]
        m, k = code.shape
        words = o["packed"][...]
        assert o["packed"].attrs["columns"] == k and words.shape == (m, 5 * -(-k // 32)) and "codes" not in o
        code = np.pad(code, ((0, 0), (0, -k % 32))).reshape(m, -1, 32)
        words = words.reshape(m, -1, 5)
        for i in range(32):
            q = i // 2
            low = words[..., q // 4] >> np.uint32(4 * (q % 4) + 16 * (i % 2)) & 15
            top = words[..., 4] >> np.uint32(15 - q + 16 * (i % 2)) & 1
            assert (low | top << 4 == code[..., i]).all()

    p.visititems(see)
    assert n >= 14, n


def faults():
    for name, change in dict(
        columns=lambda g: g["packed"].attrs.__setitem__("columns", 7),
        none=lambda g: g["packed"].attrs.__delitem__("columns"),
        narrow=lambda g: (
            g.__setitem__("x", g["packed"][:, :5]),
            g.__delitem__("packed"),
            g.move("x", "packed"),
            g["packed"].attrs.__setitem__("columns", 999),
        ),
    ).items():
        with copied("packed.h5", name + ".h5") as f:
            change(f["model/layers/0/mlp/down_proj"])
