"""model-export.py -- Python of tests/model-export.t: the expected checkpoint of a model file"""

import json
import os
import struct

import h5py
import numpy as np
from ptqtools import Layer

from lib.checkpoint import config, divisor, folder, half, identical, middle, reported
from lib.h5 import copied, set_config


def rows_of_heads(parts, heads):
    """GPT-NeoX: query, key and value of a head, one after the other."""
    parts = [p.reshape(heads, -1, *p.shape[1:]) for p in parts]
    return np.concatenate(parts, 1).reshape(-1, *parts[0].shape[2:])


def checkpoint(path):
    """The expected checkpoint of the model's class, defined here separately for each class."""
    with h5py.File(path) as f:
        c, tree = json.loads(f["config"][()]), {}
        f.visititems(lambda n, d: tree.update({n.replace("/", "."): d[()]}) if isinstance(d, h5py.Dataset)
                     and n not in ("config", "processor", "tokenizer") else None)
    kind, found = c["model_type"], {}

    def join(name, parts, how):
        if parts[0] in name:
            each = [tree[name.replace(parts[0], p)] for p in parts]
            found[name.replace(parts[0], how[0])] = how[1](each)
        return any(p in name for p in parts)

    for name, t in tree.items():
        if kind == "gpt_neox" and "attention." in name and join(
                name, ["q_proj", "k_proj", "v_proj"],
                ("query_key_value", lambda p: rows_of_heads(p, c["num_attention_heads"]))):
            continue
        if kind == "phi3" and (join(name, ["q_proj", "k_proj", "v_proj"], ("qkv_proj", np.concatenate)) or
                               join(name, ["gate_proj", "up_proj"], ("gate_up_proj", np.concatenate))):
            continue
        if kind in ("qwen2_vl", "qwen2_5_vl") and name.startswith("visual.blocks.") and join(
                name, ["attn.q_proj", "attn.k_proj", "attn.v_proj"], ("attn.qkv", np.concatenate)):
            continue
        if kind == "gpt2" and name.endswith("weight") and (".attn.c_" in name or ".mlp.c_" in name):
            t = t.T
        if "llava" in kind:
            name = name.replace("vision_tower.embeddings.pre_layrnorm", "vision_tower.pre_layrnorm")
            name = name.replace("vision_tower.", "vision_tower.vision_model.")
            stem = name.split(".")[0]
            if stem in ("model", "lm_head"):
                name = "language_model." + name
            vision = c["vision_config"]
            if "patch_embedding.weight" in name:
                t = t.reshape(-1, 3, vision["patch_size"], vision["patch_size"])
        if kind in ("idefics3", "smolvlm"):
            name = name.replace("connector.post_layernorm.", "vision_tower.post_layernorm.")
            stem, rest = name.split(".", 1)
            name = dict(model="model.text_model.", vision_tower="model.vision_model.", connector="model.connector.",
                        lm_head="lm_head.")[stem] + rest
            if "patch_embedding.weight" in name:
                t = t.reshape(-1, 3, 5, 5)
        if name == "visual.patch_embed.proj.weight":
            t = t.reshape(-1, 3, 2, 5, 5)
        found[name] = t
    return found


