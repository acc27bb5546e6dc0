"""eval-ppl.py -- Python of tests/eval-ppl.t"""

import json
from math import log

import h5py
import numpy as np

from lib.h5 import copied, create, numbers, read, set_config


def tokens(path, ids, bos=1, add=1, size=None):
    with create(path, "tokens") as f:
        d = f.create_dataset("tokens", data=np.array(ids, "i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = bos, add, 61
        if size is not None:
            f["bytes"] = np.array(size, "u2")


def nan(f):
    f["model/layers/0/mlp/up_proj/weight"][2, 3] = np.nan


def inf(f):
    f["model/layers/0/input_layernorm/weight"][3] = np.inf


def branch(f):
    f["model/layers/0/mlp/up_proj/branch_a"] = np.zeros((2, 32), "f4")


def big(f):
    f["model/norm/weight"][...] = 3e38


def half(f):
    for name in ("q_proj", "k_proj"):
        p = "model/layers/1/self_attn/%s/weight" % name
        w = f[p][...].astype("f2")
        del f[p]
        f[p] = w


def make(model):
    r = np.random.default_rng(1)

    ids = r.integers(3, 61, 500)
    tokens("t.h5", ids)
    tokens("other.h5", ids[::-1])
    tokens("b.h5", ids, size=np.full(500, 2))
    tokens("high.h5", [3, 61])
    tokens("neg.h5", [3, -1])
    tokens("short.h5", ids[:3])
    tokens("no-bos.h5", ids, -1, 0)

    def change(path, edit=None, **config):
        with copied(model, path) as f:
            set_config(f, **config)
            if edit:
                edit(f)

    change("arch.h5", model_type="odd")
    change("rope.h5", rope_scaling={"rope_type": "yarn", "factor": 2})
    change("heads.h5", num_attention_heads=5, head_dim=None)
    change("groups.h5", num_key_value_heads=3)
    change("deep.h5", num_hidden_layers=3)
    change("shallow.h5", num_hidden_layers=1)
    change("vocab.h5", vocab_size=62)
    change("act.h5", hidden_act="relu7")
    change("wide.h5", hidden_size=10**9)
    change("no-head.h5", lambda f: f.__delitem__("lm_head"), tie_word_embeddings=True)
    change("no-embed.h5", lambda f: f.__delitem__("model/embed_tokens"))
    change("no-q.h5", lambda f: f.__delitem__("model/layers/1/self_attn/q_proj/weight"))

    change("nan.h5", nan)
    change("inf.h5", inf)
    change("branch.h5", branch)
    change("big.h5", big)

    change("half.h5", half)
    change("bias.h5", lambda f: f.__setitem__("model/layers/1/mlp/up_proj/bias", np.ones(44, "f4")))
    with create("junk.h5", "model") as f:
        f["config"] = "{"


def against():
    f = h5py.File("against.h5")
    v = numbers("k")
    kl, top, d = (
        f["kl"][...],
        f["top_agrees"][...],
        np.exp(-f["nll_of_target"][...]) - np.exp(-f["nll_of_reference"][...]),
    )
    se = lambda x: np.sqrt(x.var() / (len(x) - 1))
    want = dict(
        kl=kl.mean(),
        kl_se=se(kl),
        kl_max=kl.max(),
        top_agreement=top.mean(),
        top_agreement_se=se(top),
        delta_p=d.mean(),
        delta_p_rms=np.sqrt((d * d).mean()),
        kl_median=np.median(kl),
        kl_99=np.percentile(kl, 99),
        kl_99_9=np.percentile(kl, 99.9),
        delta_p_median=np.median(d),
        **{"delta_p_%d" % q: np.percentile(d, q) for q in (1, 5, 25, 75, 95, 99)}
    )
    assert kl.min() > 0 and 0 < top.mean() < 1 and f["top_agrees"].dtype == "u1"
    for name, x in want.items():
        assert abs(v[name] - x) <= 1e-3 * abs(x) and abs(f.attrs[name] - x) <= 1e-9 * abs(x) + 1e-15, (name, v[name], x)


def streams():
    raw, parts = open("stream", "rb").read(), []
    while raw:
        n = int.from_bytes(raw[28:36], "little")
        parts.append(raw[:n])
        raw = raw[n:]
    open("early", "wb").write(b"".join(parts[:-1]))
    open("twice", "wb").write(b"".join(parts + parts[-1:]))


def change(path, edit):
    with copied("q.h5", path) as f:
        edit(f["model/layers/1/mlp/up_proj"])


def put(g, name, value):
    del g[name]
    g[name] = value


def quantized_faults():
    change("code.h5", lambda g: put(g, "codes", np.full((44, 32), 16, "u1")))
    change("scale.h5", lambda g: g.__delitem__("scale"))
    change("zero.h5", lambda g: put(g, "zero", np.zeros((44, 3), "u1")))
    change("sixteen.h5", lambda g: put(g, "zero", np.full((44, 2), 16, "u1")))
    change("minus.h5", lambda g: put(g, "scale", np.full((44, 2), -1, "f4")))
    change("group.h5", lambda g: g.attrs.__delitem__("group"))
    change("format.h5", lambda g: g.attrs.__setitem__("storage", "int99"))
    change("act.h5", lambda g: g.attrs.__setitem__("act_mode", "odd"))
    change("index.h5", lambda g: g.__setitem__("group_index", np.full(32, 2, "i4")))
    change("act-zero.h5", lambda g: g.attrs.update(act_format="uint8", act_mode="dynamic-token"))
    change("compute-zero.h5", lambda g: g.attrs.__setitem__("compute", "uint8"))
    change("eight.h5", lambda g: g.attrs.__setitem__("compute", "e4m3fn"))
    change("packed.h5", lambda g: (g.__delitem__("codes"), g.__setitem__("packed", np.zeros((44, 5), "u4"))))
    change("online.h5", lambda g: g.attrs.__setitem__("online_hadamard", 16))
    change("third.h5", lambda g: g.attrs.__setitem__("online_hadamard", 3))
    change("table.h5", lambda g: g.file["model/embed_tokens"].attrs.__setitem__("online_hadamard", 16))


def rotated_keys(ref):
    def mark(name, *values, path=None):
        path = path or "h-%s.h5" % name
        with copied("%s/%s.h5" % (ref, name), path) as f:

            def visit(p, g):
                if isinstance(g, h5py.Group) and p.split("/")[-1] in ("self_attn", "attn", "attention"):
                    g.attrs["kv_hadamard"] = values[min(int(p.split("/")[-2]), len(values) - 1)]

            f.visititems(visit)

    for name in ("llama-gqa", "gpt2", "opt", "neox-parallel"):
        mark(name, 4)
    for name in ("gemma3", "qwen3-window"):
        mark(name, 2)
    for i, v in enumerate((0, 3, 2.5, 16, 1e300, np.nan, "8", [4, 4])):
        mark("llama-gqa", 8, v, path="h%d.h5" % i)


def attributes_alone(model):
    a, b = h5py.File(model), h5py.File("kv-plain.h5")
    assert b.attrs["kv_format"] in ("uint4:4", b"uint4:4") and set(b.attrs) - set(a.attrs) <= {"kv_format", "history"}

    def same(p, o):
        assert dict(o.attrs) == dict(b[p].attrs), p
        if isinstance(o, h5py.Dataset):
            assert o[()] == b[p][()] if o.dtype == object else (o[...] == b[p][...]).all(), p

    n = []
    a.visititems(same)
    b.visit(n.append)
    assert len(n) > 20 and all(p in a for p in n)


def kv_faults(model):
    for i, v in enumerate(("int4:0", "int99", "nvfp4", "none", "uint4:4:4", "", 4, "int4:3")):
        with copied("kv-none.h5", "bad%d.h5" % i) as f:
            f.attrs["kv_format"] = v
    with h5py.File("w.h5", "w") as f, h5py.File(model) as g:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"
        f["a/weight"] = g["lm_head/weight"][...]


def wide_model():
    r, h, n, v = np.random.default_rng(3), 256, 700, 8300
    with create("wide.h5", "model") as f:
        c = dict(
            architectures=["LlamaForCausalLM"],
            hidden_size=h,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=n,
            vocab_size=v,
            max_position_embeddings=2048,
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
        )
        f.create_dataset("config", data=json.dumps(c), dtype=h5py.string_dtype())

        def put(p, *shape):
            f[p + "/weight"] = (r.standard_normal(shape) * 0.05).astype("f4")

        put("model/embed_tokens", v, h)
        put("lm_head", v, h)
        f["model/norm/weight"] = np.ones(h, "f4")
        for b in ("model/layers/0/", "model/layers/1/"):
            for p, o, i in (("q", h, h), ("k", h // 2, h), ("v", h // 2, h), ("o", h, h)):
                put(b + "self_attn/%s_proj" % p, o, i)
            for p, o, i in (("gate", n, h), ("up", n, h), ("down", h, n)):
                put(b + "mlp/%s_proj" % p, o, i)
            for p in ("input_layernorm", "post_attention_layernorm"):
                f[b + p + "/weight"] = np.ones(h, "f4")
    with create("wide-tokens.h5", "tokens") as f:
        f["tokens"] = r.integers(0, v, 2100).astype("i4")


def bf16_near():
    for ctx in (2000, 700, 512, 35):
        a, b = (h5py.File("%s-%d.h5" % (t, ctx))["nll_of_target"][...] for t in ("f32", "bf16"))
        d = np.abs(a - b).max()
        assert 1e-4 < d < 15 * 2**-8 * np.abs(a).max(), d


def bits_per_byte():
    v = numbers("b")
    assert abs(v["bits_per_byte"] - v["nll"] / log(2) / 2) < 1e-6


def as_json():
    v = json.load(open("j"))
    assert v["tokens"] == 494 and abs(v["ppl"]) > 1


def record():
    f = h5py.File("r.h5")
    assert f.attrs["ptq_kind"] == "result"
    assert f["nll_of_target"].shape == (494,) and abs(f["nll_of_target"][...].mean() - f.attrs["nll"]) < 1e-12


def paired():
    a, b = (read(f, "nll_of_target") for f in ("q.h5", "r.h5"))
    d = a - b
    v = dict(map(str.split, open("p")))
    se = ((d * d).mean() - d.mean() ** 2) ** 0.5 / 493**0.5
    assert abs(float(v["paired_nll_delta"]) - d.mean()) < 1e-6 and abs(float(v["paired_nll_delta_se"]) - se) < 1e-3 * se


def both_alone():
    f, q, r = (h5py.File(n) for n in ("against.h5", "q.h5", "r.h5"))
    n = "nll_of_target"
    assert (
        (f[n][...] == q[n][...]).all()
        and (f["nll_of_reference"][...] == r[n][...]).all()
        and (f["target"][...] == q["target"][...]).all()
    )


def json_against():
    v, k = json.load(open("j")), dict(map(str.split, open("k")))
    assert list(v) == list(k) and all(abs(float(k[n]) - v[n]) <= 1e-3 * abs(v[n]) for n in k)


def other_architecture():
    f, o, r = (h5py.File(n) for n in ("x.h5", "o.h5", "r.h5"))
    n = "nll_of_target"
    assert (f[n][...] == o[n][...]).all() and (f["nll_of_reference"][...] == r[n][...]).all() and f["kl"][...].min() > 0


def spoil_states(path):
    with h5py.File(path, "r+") as f:
        f["hidden_states"][2, 0] = np.nan


def remove(path, name):
    f = h5py.File(path, "r+")
    del f[name]


def kv_bits():
    assert h5py.File("kv.h5").attrs["kv_bits"] == 13


def reference_exact():
    f, g = h5py.File("kl.h5"), h5py.File("plain.h5")
    assert (f["nll_of_reference"][...] == g["nll_of_target"][...]).all() and (
        f["nll_of_target"][...] != g["nll_of_target"][...]
    ).any()


def kv_of_each():
    f, g, a, b = (h5py.File(n) for n in ("both.h5", "kl.h5", "alone4.h5", "alone8.h5"))
    ours, theirs = f["nll_of_target"][...], f["nll_of_reference"][...]
    assert (
        (ours == a["nll_of_target"][...]).all() and (theirs == b["nll_of_target"][...]).all() and (ours != theirs).any()
    )
    assert (g["nll_of_reference"][...] == theirs).all() and (g["nll_of_target"][...] != ours).any()


def threads():
    a, b, c = (read(p, "nll_of_target") for p in ("1.h5", "2.h5", "3.h5"))
    assert len(a) and (a == b).all() and (a == c).all()


def likelihood_alone():
    a, b = (read(p, "nll_of_target") for p in ("1.h5", "f32-700.h5"))
    assert (a == b).all() and read("1.h5", "kl").min() > 0


def known(nll):
    v = numbers("out")
    assert v["tokens"] == 4080 and abs(v["nll"] - float(nll)) < 1e-5
