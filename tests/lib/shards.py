"""shards.py -- Python of tests/shards.t"""

import hashlib

import numpy as np

from lib.h5 import copied, create


def make(model):
    for seed, name in (1, "t.h5"), (2, "other-tokens.h5"):
        with create(name, "tokens") as f:
            d = f.create_dataset("tokens", data=np.random.default_rng(seed).integers(3, 61, 400).astype("i4"))
            d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    with create("act.h5", "activations") as f:
        f["a/input"] = np.random.default_rng(3).standard_normal((70, 33)).astype("f4")
    with copied(model, "other-model.h5") as f:
        f["model/layers/1/mlp/up_proj/weight"][0, 0] += 1


def large():
    with create("large.h5", "activations") as f:
        f["a/input"] = np.random.default_rng(4).standard_normal((1100000, 8)).astype("f4")


def pieces(path):
    d = open(path, "rb").read()
    n = 16 << 20
    print(hashlib.sha256(b"".join(hashlib.sha256(d[i : i + n]).digest() for i in range(0, len(d), n))).hexdigest())


def shard(number):
    with copied("s1.h5", "x.h5") as f:
        f.attrs["shard"] = number