def exported(model, path, kind="F32"):
    """The folder has every tensor of the model's checkpoint, rounded once, and no other."""
    wanted, found, c = checkpoint(model), folder(path), config(path)
    if c.get("tie_word_embeddings"):
        wanted.pop(next(n for n in wanted if n.endswith("lm_head.weight") or n == "embed_out.weight"))
    assert sorted(wanted) == sorted(found), sorted(set(wanted) ^ set(found))
    assert c["dtype"] == {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[kind]
    for name, t in wanted.items():
        t = t.astype("f4") if kind == "F32" else t.astype("f2") if kind == "F16" else half(t)
        assert identical(t, found[name]), name


def members(path, *names):
    """Values of members of config.json, in order."""
    for name in names:
        v = config(path)
        for word in name.split("."):
            v = v.get(word) if v else None
        print(v)


def same_model(a, b):
    """The same tensors, bit for bit."""
    x, y = checkpoint(a), checkpoint(b)
    assert sorted(x) == sorted(y), sorted(set(x) ^ set(y))
    for name in x:
        assert identical(x[name].astype("f4"), y[name].astype("f4")), name


def effective(quantized, exported_again):
    """Weights of the folder equal those of the layers by the reader for Python, rotated in double."""
    with h5py.File(quantized) as q, h5py.File(exported_again) as e:
        n = 0

        def layer(name, g):
            nonlocal n
            if not isinstance(g, h5py.Group) or "codes" not in g or name.endswith(("branch_a", "branch_b")):
                return
            w = Layer(g.id).whole.astype("f8")
            if "online_hadamard" in g.attrs:
                w = w @ hadamard(g.attrs["online_hadamard"], w.shape[1]).T
            d = np.abs(e[name + "/weight"][()] - w).max() / np.abs(w).max()
            assert d <= 2.0 ** -24, (name, d)  # rounded once, after the rotation
            n += 1

        q.visititems(layer)
        assert n


def hadamard(order, n):
    """Sylvester's matrix over √order, in blocks."""
    h = np.ones((1, 1))
    while len(h) < order:
        h = np.block([[h, h], [h, -h]])
    return np.kron(np.eye(n // order), h / np.sqrt(order))


def two_sided(source, path):
    """A model with signs of inputs and a rotation of outputs; its function is that of the source."""
    dice = np.random.default_rng(5)
    with copied(source, path) as f:
        g = f["model/layers/0/mlp/down_proj"]
        w = g["weight"][()].astype("f8")
        s, u = dice.choice([-1, 1], w.shape[1]), dice.choice([-1, 1], w.shape[0])
        order = 4
        h = hadamard(order, w.shape[0])
        # y = x Wᵀ = ((x s) (W s)ᵀ h) hᵀ u u
        g["weight"][...] = (((w * s).T * u) @ h).T
        g.create_dataset("input_signs", data=s.astype("i1"))
        g.create_dataset("output_signs", data=u.astype("i1"))
        g.attrs["output_hadamard"] = np.int64(order)


def close(a, b):
    """Every tensor equals the other file's except for rounding to float32."""
    x, y = checkpoint(a), checkpoint(b)
    assert sorted(x) == sorted(y)
    for name in x:
        assert np.abs(x[name] - y[name]).max() <= 4 * 2.0 ** -24 * np.abs(x[name]).max(), name


def head_bias(source, path):
    with copied(source, path) as f:
        f["lm_head"].create_dataset("bias", data=np.ones(f["lm_head/weight"].shape[0], "f4"))


def norm_bias(source, path):
    with copied(source, path) as f:
        f["model/norm"].create_dataset("bias", data=np.ones(f["model/norm/weight"].shape[0], "f4"))


def large(source, path):
    with copied(source, path) as f:
        f["model/norm/weight"][0] = 1e5


def strangers(source, path, n, name):
    """Adds tensors of one number that the class does not have, with long names."""
    with copied(source, path) as f:
        for i in range(int(n)):
            f[f"a/{i:0{name}}"] = np.array([i], "f4")


def stranger(source, path):
    with copied(source, path) as f:
        f["other/table"] = np.arange(6, dtype="f4").reshape(2, 3)
        f["other/ids"] = np.arange(6, dtype="i4")


def texts(path):
    """A folder with all texts that are copied."""
    for name, text in (("tokenizer_config.json", '{"a": 1.50}\n'), ("special_tokens_map.json", "{}"),
                       ("generation_config.json", '{"max_length": 7}'), ("chat_template.jinja", "{{ messages }}\n")):
        with open(os.path.join(path, name), "w") as f:
            f.write(text)


def tensors(path):
    """Of each tensor of a GGUF file, from its header: the number of its type, its extents, and its offset."""
    raw = open(path, 'rb').read()
    size = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), (1, 1, 2, 2, 4, 4, 4, 1, 8, 8, 8)))
    at = 24

    def take(form):
        nonlocal at
        v = struct.unpack_from('<' + form, raw, at)
        at += struct.calcsize('<' + form)
        return v[0]

    def text():
        nonlocal at
        n = take('Q')
        at += n
        return raw[at - n : at].decode()

    def skip(kind):
        nonlocal at
        if kind == 8:
            text()
        elif kind == 9:
            kind = take('I')
            for _ in range(take('Q')):
                skip(kind)
        else:
            at += size[kind]

    count, values = struct.unpack_from('<QQ', raw, 8)
    for _ in range(values):
        text()
        skip(take('I'))
    found = {}
    for _ in range(count):
        name = text()
        dim = tuple(take('Q') for _ in range(take('I')))
        found[name] = take('I'), dim, take('Q')
    return {name: (kind, dim, at + -at % 32 + offset) for name, (kind, dim, offset) in found.items()}


