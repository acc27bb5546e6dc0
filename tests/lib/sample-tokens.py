"""sample-tokens.py -- Python of tests/sample-tokens.t"""

import json

import h5py
import numpy as np

from lib.h5 import copied, create, read


def faults():
    with create("r.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 61, 3000).astype("i4"))
        d.attrs["bos_id"] = 1


def no_bos(model):
    with copied(model, "none.h5") as f:
        c = json.loads(f["config"][()])
        c["bos_token_id"] = None
        del f["config"]
        f.create_dataset("config", data=json.dumps(c), dtype=h5py.string_dtype())


def written():
    f = h5py.File("a.h5")
    t = f["tokens"]
    assert f.attrs["ptq_kind"] == "tokens" and t.shape == (3000,) and t.dtype == "i4" and "bytes" not in f
    assert (t.attrs["bos_id"], t.attrs["add_bos"], t.attrs["vocab"]) == (1, 1, 61)
    i = t[...]
    assert i.min() >= 0 and i.max() < 61 and not np.isin(i, (1, 2)).any() and len(np.unique(i)) > 40


def first():
    a, b = (read(p, "tokens") for p in ("a.h5", "b.h5"))
    assert (a[:2345] == b).all()


def through_pipes():
    a, b = (read(p, "tokens") for p in ("a.h5", "b.h5"))
    assert (a == b).all()


def cache():
    a, b = (read(p, "tokens") for p in ("a.h5", "b.h5"))
    assert (a == b).all()


def rounded_cache_same_with():
    c, d = (read(p, "tokens") for p in ("c.h5", "d.h5"))
    assert (c == d).all()


def model_says():
    c, d = (read(p, "tokens") for p in ("c.h5", "d.h5"))
    assert (c == d).all()


def but_where_option_says():
    a, e = (read(p, "tokens") for p in ("a.h5", "e.h5"))
    assert (a == e).all()


def each_same():
    t = read("g.h5", "tokens")
    assert (t[:20] == t[20:]).all()
