"""experts.py -- Python of tests/experts.t"""

import json

import h5py
import numpy as np

from lib.h5 import copied, create


def tokens(name, ids):
    with create(name, "tokens") as f:
        d = f.create_dataset("tokens", data=np.asarray(ids, "i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = -1, 0, 61


class Experts:
    """Inputs of the layers of each expert in a block of a reference, by a plain computation on the first tokens."""

    def __init__(self, model, block, tokens):
        c = json.loads(model["config"][()])
        at = f"test/router/{block}/"
        self.x, chosen = model[at + "input"][:tokens].astype("f8"), model[at + "choice"][:tokens]
        self.mixtral = c["model_type"] == "mixtral"
        self.path = f"model/layers/{block}/" + ("block_sparse_moe" if self.mixtral else "mlp")
        self.names = ("w1", "w3", "w2") if self.mixtral else ("gate_proj", "up_proj", "down_proj")
        w = lambda name: model[self.path + "/" + name + "/weight"][...].astype("f8")
        logits = self.x @ w("gate").T
        k = c["num_experts_per_tok"]
        choice = np.sort(np.argsort(-logits, 1, kind="stable")[:, :k])
        assert (choice == chosen).all()  # as in transformers
        self.inner, self.rows = [], []
        for e in range(logits.shape[1]):
            gate, up = (self.x @ w(f"experts/{e}/{n}").T for n in self.names[:2])
            self.inner.append(gate / (1 + np.exp(-gate)) * up)
            self.rows.append((choice == e).any(1))

    def inputs(self, e, name):
        """Inputs of all tokens, and which of them reach the expert."""
        return (self.inner[e] if name == self.names[2] else self.x), self.rows[e]


def near(got, want, what, by=2e-5):
    assert got.shape == want.shape and np.abs(got - want).max() <= by * np.abs(want).max() + 1e-30, (
        what,
        np.abs(got - want).max(),
    )


def same_counts(x, y, what):
    """
    Sums over other rows round differently, by some 2^-20 of a number. Such a change crosses an edge of bins 1/64 to
    1/128 wide once in 2^12 times; small differences of large numbers do so more often. One number may always do so.
    """
    assert x.sum() == y.sum() and np.abs((x - y).cumsum()).max() <= 1 + 1e-3 * x.sum(), (
        what,
        np.abs((x - y).cumsum()).max(),
        x.sum(),
    )


def check(g, x, what):
    near(g["hessian"][...].astype("f8"), x.T @ x, what)
    near(g["absmax"][...].astype("f8"), np.abs(x).max(0, initial=0), what)
    near(g["mean_abs"][...].astype("f8"), np.abs(x).mean(0) if len(x) else np.zeros(x.shape[1]), what)
    assert g["count"][()] == len(x) and g["count"].dtype == "i8", what


def hessians(path, count):
    model, n = h5py.File(path), int(count)
    f = h5py.File("h.h5")
    few = none = 0
    for block in model["test/router"]:
        experts = Experts(model, block, n)
        priors = set()
        for e in range(len(experts.rows)):
            for name in experts.names:
                x, rows = experts.inputs(e, name)
                g = f[f"{experts.path}/experts/{e}/{name}"]
                check(g, x[rows], (block, e, name))
                least = x.shape[1]
                assert ("prior" in g) == (rows.sum() < least), (block, e, name)
                if "prior" in g:
                    few += 1
                    none += rows.sum() == 0
                    down = name == experts.names[2]
                    check(g["prior"], x[:least] if down else x, ("prior", block, e, name))
                    if not down:
                        priors.add(h5py.h5o.get_info(g["prior"].id).addr)
            a, b = (f[f"{experts.path}/experts/{e}/{name}"] for name in experts.names[:2])
            assert a == b
        assert len(priors) <= 1  # stored once
        assert "gate" not in f[experts.path] and "shared_expert_gate" not in f[experts.path]
        if "shared_expert" in f[experts.path]:
            g = f[experts.path + "/shared_expert/gate_proj"]
            assert g == f[experts.path + "/shared_expert/up_proj"]
            check(g, experts.x, "shared")
            if priors:
                assert priors == {h5py.h5o.get_info(g.id).addr}
    print(few, none)


def reference_tokens(model):
    tokens("t.h5", h5py.File(model)["test/tokens"][...].ravel())


def shards():
    a, b = h5py.File("whole.h5"), h5py.File("h.h5")
    names = []
    a.visit(lambda n: names.append(n))
    others = []
    b.visit(lambda n: others.append(n))
    assert names == others
    for n in names:
        if isinstance(a[n], h5py.Dataset) and n != "config" and "down_proj/prior" not in n and "w2/prior" not in n:
            x, y = b[n][...].astype("f8"), a[n][...].astype("f8")
            if n.endswith("histogram"):
                same_counts(x, y, n)
            else:
                near(x, y, n, 1e-5)


def dense(name, hessian, absmax, count, out):
    with create(out, "hessian") as f:
        f[name + "/hessian"], f[name + "/absmax"], f[name + "/count"] = (hessian.astype("f4"), absmax, np.int64(count))


def mix(layer):
    h = h5py.File("h.h5")
    g = h[layer]
    p = g["prior"]
    n, c = len(g["absmax"]), g["count"][()]
    assert c < n
    s = g["hessian"][...].astype("f8") + (n - c) / p["count"][()] * p["hessian"][...].astype("f8")
    dense(layer, s, np.maximum(g["absmax"][...], p["absmax"][...]), n, "mixed.h5")
    print(c, "%.6g" % (1 - c / n), sep="\t")


def codes(layer):
    a, b = (h5py.File(p)[layer] for p in ("a.h5", "b.h5"))
    assert sorted(a) == sorted(b) and "codes" in a
    for n in a:
        assert (a[n][...] == b[n][...]).all(), n


def bos_model(model):
    with copied(model, "bos.h5") as f:
        c = json.loads(f["config"][()])
        c["bos_token_id"] = 1
        del f["config"]
        f["config"] = json.dumps(c)


def config(**more):
    def change(f):
        c = json.loads(f["config"][()]) | more
        del f["config"]
        f["config"] = json.dumps(c)

    return change


def count(layer, n, prior):
    def change(f):
        f[layer + "/count"][...] = n
        if not prior:
            del f[layer + "/prior"]

    return change


def faults(model):
    def broken(name, change, model=model):
        with copied(model, name + ".h5") as f:
            change(f)

    at = "model/layers/1/mlp/"

    def shape(f):
        del f[at + "experts/2/up_proj/weight"]
        f[at + "experts/2/up_proj/weight"] = np.ones((3, 32), "f4")

    def gone(name):
        def change(f):
            del f[at + name]

        return change

    broken("shape", shape)
    broken("missing", gone("experts/4"))
    broken("router", gone("gate"))
    broken("switch", gone("shared_expert_gate"))
    broken("fewer", config(num_experts=4))
    broken("more", config(num_experts=6))

    def beyond(f):
        f[at + "experts/5/down_proj/weight"] = f[at + "experts/4/down_proj/weight"][...]

    broken("beyond", beyond)
    broken("chosen", config(num_experts_per_tok=6))
    broken("dense", config(mlp_only_layers=[1]))
    broken("sparse", config(mlp_only_layers=None))
    broken("size", config(moe_intermediate_size=13))
    broken("text", config(mlp_only_layers=["1"]))
    broken("list", config(mlp_only_layers=1))
    broken("step", config(decoder_sparse_step=0))
    broken("huge", config(num_experts=65536, num_hidden_layers=65536, layer_types=None))

    broken("none", count(at + "experts/0/gate_proj", 0, False), "h.h5")
    broken("nothing", count(at + "experts/0/gate_proj/prior", 0, True), "h.h5")


def folders():
    from ref.checkpoints import MIXTRAL, QWEN3MOE, Row, tensor

    def folder(name, base, change=lambda t: None, **changes):
        row = Row(base, **changes)
        change(row.tensors)
        row.write(name)

    at = "model.layers.1.mlp.experts."

    def add(name, *shape):
        def change(t):
            t[name] = tensor(name, *shape)

        return change

    folder("good", QWEN3MOE)
    folder("missing", QWEN3MOE, drop=[at + "3.up_proj.weight"])
    folder("beyond", QWEN3MOE, add(at + "5.up_proj.weight", 12, 16))
    folder("shape", QWEN3MOE, of=dict(moe_intermediate_size=13))
    folder("zero", QWEN3MOE, add(at + "03.up_proj.weight", 12, 16))
    folder("router", MIXTRAL, drop=["model.layers.0.block_sparse_moe.gate.weight"])
    folder("many", MIXTRAL, num_experts_per_tok=5)
    folder(
        "fused", QWEN3MOE, lambda t: [t.pop(n) for n in [n for n in t if at in n]] and add(at + "down_proj", 5, 12)(t)
    )


def orders(layer):
    a, b = (h5py.File(p)[layer + "/order"][...] for p in ("a.h5", "b.h5"))
    assert (a == b).all()


def same_model():
    a, b = (h5py.File(n)["model"] for n in ("q.h5", "own.h5"))
    n = []
    a.visititems(lambda p, o: n.append((o[()] == b[p][()]).all()) if isinstance(o, h5py.Dataset) else None)
    assert all(n) and len(n) > 20, n


def router_hessian():
    f = h5py.File("x.h5")["model/layers/1/mlp"]
    assert f["gate"] == f["experts/0/gate_proj/prior"]
