"""windows.py -- Python of tests/windows.t"""

import h5py
import numpy as np

from lib.h5 import copied


def cut(source, path, first, end):
    """The tokens file of ids first .. end - 1, cut by hand; a sequence may be cut at both ends."""
    first, end = int(first), int(end)
    with h5py.File(source) as f, h5py.File(path, "w") as g:
        for name in f.attrs:
            g.attrs[name] = f.attrs[name]
        n = len(f["tokens"])
        for name in {"tokens", "bytes", "modality", "position"} & set(f):
            g[name] = f[name][first:end]
        for name, value in f["tokens"].attrs.items():
            if name not in ("tokens_sha256", "newline") or (name == "newline" and end == n):
                g["tokens"].attrs[name] = value
        if "sequence" in f:
            s = np.clip(f["sequence"][()], first, end) - first
            g["sequence"] = np.unique(s)


def sequences(source, path, *offsets):
    with copied(source, path) as f:
        f["sequence"] = np.int64([0, *map(int, offsets), len(f["tokens"])])


def reorder(source, path):
    """Sequences in reverse order of their tokens."""
    with copied(source, path) as f:
        s = f["sequence"][()] if "sequence" in f else [0, len(f["tokens"])]
        f["index"] = np.concatenate([np.arange(b - a, dtype="i4")[::-1] for a, b in zip(s, s[1:])])


def philox(seed, name, k):
    """Number k of a stream of lib/base/random.h, in [0, 1): Philox 4x32-10 by Salmon et al. 2011."""
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = (h ^ c) * 0x100000001B3 % 2**64
    c0, c1, c2, c3 = k % 2**32, k >> 32, h % 2**32, h >> 32
    k0, k1 = seed % 2**32, seed >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b % 2**32, (a >> 32) ^ c3 ^ k1, a % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return ((c1 << 32 | c0) >> 11) * 2.0**-53


def drawn(record, path, convention, ctx, skip, limit, seed):
    """The targets of a record are those of the windows that the law draws."""
    ctx, skip, limit, seed = map(int, (ctx, skip, limit, seed))
    with h5py.File(path) as f, h5py.File(record) as r:
        t = f["tokens"]
        ids = list(t[skip:])
        n = min(limit, len(ids)) if limit else len(ids)
        lead = convention == "gptq" and t.attrs["add_bos"] == 1
        stream = [t.attrs["bos_id"]] * lead + ids
        size = ctx - (convention == "bos")
        windows, places = (n + lead) // size, len(stream) - size + 1
        want = []
        for k in range(windows):
            at = int(philox(seed, "windows", k) * places)
            want.append(stream[at:at + size][convention != "bos":])
        assert windows > 1 and np.array_equal(r["target"][()], np.concatenate(want))
        assert np.array_equal(r["window"][()], np.repeat(np.arange(windows), len(want[0])))
        digest, *numbers = r.attrs["evaluation"].split()
        assert digest == t.attrs["tokens_sha256"]
        assert numbers == [str(skip), str(len(t)), "random", str(seed), str(windows)], numbers


def positions(source, path):
    with copied(source, path) as f:
        f["position"] = np.arange(len(f["tokens"]), dtype="i4") % 7


def old(source, path):
    """A record as version 1.0 wrote it."""
    with copied(source, path) as f:
        del f.attrs["evaluation"]


def near(a, b):
    """Two files of Hessians are equal up to the rounding of sums."""
    def compare(name, x):
        if name.endswith("/histogram"):  # a rounded input may change its bin
            assert x[()].sum() == g[name][()].sum(), name
        elif isinstance(x, h5py.Dataset) and x.dtype.kind in "fi":
            assert np.allclose(x[()], g[name][()], rtol=1e-5, atol=1e-6), name

    with h5py.File(a) as f, h5py.File(b) as g:
        f.visititems(compare)


def without_digest(source, path):
    """A shard of tokens that came from a pipe."""
    with copied(source, path) as f:
        del f.attrs["tokens_sha256"]


def ranges(source, path, text):
    with copied(source, path) as f:
        f.attrs["calibration"] = f.attrs["calibration"].split()[0] + " " + text
        f.attrs.pop("tokens_sha256", None)


def activations(path):
    with h5py.File(path, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "activations", "1"
        f["a/input"] = np.random.default_rng(1).normal(size=(50, 6)).astype("f4")


def of_rows(hessian, path, first, end):
    with h5py.File(path) as f, h5py.File(hessian) as h:
        x = f["a/input"][int(first):int(end)].astype("f8")
        assert h["a/count"][()] == len(x) and np.allclose(h["a/hessian"][()], x.T @ x, rtol=1e-5, atol=1e-5)
