"""tensor-info.py -- Python of tests/tensor-info.t"""

import hashlib
import json

import h5py
import numpy as np

from lib.h5 import copied, create

MEMBERS = "weight", "codes", "packed"


def facts(path):
    with open(path) as f:
        return json.load(f)


def is_layer(g):
    return any(m in g for m in MEMBERS[1:]) or ("weight" in g and g["weight"].ndim == 2)


def extents(g):
    if "packed" in g:
        return g["packed"].shape[0], int(g["packed"].attrs["columns"])
    return g["codes" if "codes" in g else "weight"].shape


def each(f, visit, prefix=""):
    """Calls visit for every name of every object, the embeddings before a tied head: visititems() visits an object
    with several names once."""
    for name, g in sorted(f.items(), key=lambda item: item[0] == "lm_head"):
        visit(f"{prefix}/{name}", g)
        if isinstance(g, h5py.Group):
            each(g, visit, f"{prefix}/{name}")


def model(path, said):
    """Sizes, parameters and layers of a model file, from its datasets."""
    j, parameters, layers, seen = facts(said), 0, {}, set()
    sizes = {"num_hidden_layers": "blocks", "hidden_size": "hidden", "num_attention_heads": "heads",
             "num_key_value_heads": "kv_heads", "vocab_size": "vocab", "intermediate_size": "intermediate"}

    def visit(name, g):
        nonlocal parameters
        if "branch_" in name:
            return
        if isinstance(g, h5py.Group) and is_layer(g):
            weight = g[next(m for m in MEMBERS if m in g)]
            address = h5py.h5o.get_info(weight.id).addr
            if address in seen:
                return  # a tied head
            seen.add(address)
            m, n = extents(g)
            parameters += m * n
            place = "blocks" if "/layers/" in name else "embedding" if "embed" in name else "head"
            key = place, g.attrs.get("storage", None), weight.name.split("/")[-1]
            layers.setdefault(key, []).append(m * n)
        elif isinstance(g, h5py.Dataset) and g.dtype.kind in "fV":
            if name.endswith("/bias") or not is_layer(g.parent):
                parameters += g.size

    with h5py.File(path) as f:
        c = json.loads(f["config"][()])
        for name, key in sizes.items():
            assert j[key] == c[name], (key, j[key], c[name])
        assert j["class"] == c["architectures"][0] and j["kind"] == "model" and j["version"] == "1"
        each(f, visit)
    got = {}
    for row in j["layers"]:
        key = row["place"], None if row["stored_as"] == "weight" else row["storage"], row["stored_as"]
        before = got.get(key, (0, 0))
        got[key] = before[0] + row["layers"], before[1] + row["weights"]
    assert got == {k: (len(v), sum(v)) for k, v in layers.items()}, (got, layers)
    assert j["parameters"] == parameters, (j["parameters"], parameters)


def history(path, said):
    """The histories of a file, oldest first."""
    with h5py.File(path) as f:
        want = {k[len("history"):].lstrip(":"): v.split("\n")[::-1]
                for k, v in f.attrs.items() if k.startswith("history")}
        made = f.attrs["history"].split("\n")[0].split()[:2]
    j = facts(said)
    assert {h["of"]: h["commands"] for h in j["history"]} == want
    assert j["made_by"] == " ".join(made) and list(j)[-1] == "history"


def splits(path, said):
    """Split columns, and rotations of inputs."""
    number = rotated = 0

    def visit(name, g):
        nonlocal number, rotated
        number += len(g) if name.endswith("/split_index") else 0
        rotated += "online_hadamard" in g.attrs

    with h5py.File(path) as f:
        each(f, visit)
    rows = facts(said)["layers"]
    assert number and sum(r.get("split_columns", 0) for r in rows) == number
    assert rotated and sum(r["layers"] for r in rows if "online_hadamard" in r) == rotated
    assert facts(said)["attributes"]["rotated"] == "hadamard"


def branches(said):
    rows = [r for r in facts(said)["layers"] if r.get("with") == "branch_a branch_b"]
    assert sum(r["layers"] for r in rows) == 7 and all(r["rank"] == 2 for r in rows), rows


def tokens(path, said):
    j = facts(said)
    with h5py.File(path) as f:
        t = f["tokens"]
        assert j["tokens"] == len(t) and j["tokens_sha256"] == hashlib.sha256(t[()].astype("<i4").tobytes()).hexdigest()
        for name in "vocab", "bos_id", "add_bos":
            assert j[name] == t.attrs[name]
        assert j["sequences"] == (len(f["sequence"]) - 1 if "sequence" in f else 1)
        assert j["reordered"] == ("index" in f)
        assert {d["dataset"]: d["shape"] for d in j["datasets"]} == {f"/{n}": list(f[n].shape) for n in f}


def hessian(path, said):
    j, counts, members = facts(said), [], {}

    def visit(name, g):
        if isinstance(g, h5py.Dataset) and name.count("/") > 1:
            member = name.split("/")[-1]
            members[member] = members.get(member, 0) + 1
            if member == "count":
                counts.append(int(np.sum(g[()])))

    with h5py.File(path) as f:
        each(f, visit)
        assert j["attributes"]["basis"] == f.attrs["basis"]
        digest, first, end = f.attrs["calibration"].split()
        assert j["calibration"] == [{"tokens_sha256": digest, "first": int(first), "end": int(end)}]
    assert (j["layers"], j["tokens_min"], j["tokens_max"]) == (len(counts), min(counts), max(counts))
    assert {m["member"]: m["layers"] for m in j["members"]} == members


