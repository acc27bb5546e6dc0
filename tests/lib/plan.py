"""plan.py -- Python of tests/plan.t"""

import fnmatch

import h5py
import numpy as np

from lib.h5 import create


def make():
    r = np.random.default_rng(1)
    with create("tokens.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 60, 2000).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    with create("plain.h5", "model") as f:
        for name in "ab":
            f[name + "/weight"] = r.standard_normal((24, 96)).astype("f4")
        for i, name in enumerate("ab"):
            with create(f"part{i}", "model") as g:
                g.attrs["part"], g.attrs["parts"] = np.int64(i), np.int64(2)
                f.copy(name, g)


def same_layers(one, other, *globs):
    """Members and attributes of the layers that match a glob are equal in both files."""
    a, b = h5py.File(one), h5py.File(other)
    globs, seen = globs or ["*"], 0

    def look(name, x):
        nonlocal seen
        if not isinstance(x, h5py.Group) or not any(fnmatch.fnmatch(name, g) for g in globs):
            return
        y = b[name]
        assert set(x) == set(y) and set(x.attrs) == set(y.attrs), name
        for k in x.attrs:
            assert x.attrs[k] == y.attrs[k], (name, k)
        for k in x:
            if isinstance(x[k], h5py.Dataset):
                p, q = x[k], y[k]
                assert p.dtype == q.dtype and p.shape == q.shape and p[...].tobytes() == q[...].tobytes(), (name, k)
                seen += 1

    a.visititems(look)
    assert seen, globs