def types(path):
    return {name: kind for name, (kind, _, _) in tensors(path).items()}


def holds(path, kind, name='blk.0.attn_q.weight'):
    number = dict(F32=0, Q4_0=2, Q4_1=3, Q5_0=6, Q5_1=7, Q8_0=8, MXFP4=39)[kind]
    assert types(path)[name] == number, types(path)


def blocks(path):
    """The number of tensors of block 0 that are blocks of Q4_0, and of the others."""
    t = [k for n, k in types(path).items() if n.startswith('blk.0.')]
    print(t.count(2), len(t) - t.count(2), sep='\n')


def same_text(name, one, other):
    assert h5py.File(one)[name][()] == h5py.File(other)[name][()]


def same_weights(a, b):
    n = 0
    with h5py.File(a) as x, h5py.File(b) as y:

        def visit(name, d):
            nonlocal n
            if isinstance(d, h5py.Dataset) and d.dtype.kind == 'f':
                assert np.array_equal(d[()], y[name][()]), name
                n += 1

        x.visititems(visit)
    assert n


def no_window(path):
    with h5py.File(path, "r+") as f:
        set_config(f, sliding_window=None)


def numbers(source, path):
    """Sets numbers that are not the shortest decimals of a float, as in some published models."""
    with copied(source, path) as f:
        scaling = json.loads(f["config"][()])["rope_parameters"]
        for name, x in ("short_factor", 1.118320672), ("long_factor", 1.0299999713897705):
            scaling[name][-1] = x
        set_config(f, rope_parameters=scaling, rms_norm_eps=1.0000000123e-5)


def configured(source, path, changes):
    """The model with other members of its configuration."""
    with copied(source, path) as f:
        set_config(f, **json.loads(changes))


def stray_expert(source, path):
    """Renames the last expert to a number that the model does not have."""
    with copied(source, path) as f:
        e = f["model/layers/0/block_sparse_moe/experts"]
        e.move("3", "99")


def second_expert(source, path):
    """Adds expert 3 again with a number that begins with 0, with more rows."""
    with copied(source, path) as f:
        f["model/layers/0/block_sparse_moe/experts/03/w1/weight"] = np.ones((99, 32), "f4")


def one_scale(path):
    """Rounds all scales to f16 but one, of q_proj in block 0."""
    with h5py.File(path, "r+") as f:
        s = f["model/layers/0/self_attn/q_proj/scale"]
        x = s[()].astype("f2").astype("f4")
        x.flat[3] *= np.float32(1 + 2**-12)
        s[...] = x


def changed(source, rounded, report):
    """The report has the change of each weight of the model; the other model has the rounded weights."""
    with h5py.File(rounded) as f:
        reported(source, report, lambda name, _: f[name.replace(".", "/") + "/weight"][()].astype("f8"))