def large():
    """256 GiB of weights, in a file that has no blocks of them."""
    with create("large.h5", "model") as f:
        space, p = h5py.h5s.create_simple((1 << 15, 1 << 15)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        p.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        for i in range(64):
            h5py.h5d.create(f.create_group(f"layer{i}").id, b"weight", h5py.h5t.IEEE_F32LE, space, dcpl=p)


def files():
    with create("codes.h5", "model") as f:
        g = f.create_group("a")
        g["codes"], g["scale"] = np.full((4, 8), 255, "u1"), np.full((4, 1), np.nan, "f4")
        g.attrs["storage"], g.attrs["group"] = "int4", 8
        f["b/weight"] = np.full((4, 4), np.nan, "f2")
    with create("chunked.h5", "model") as f:  # 25 MB, more than the check for damage reads
        d = f.create_dataset("a/weight", (2500, 2500), "f4", chunks=(2500, 2500), compression="gzip")
        d.id.write_direct_chunk((0, 0), b"no gzip data")
    with create("other.h5", "wavelet") as f:
        f.attrs["level"], f.attrs["name"], f.attrs["odd"] = 3, "a\nb\x1b[31m", [1, 2]
        f["x/0/y"], f["x/1/y"], f["x/2/y"] = np.zeros(3), np.zeros(3), np.zeros((2, 2))
        f["empty"], f["text"] = h5py.Empty("f4"), "words"
        f["compound"] = np.zeros(2, [("a", "f4"), ("b", "i4")])
    with h5py.File("plain.h5", "w") as f:
        f["x"] = np.zeros((1, 2, 1, 2, 1, 2, 1))
    with h5py.File("empty.h5", "w"):
        pass
    with create("class.h5", "model") as f:
        f["config"] = json.dumps({"model_type": "rwkv"})
        f["a/weight"] = np.zeros((2, 2), "f4")
    with create("latin.h5", "order") as f:
        f.attrs.create("key", np.bytes_(b"\xe9t\xe9"))
    with create("version.h5", "order") as f:
        f.attrs["ptq_version"] = "2"
    with create("bare.h5", "tokens") as f:
        f["tokens"] = np.arange(5, dtype="i4")
    with create("no-tokens.h5", "tokens") as f:
        f["x"] = np.arange(5)
    with create("two.h5", "model") as f:
        f["a/weight"], f["a/codes"] = np.zeros((2, 2), "f4"), np.zeros((2, 2), "u1")
    with create("extents.h5", "model") as f:
        f["a/weight"], f["a/bias"] = np.zeros((2, 2), "f4"), np.zeros(3, "f4")
    with create("counts.h5", "hessian") as f:
        f["a/hessian"], f["a/count"] = np.zeros((2, 2), "f4"), "three"


def odd():
    """Names, numbers and texts of every form."""
    with create("odd.h5", "wavelet") as f:
        f.attrs[b"\xe8t\xe9"], f.attrs[b"\xe9t\xe9"] = 1, 2
        f.attrs["e\x1bs\u202e"] = "a\u009bb\u202ec\u061cd\x7f\u00e9\u4e16"
        f.attrs["whole"], f.attrs["huge"], f.attrs["inf"], f.attrs["nan"] = -2**53 + 1, 1e300, np.inf, np.nan
        f.attrs["low"], f.attrs["high"] = np.int64(-2**63 + 1), np.uint64(2**64 - 1)
        f.attrs["calibration"], f.attrs["evaluation"], f.attrs["history:\x1b"] = "of a sensor", 3.5, "a\x9bb"
        f.create_dataset("long", (2**60 + 1,), "u1", chunks=(1,))
    with copied("hessian.h5", "half.h5") as f:
        f.attrs["calibration"] += "\nanother line"
    with copied("tokens.h5", "numbers.h5") as f:
        f["tokens"].attrs["vocab"], f["tokens"].attrs["bos_id"], f["tokens"].attrs["newline"] = 1e300, np.inf, 2**63
    with create("many.h5", "wavelet") as f:
        f["x"] = 1
        for i in range(50000):
            f[f"x{i}"] = f["x"]
    with create("vast.h5", "model") as f:
        f.create_dataset("a/norm", (2**33, 2**31), "f4", chunks=(1, 1))


def other(said):
    j = facts(said)
    assert j["kind"] == "wavelet" and j["attributes"] == {"level": 3, "name": "a\nb\x1b[31m", "odd": None}
    assert j["datasets"] == [
        {"count": 1, "dataset": "/compound", "type": "other", "shape": [2]},
        {"count": 1, "dataset": "/empty", "type": "f32", "shape": None},
        {"count": 1, "dataset": "/text", "type": "string", "shape": []},
        {"count": 2, "dataset": "/x/#/y", "type": "f64", "shape": [3]},
        {"count": 1, "dataset": "/x/#/y", "type": "f64", "shape": [2, 2]},
    ], j["datasets"]


def reorder():
    """Tokens in two sequences, the first one reordered."""
    with copied("tokens.h5", "mixed.h5") as f:
        n = len(f["tokens"])
        f["sequence"], f["index"] = np.int64([0, 8, n]), np.int32([*range(8)[::-1], *range(n - 8)])


def joined():
    """A kept stream and the file that tensor-join makes of it: the same facts, and one command more."""
    one, two = facts("kept"), facts("joined")
    assert one.pop("stored") == "stream" and two.pop("stored") == "file"
    assert two.pop("made_by").startswith("tensor-join ") and one.pop("made_by").startswith("dpq-run ")
    assert two["history"][0]["commands"].pop().startswith("tensor-join ")
    assert one == two, (one, two)
