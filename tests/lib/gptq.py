"""gptq.py -- Python of tests/gptq.t: a reader of GPTQ folders, a writer of GPTQ and AWQ folders, and the expected
layers"""

import importlib
import json
import os
import pickle
import shutil
import tarfile

import h5py
import numpy as np
import peers
import ptqtools

from lib.checkpoint import DOWN, config, dense, divisor, fields, folder, identical, middle, reported, save, scale, units
from lib.h5 import copied, create, layers_of

by_hand = importlib.import_module("lib.import-packed")
holds = by_hand.holds
spoil = by_hand.spoil


def llama(path):
    """A Llama whose dimensions are multiples of 32, so that codes of any width fill words."""
    rng = np.random.default_rng(11)
    hidden, inner, vocab = 32, 64, 64
    c = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=hidden, intermediate_size=inner,
                  num_attention_heads=4, num_key_value_heads=4, head_dim=8, num_hidden_layers=2, vocab_size=vocab,
                  max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu",
                  tie_word_embeddings=False)
    with create(path, "model") as f:
        f.create_dataset("config", data=json.dumps(c), dtype=h5py.string_dtype())

        def put(name, *shape):
            f[name + "/weight"] = rng.normal(0, .2, shape).astype("f4")

        put("model/embed_tokens", vocab, hidden)
        put("lm_head", vocab, hidden)
        f["model/norm/weight"] = np.ones(hidden, "f4")
        for b in range(2):
            stem = f"model/layers/{b}/"
            for name in "qkvo":
                put(f"{stem}self_attn/{name}_proj", hidden, hidden)
            for name in "gate", "up":
                put(f"{stem}mlp/{name}_proj", inner, hidden)
            put(stem + "mlp/down_proj", hidden, inner)
            for name in "input_layernorm", "post_attention_layernorm":
                f[f"{stem}{name}/weight"] = np.ones(hidden, "f4")


