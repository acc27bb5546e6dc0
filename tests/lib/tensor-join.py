"""tensor-join.py -- Python of tests/tensor-join.t"""

import json
import sys

import h5py
import numpy as np

from lib.h5 import copied, create


def changed(path, source, make):
    with copied(source, path) as f:
        make(f)


def make(ref):
    r = np.random.default_rng(1)

    def deepen(f):  # a tied head, four blocks that differ
        c = json.loads(f["config"][()])
        c["num_hidden_layers"] = 4
        del f["config"]
        f["config"] = np.bytes_(json.dumps(c))
        for i in 2, 3:
            f.copy(f"model/layers/{i % 2}", f"model/layers/{i}")
        for i in range(4):
            f[f"model/layers/{i}/self_attn/q_proj/weight"][...] += r.standard_normal(()) / 10

    changed("model.h5", ref + "/llama-tied.h5", deepen)
    changed("other.h5", "model.h5", lambda f: f["model/layers/2/mlp/up_proj/weight"].__setitem__((0, 0), 1))
    changed("norm.h5", "model.h5", lambda f: f["model/layers/2/input_layernorm/weight"].__setitem__(0, 7))
    changed(
        "attribute.h5", "model.h5", lambda f: f["model/layers/2/input_layernorm"].attrs.__setitem__("norm", "layer")
    )
    changed("embedding.h5", "model.h5", lambda f: f["model/embed_tokens/weight"].__setitem__((0, 0), 7))
    changed(
        "config.h5",
        "model.h5",
        lambda f: (
            f.__delitem__("config"),
            f.__setitem__("config", h5py.File("model.h5", "r")["config"][()].replace(b"1e-05", b"1e-06")),
        ),
    )
    changed("three.h5", "model.h5", lambda f: f.__delitem__("model/layers/3"))
    changed(
        "extra.h5",
        "model.h5",
        lambda f: (f.__setitem__("note", np.arange(3)), f["note"].attrs.__setitem__("about", "a user's own")),
    )
    with create("t.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 60, 200).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"] = 1, 1
    for name, seed in ("layers.h5", 2), ("layers2.h5", 2):
        q = np.random.default_rng(seed)
        with create(name, "model") as f:
            for n in "ab":
                f[n + "/weight"] = q.standard_normal((8, 16)).astype("f4")


def all_of(path):
    y = {}

    def look(name, o):
        y[name] = (
            {k: str(v) for k, v in o.attrs.items() if not k.startswith("history")},
            None if isinstance(o, h5py.Group) else (o.dtype.str, o.shape, o[()].tobytes()),
        )

    with h5py.File(path) as f:
        look("/", f)
        f.visititems(look)
        for a in "model/embed_tokens/weight", "lm_head/weight":
            if a in f:
                y["tied"] = f[a] == f["model/embed_tokens/weight"]
    return y


def same_but_history(one, other):
    """Both files are equal except for histories, in any order."""
    a, b = all_of(one), all_of(other)
    print([k for k in a.keys() | b.keys() if a.get(k) != b.get(k)])
    sys.exit(a != b)


def other_shape():
    with create("x.h5", "model") as f:
        f["a/weight"] = np.ones((8, 8), "f4")
