"""gptq.py -- Python of tests/gptq.t: a reader of GPTQ folders, and what their layers should be"""

import importlib
import json
import os

import h5py
import numpy as np

from lib.h5 import copied, create, layers_of

compressed = importlib.import_module("lib.compressed")
export = importlib.import_module("lib.model-export")


def plain(source, path):
    export.plain(source, path)


def llama(path):
    """A Llama whose extents are multiples of 32, so that codes of any width fill words."""
    rng = np.random.default_rng(11)
    hidden, inner, vocab = 32, 64, 64
    config = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=hidden, intermediate_size=inner,
                  num_attention_heads=4, num_key_value_heads=4, head_dim=8, num_hidden_layers=2, vocab_size=vocab,
                  max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu",
                  tie_word_embeddings=False)
    with create(path, "model") as f:
        f.create_dataset("config", data=json.dumps(config), dtype=h5py.string_dtype())

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
    """What a folder says of its layers, by its configuration alone."""

    def __init__(self, path):
        self.tensors = export.folder(path)
        with open(os.path.join(path, "config.json")) as f:
            self.q = json.load(f)["quantization_config"]
        with open(os.path.join(path, "quantize_config.json")) as f:
            assert json.load(f) == self.q
        assert self.q["quant_method"] == "gptq"
        self.names = [n[:-8] for n in self.tensors if n.endswith(".qweight")]
        assert self.q["lm_head"] is ("lm_head" in self.names)
        assert not any(n + ".weight" in self.tensors for n in self.names)
        self.plain = {n: t for n, t in self.tensors.items()
                      if n.rpartition(".")[2] not in ("qweight", "qzeros", "scales", "g_idx")}

    def layer(self, name):
        """Codes less their zero points [out, in]; a scale for each; the group of each column."""
        bits, size = self.q["bits"], self.q["group_size"]
        words, zeros, scales, index = (self.tensors[f"{name}.{m}"] for m in ("qweight", "qzeros", "scales", "g_idx"))
        (n,), (groups, out) = index.shape, scales.shape
        assert words.dtype == zeros.dtype == index.dtype == np.dtype("i4") and scales.dtype == np.dtype("f2")
        assert words.shape == (n * bits // 32, out) and zeros.shape == (groups, out * bits // 32)
        assert groups == (1 if size == -1 else -(-n // size))
        if not self.q["desc_act"] and size > 0:
            assert (index == np.arange(n) // size).all(), name
        codes = compressed.fields(words.T, bits, n)
        zero = compressed.fields(zeros, bits, out) + (self.q["checkpoint_format"] == "gptq")
        assert zero.max() < 1 << bits
        if self.q["sym"]:
            assert (zero == 1 << bits - 1).all()
        return (codes - zero[index].T).astype("f4"), scales[index].T.astype("f4"), index


def says(path):
    """The configuration in a line."""
    q = Folder(path).q
    print(q["checkpoint_format"], q["bits"], q["group_size"], "symmetric" if q["sym"] else "asymmetric",
          "reordered" if q["desc_act"] else "neighbours")


def ours(g):
    """Codes less zero points, a scale for each, and the groups of columns of a layer, from the format's page."""
    codes, index = g["codes"][()].astype("i4"), np.arange(g["codes"].shape[1])
    kind, group, bits = g.attrs["storage"], g.attrs["group"], g.attrs["bits"]
    index = g["group_index"][()] if "group_index" in g else index // group if group > 0 else 0 * index
    wide = lambda t: np.broadcast_to(t.reshape(1 if group == -1 else len(codes), -1)[:, index], codes.shape)
    zero = wide(g["zero"][()].astype("i4")) if kind.startswith("uint") else 2 ** (bits - 1) - 1
    return (codes - zero).astype("f4"), wide(g["scale"][()]), index


def packed(model, path):
    """Every layer of the folder is the model's, bit for bit, and so are the other tensors."""
    folder, shape = Folder(path), {}
    with h5py.File(model) as f:
        names = layers_of(f)
        assert sorted(folder.names) == sorted(n.replace("/", ".") for n in names) and names
        for name in names:
            for a, b in zip(folder.layer(name.replace("/", ".")), ours(f[name])):
                assert a.shape == b.shape and (a == b).all(), name
        f.visititems(lambda n, d: shape.update({n.replace("/", "."): d[()]}) if isinstance(d, h5py.Dataset)
                     and n.rpartition("/")[0] not in names and n != "config" else None)
    assert sorted(shape) == sorted(folder.plain)
    assert all((folder.plain[n] == shape[n]).all() for n in shape)


def dequantized(path, dense):
    """Codes less zero points times scales are the weights of the folder of plain ones, rounded once."""
    folder, wanted = Folder(path), export.folder(dense)
    for name in folder.names:
        units, scale, _ = folder.layer(name)
        assert (units * scale == wanted.pop(name + ".weight")).all(), name
    assert sorted(wanted) == sorted(folder.plain) and folder.names
    assert all((folder.plain[n] == wanted[n]).all() for n in wanted)


def changed(model, path, report):
    """The report has the relative Frobenius norm of the change of each weight, and the largest."""
    folder = Folder(path)
    with open(report) as f:
        lines = dict(line.split("\t") for line in f.read().splitlines())
    with h5py.File(model) as f:
        for name in layers_of(f):
            units, scale, _ = ours(f[name])
            w = (units * scale).astype("f8")
            if f[name].attrs["compute"] != "none":
                w = np.multiply(*(t.astype("f8") for t in compressed.ours(f[name]))).astype("f4").astype("f8")
            stem = name.replace("/", ".")
            u, s, _ = folder.layer(stem)
            # of float32 products, six digits are printed
            change = np.linalg.norm(u.astype("f8") * s - w) / np.linalg.norm(w)
            assert abs(float(lines[stem]) / change - 1) < 1e-5, (stem, lines[stem], change)
    assert float(lines["all"]) == max(float(lines[n]) for n in folder.names) and len(lines) == 2 + len(folder.names)


def middle(source, path, but=""):
    """Zero points that are the middle code, of all layers but one, and codes of all values."""
    with copied(source, path) as f:
        for name in layers_of(f):
            if not but or but not in name:
                f[name]["zero"][...] = 8
                f[name]["codes"][:, :16] = np.arange(16)


DOWN = "model/layers/0/mlp/down_proj"


def groups(source, path, kind):
    """Groups of columns of other sizes, or of another order than those of a layer of the same tensor."""
    with copied(source, path) as f:
        name = DOWN if kind == "uneven" else "model/layers/0/self_attn/k_proj"
        n = f[name]["codes"].shape[1]
        index = np.arange(n) // f[name].attrs["group"]
        index = np.minimum(index, 1) if kind == "uneven" else index[::-1]
        f[name].create_dataset("group_index", data=index.astype("i4"))


# --- tests/doors/gptq.t ---
def loaded_by_peer(*names):
    """Whether transformers loads the folder and GPTQModel's weights are those of NAME-plain, in float16."""
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