class Folder:
    """The layers of a folder, from its configuration only."""

    def __init__(self, path):
        self.tensors, self.q = folder(path), config(path)["quantization_config"]
        with open(os.path.join(path, "quantize_config.json")) as f:
            assert json.load(f) == self.q
        assert self.q["quant_method"] == "gptq"
        self.names = [n[:-8] for n in self.tensors if n.endswith(".qweight")]
        assert self.q["lm_head"] is ("lm_head" in self.names)
        assert not any(n + ".weight" in self.tensors for n in self.names)
        self.plain = {n: t for n, t in self.tensors.items()
                      if n.rpartition(".")[2] not in ("qweight", "qzeros", "scales", "g_idx")}

    def layer(self, name):
        """Codes minus zero points [out, in]; their scales; the group of each column."""
        bits, size = self.q["bits"], self.q["group_size"]
        words, zeros, scales, index = (self.tensors[f"{name}.{m}"] for m in ("qweight", "qzeros", "scales", "g_idx"))
        (n,), (groups, out) = index.shape, scales.shape
        assert words.dtype == zeros.dtype == index.dtype == np.dtype("i4") and scales.dtype == np.dtype("f2")
        assert words.shape == (n * bits // 32, out) and zeros.shape == (groups, out * bits // 32)
        assert groups == (1 if size == -1 else -(-n // size))
        if not self.q["desc_act"] and size > 0:
            assert (index == np.arange(n) // size).all(), name
        codes = fields(words.T, bits, n)
        zero = fields(zeros, bits, out) + (self.q["checkpoint_format"] == "gptq")
        assert zero.max() < 1 << bits
        if self.q["sym"]:
            assert (zero == 1 << bits - 1).all()
        return (codes - zero[index].T).astype("f4"), scales[index].T.astype("f4"), index


def says(path):
    """The configuration in one line."""
    q = Folder(path).q
    print(q["checkpoint_format"], q["bits"], q["group_size"], "symmetric" if q["sym"] else "asymmetric",
          "reordered" if q["desc_act"] else "neighbours")


def packed(model, path):
    """Every layer and every other tensor of the folder equals the model's, bit for bit."""
    here, plain = Folder(path), {}
    with h5py.File(model) as f:
        names = layers_of(f)
        assert sorted(here.names) == sorted(n.replace("/", ".") for n in names) and names
        for name in names:
            u, s, index = here.layer(name.replace("/", "."))
            w = units(f[name])
            assert identical(u, w[0]) and identical(s, w[1]), name
            assert (index == ptqtools.Layer(f[name].id).group_index).all(), name
        f.visititems(lambda n, d: plain.update({n.replace("/", "."): d[()]}) if isinstance(d, h5py.Dataset)
                     and n.rpartition("/")[0] not in names and n != "config" else None)
    assert sorted(plain) == sorted(here.plain)
    assert all(identical(here.plain[n], plain[n]) for n in plain)


def dequantized(path, dense):
    """(Codes minus zero points) times scales, rounded once, are the weights of the plain folder."""
    here, wanted = Folder(path), folder(dense)
    for name in here.names:
        u, s, _ = here.layer(name)
        assert identical(u * s, wanted.pop(name + ".weight")), name
    assert sorted(wanted) == sorted(here.plain) and here.names
    assert all(identical(here.plain[n], wanted[n]) for n in wanted)


def changed(model, path, report):
    here = Folder(path)
    reported(model, report, lambda name, _: np.multiply(*(t.astype("f8") for t in here.layer(name)[:2])))


def groups(source, path, kind):
    """Changes groups of columns to other sizes, or another order than in a layer of the same fused tensor."""
    with copied(source, path) as f:
        name = DOWN if kind == "uneven" else "model/layers/0/self_attn/k_proj"
        n = f[name]["codes"].shape[1]
        index = np.arange(n) // f[name].attrs["group"]
        index = np.minimum(index, 1) if kind == "uneven" else index[::-1]
        f[name].create_dataset("group_index", data=index.astype("i4"))


# --- folders made by hand, for imports ---
ZERO = {"sym": lambda dice, b, shape: np.full(shape, 1 << b - 1, "u1"),
        "v1": lambda dice, b, shape: dice.integers(1, 1 << b, shape, "u1"),
        "v2": lambda dice, b, shape: dice.integers(0, 1 << b, shape, "u1")}
SCHEMES = {
    **{f"v1-{b}": dict(bits=b) for b in (2, 3, 4, 8)},
    **{f"v2-{b}": dict(bits=b, zero="v2") for b in (2, 3, 4, 8)},
    "sym": dict(bits=4, zero="sym"),
    "symv2": dict(bits=4, zero="sym", label="gptq_v2"),
    "channel": dict(bits=4, group=-1, dtype="BF16"),
    "ragged": dict(bits=4, group=24, dtype="F32"),
    "order": dict(bits=4, zero="v2", order=True),
    "old": dict(bits=4, zero="sym", bare=True),
    "awq": dict(bits=4, zero="v2", awq=True),
    "awqsym": dict(bits=4, zero="sym", awq=True),
    "awqrow": dict(bits=4, zero="v2", group=-1, awq=True),
}
LANES = [0, 2, 4, 6, 1, 3, 5, 7]        # the output of each nibble of a word of AWQ, from the lowest nibble


def lanes(codes):
    """Codes along the last axis in AWQ's order."""
    return codes.reshape(len(codes), -1, 8)[:, :, LANES].reshape(codes.shape)


def config_of(s):
    bits, group, zero = s["bits"], s.get("group", 16), s.get("zero", "v1")
    if s.get("awq"):
        return dict(quant_method="awq", version="gemm", bits=bits, group_size=group, zero_point=zero != "sym",
                    modules_to_not_convert=["lm_head"])
    if s.get("bare"):
        return dict(quant_method="gptq", bits=bits, group_size=group)
    return dict(quant_method="gptq", checkpoint_format=s.get("label", "gptq_v2" if zero == "v2" else "gptq"),
                bits=bits, group_size=group, sym=zero == "sym", desc_act=bool(s.get("order")), lm_head=False)


def layer_of(dice, s, out, columns):
    """Tensors of a layer in the folder, and its members in a model file."""
    bits, group, dtype = s["bits"], s.get("group", 16), s.get("dtype", "F16")
    groups = 1 if group == -1 else -(-columns // group)
    codes = dice.integers(0, 1 << bits, (out, columns), "u1")
    zero = ZERO[s.get("zero", "v1")](dice, bits, (out, groups))
    stored, scale = by_hand.numbers(dice, dtype, groups, out)
    here = dict(storage=f"uint{bits}", group=max(group, 0), scale_dtype=dtype.lower(), codes=codes, zero=zero,
                scale=scale.T)
    if s.get("awq"):
        words, zeros = lanes(codes.T), lanes(zero.T)
        return dict(qweight=("I32", dense(words, 4)), qzeros=("I32", dense(zeros, 4)),
                    scales=(dtype, stored)), here
    index = np.arange(columns) // group if group > 0 else np.zeros(columns)
    if s.get("order"):
        index = here["group_index"] = dice.permutation(index).astype("i4")
    less = config_of(s).get("checkpoint_format") != "gptq_v2"
    members = dict(qweight=("I32", dense(codes, bits).T),
                   qzeros=("I32", dense(zero.T - np.uint8(less), bits)), scales=(dtype, stored))
    return members | ({} if s.get("bare") else dict(g_idx=("I32", index.astype("i4")))), here


def make(source, path, scheme):
    """A folder of the plain one's tensors with the layers of blocks packed; PATH.here: the expected members."""
    dice, here, tensors, s = np.random.default_rng(3), {}, {}, SCHEMES[scheme]
    for name, t in folder(source).items():
        layer = name.removesuffix(".weight")
        if "_proj" not in layer or t.ndim != 2:
            tensors[name] = "F32", t
            continue
        members, here[layer] = layer_of(dice, s, *t.shape)
        tensors |= {f"{layer}.{m}": v for m, v in members.items()}
    save(path, tensors, config(source) | dict(quantization_config=config_of(s)))
    with open(path + ".here", "wb") as f:
        pickle.dump(here, f)


def beside(source, path):
    """The folder as AutoGPTQ wrote it: the configuration in a separate file."""
    shutil.copytree(source, path)
    shutil.copy(source + ".here", path + ".here")
    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)
    q = config.pop("quantization_config")
    del q["quant_method"]
    for name, o in (("config.json", config), ("quantize_config.json", q | dict(damp_percent=.01, static_groups=False))):
        with open(os.path.join(path, name), "w") as f:
            json.dump(o, f)


# --- tests/doors/gptq.t ---
def loaded_by_peer(*names):
    """Whether transformers loads the folder and GPTQModel's weights equal those of NAME-plain in float16."""
    import torch
    import transformers
    from gptqmodel.nn_modules.qlinear import BaseQuantLinear
    from safetensors.torch import load_file

    transformers.logging.set_verbosity_error()
    for name in names:
        model = transformers.AutoModelForCausalLM.from_pretrained(name, device_map="cpu", dtype=torch.float16)
        wanted = load_file(os.path.join(name + "-plain", "model.safetensors"))
        layers = {n: m for n, m in model.named_modules() if isinstance(m, BaseQuantLinear)}
        differ = sorted(set(layers) ^ set(Folder(name).names))
        differ += [n for n, m in layers.items() if not torch.equal(m.dequantize_weight().T, wanted[n + ".weight"])]
        print(name, differ[:3] or "equal", sep="\t", flush=True)


def quantized_by_peer(source, tokens, path):
    """The plain folder quantized by GPTQModel on 4 windows of 256."""
    with tarfile.open("source.tar", "w") as t:
        t.add(source, ".")
    with open("packed.tar", "wb") as peers.OUT:
        peers.gptqmodel("gptqmodel", "symmetric", "source.tar", tokens, 256, 4 * 255)
    with tarfile.open("packed.tar") as t:
        t.extractall(path, filter="data")


def packed_by_peer(source, path):
    """The linear layers of blocks of the plain folder, rounded to nearest and packed for AWQ by GPTQModel."""
    import torch
    from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear
    from safetensors.torch import load_file, save_file

    tensors = load_file(os.path.join(source, "model.safetensors"))
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        w = tensors.pop(name).float()
        out, columns = w.shape
        groups = w.reshape(out, -1, 64)
        low, high = groups.amin(2).clamp(max=0), groups.amax(2).clamp(min=0)
        scale = ((high - low) / 15).half()
        zero = (-low / scale.float()).round().clamp(0, 15)
        linear = torch.nn.Linear(columns, out, bias=False)
        linear.weight.data = (((groups / scale[:, :, None].float()).round() + zero[:, :, None]).clamp(0, 15) -
                              zero[:, :, None]).mul(scale[:, :, None].float()).reshape(out, columns)
        layer = AwqTorchLinear(bits=4, group_size=64, sym=False, desc_act=False, in_features=columns,
                               out_features=out, register_buffers=True)
        layer.pack(linear, scale, zero)
        tensors |= {f"{name.removesuffix('weight')}{m}": getattr(layer, m).contiguous()
                    for m in ("qweight", "qzeros", "scales")}
    os.makedirs(path)
    save_file(tensors, os.path.join(path, "model.safetensors"), metadata=dict(format="pt"))
    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)
    config["quantization_config"] = dict(quant_method="awq", version="gemm", bits=4, group_size=64, zero_point=True)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)


def equal_to_peer(path, plain):
    """Whether GPTQModel's weights of a folder equal those of the plain one in float32, bit for bit."""
    import torch
    from safetensors.torch import load_file

    theirs, ours = peers.gptqmodel_weights(path), load_file(os.path.join(plain, "model.safetensors"))
    differ = [n for n, w in theirs.items() if w.dtype != torch.float32 or not torch.equal(w, ours[n])]
    print(differ[:3] or "equal")
