"""import-packed.py -- Python of tests/import-packed.t: packed checkpoints of random codes, written from the description
of their formats, and the expected members of their models"""

import importlib
import json
import os
import pickle
import random
import struct
import subprocess

import h5py
import numpy as np

from lib.checkpoint import TYPES, config, dense, folder, fp8, identical, load, power, save, single
from lib.h5 import layers_of


def padded(codes, bits):
    """As many whole fields in each word as fit."""
    rows, n = codes.shape
    each = 32 // bits
    fields = np.zeros((rows, -(-n // each) * each), "u8")
    fields[:, :n] = codes
    words = (fields.reshape(rows, -1, each) << (np.arange(each, dtype="u8") * np.uint64(bits))).sum(2, dtype="u8")
    return words.astype("u4").view("i4")


def numbers(dice, dtype, *shape):
    """Positive numbers of a type, as stored in a file and in f32."""
    x = dice.uniform(.001, .02, shape).astype("f4")
    if dtype == "F32":
        return x, x
    if dtype == "F16":
        return x.astype("f2"), x.astype("f2").astype("f4")
    if dtype == "F8_E8M0":
        e = dice.integers(110, 130, shape, "u1")
        return e, power(e)
    x = (x.view("u4") >> 16).astype("u2")
    return x, single(x)


def compressed_layer(dice, s, out, columns):
    """Tensors of a layer of compressed-tensors by scheme s, and its members in a model file."""
    bits, group, block = s.get("bits", 8), s.get("group"), s.get("block")
    groups = -(-columns // (group or (block or [0, columns])[1]))
    rows = -(-out // block[0]) if block else out
    tensor, kind, dtype = s.get("tensor"), s["format"], s.get("dtype", "F32")
    here = dict(group=-1 if tensor else group or (block[1] if block else 0))
    here["scale_dtype"] = dtype.lower().removeprefix("f8_")
    members, middle = {}, 1 << bits - 1
    if "fp4" in kind:
        codes = dice.integers(0, 16, (out, columns), "u1")
        members["weight_packed"] = "U8", codes[:, ::2] | codes[:, 1::2] << 4
        here["storage"] = kind[:5]
        if kind[0] == "m":
            e = dice.integers(110, 130, (out, groups), "u1")
            members["weight_scale"] = "U8", e
            return members, here | dict(codes=codes, scale=power(e), scale_dtype="e8m0")
        e = dice.integers(1, 127, (out, groups), "u1")
        members["weight_scale"] = "F8_E4M3", e
        divisor = np.array([437.25], "f4")
        members["weight_global_scale"] = "F32", divisor
        return members, here | dict(codes=codes, scale=fp8(e), scale_dtype="e4m3fn", scale_tensor=divisor)
    stored, scale = numbers(dice, dtype, *((1,) if tensor else (rows, groups)))
    members["weight_scale"] = dtype, stored
    here["scale"] = scale.reshape(1) if tensor else np.repeat(scale, block[0], 0)[:out] if block else scale
    if kind == "float-quantized":
        codes = dice.integers(0, 127, (out, columns), "u1") | dice.integers(0, 2, (out, columns), "u1") << 7
        members["weight"] = "F8_E4M3", codes
        return members, here | dict(codes=codes, storage="e4m3fn")
    codes = dice.integers(0, 1 << bits, (out, columns), "u1")
    codes[0, :2] = 0, (1 << bits) - 1
    zero = np.full(here["scale"].shape, middle, "u1")
    pack = padded if s.get("version", "0.18.0") < "0.17" else dense
    if s.get("asymmetric"):
        zero = dice.integers(0, 1 << bits, zero.shape, "u1")
    signed = (zero.astype("i4") - middle).astype("i1")
    if kind == "int-quantized":
        members["weight"] = "I8", (codes.astype("i4") - middle).astype("i1")
        if s.get("asymmetric"):
            members["weight_zero_point"] = "I8", signed
    else:
        members["weight_packed"] = "I32", pack(codes, bits)
        members["weight_shape"] = "I64", np.array([out, columns])
        if s.get("asymmetric"):
            members["weight_zero_point"] = ("I8", signed) if s.get("bytes") else ("I32", pack(zero.T, bits).T)
    here |= dict(codes=codes, zero=zero, storage=f"uint{bits}")
    if s.get("order"):
        index = dice.permutation(np.arange(columns) // group).astype("i4")
        members["weight_g_idx"] = "I32", index
        here["group_index"] = index
    return members, here


def compressed_group(s, targets):
    """A member of config_groups."""
    bits, group = s.get("bits", 4 if "fp4" in s["format"] else 8), s.get("group")
    strategy = "tensor" if s.get("tensor") else "block" if s.get("block") else "group" if group else "channel"
    weights = dict(num_bits=bits, type="float" if "f" in s["format"][:3] else "int", symmetric=not s.get("asymmetric"),
                   group_size=group, strategy="tensor_group" if s["format"][0] == "n" else strategy, dynamic=False,
                   block_structure=s.get("block"), actorder="group" if s.get("order") else None, observer="minmax")
    how = s.get("inputs")
    inputs = how and dict(num_bits=8, type=weights["type"], symmetric=True, strategy="token" if how == "token" else
                          "tensor", dynamic=how == "token", group_size=None)
    return dict(targets=targets, format=s["format"], weights=weights, input_activations=inputs,
                output_activations=None)


P = "pack-quantized"
SCHEMES = {
    **{f"int{b}": dict(format=P, bits=b, group=4) for b in range(2, 9)},
    **{f"uint{b}": dict(format=P, bits=b, group=4, asymmetric=True) for b in range(2, 9)},
    **{f"old{b}": dict(format=P, bits=b, group=4, asymmetric=True, version="0.14.0.1") for b in (3, 4, 5, 6, 7)},
    **{f"bare{b}": dict(format=P, bits=b, group=4, asymmetric=True, version="0.1", bare=True) for b in (3, 4, 5, 6, 7)},
    **{f"new{b}": dict(format=P, bits=b, group=4, asymmetric=True, bare=True) for b in (5, 7)},
    "bytes": dict(format=P, bits=4, group=4, asymmetric=True, bytes=True, version="0.8.1"),
    "channel": dict(format=P, bits=4, asymmetric=True, dtype="BF16"),
    "half": dict(format=P, bits=8, group=4, dtype="F16"),
    "order": dict(format=P, bits=4, group=4, order=True, asymmetric=True),
    "w8": dict(format="int-quantized"),
    "w8a8": dict(format="int-quantized", inputs="token", dtype="BF16"),
    "w8a8s": dict(format="int-quantized", inputs="tensor", tensor=True),
    "w8u": dict(format="int-quantized", asymmetric=True),
    "w4a8": dict(format="int-quantized", bits=4, group=4, inputs="token"),
    "fp8": dict(format="float-quantized"),
    "fp8d": dict(format="float-quantized", inputs="token", dtype="BF16"),
    "fp8s": dict(format="float-quantized", inputs="tensor", tensor=True),
    "block": dict(format="float-quantized", block=[16, 8]),
    "deepseek": dict(format="float-quantized", block=[16, 8], method="fp8"),
    "powers": dict(format="float-quantized", block=[16, 8], method="fp8", dtype="F8_E8M0"),
    "autofp8": dict(format="float-quantized", tensor=True, inputs="tensor", method="fp8"),
    "mxfp4": dict(format="mxfp4-pack-quantized", group=32),
    "nvfp4": dict(format="nvfp4-pack-quantized", group=16),
}


def inputs_of(dice, s, members, here):
    if s.get("inputs") == "tensor":
        here["act_scale"] = dice.uniform(.01, .1, 1).astype("f4")
        members["input_scale"] = "F32", here["act_scale"]
    if s.get("inputs"):
        here["act_mode"] = "dynamic-token" if s["inputs"] == "token" else "static-tensor"
        here["act_format"] = "e4m3fn" if s["format"][0] == "f" else "int8"


def fp8_layer(dice, s, out, columns):
    """Tensors of a layer with quant_method fp8, and its members in a model file."""
    members, here = compressed_layer(dice, s, out, columns)
    if not s.get("tensor"):
        members["weight_scale_inv"] = members.pop("weight_scale")
    return members, here


def fp8_config(s):
    return dict(quant_method="fp8", activation_scheme="static" if s.get("inputs") else "dynamic", fmt="e4m3",
                **{"weight_block_size": s["block"]} if "block" in s else {})


def compressed_config(schemes):
    """schemes: pairs (scheme, word)"""
    formats, first = {s["format"] for s, _ in schemes}, schemes[0][0]
    return dict(
        quant_method="compressed-tensors", **{} if first.get("bare") else {"version": first.get("version", "0.18.0")},
        format="mixed-precision" if len(formats) > 1 else min(formats), quantization_status="compressed",
        ignore=["lm_head", "re:.*layers.[0-9].+norm"], kv_cache_scheme=None, sparsity_config={}, transform_config={},
        config_groups={f"group_{i}": compressed_group(s, [f"re:.*{w}" if w else "Linear"])
                       for i, (s, w) in enumerate(schemes)})


def make(source, path, *rules):
    """A folder of the plain one's tensors. The first rule SCHEME[:WORD] whose word is in the name of a layer packs it.
    PATH.here: the expected members."""
    dice, here, tensors = np.random.default_rng(1), {}, {}
    for name, t in folder(source).items():
        layer = name.removesuffix(".weight")
        conv = ".c_" in layer
        linear = ("_proj" in layer or conv) and name != layer and t.ndim == 2
        t = t.T if conv and linear else t       # transposed as in Conv1D
        rule = next((r for r in rules if linear and r.partition(":")[2] in layer), None)
        s = rule and SCHEMES[rule.partition(":")[0]]
        if not s or t.shape[1] % 32 and "fp4" in s["format"]:
            assert not (conv and linear)
            tensors[name] = "F32", t
            continue
        members, here[layer] = (fp8_layer if "method" in s else compressed_layer)(dice, s, *t.shape)
        inputs_of(dice, s, members, here[layer])
        tensors |= {f"{layer}.{m}": v for m, v in members.items()}
    schemes = [(SCHEMES[r.partition(":")[0]], r.partition(":")[2]) for r in rules]
    first = schemes[0][0]
    q = fp8_config(first) if "method" in first else compressed_config(schemes)
    save(path, tensors, config(source) | dict(quantization_config=q))
    with open(path + ".here", "wb") as f:
        pickle.dump(here, f)


def unaligned(path, pad):
    """A GPTQ folder of 24 blocks, 19 MB, whose data begin `pad` bytes after a multiple of 8."""
    n, blocks, header, at, sizes = 512, 24, {}, 0, []

    def add(name, dtype, *shape):
        nonlocal at
        size = int(np.prod(shape)) * np.dtype(TYPES[dtype]).itemsize
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[at, at + size])
        at += size
        sizes.append((name, size))

    for name in ("embed_tokens", "norm"):
        add(f"model.{name}.weight", "F32", *([64] if name == "embed_tokens" else []), n)
    for i in range(blocks):
        for name in ("self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down"):
            layer = f"model.layers.{i}.{name}_proj."
            add(layer + "qweight", "I32", n * 3 // 32, n)
            add(layer + "qzeros", "I32", 1, n * 3 // 32)
            add(layer + "scales", "F32", 1, n)
        for name in ("input_layernorm", "post_attention_layernorm"):
            add(f"model.layers.{i}.{name}.weight", "F32", n)
    text = json.dumps(header).encode()
    os.makedirs(path)
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        text += b" " * (-len(text) % 8 + int(pad))
        f.write(struct.pack("<Q", len(text)) + text)
        for name, size in sizes:
            f.write(np.ones(size // 4, "f4").tobytes() if name.endswith(("weight", "scales")) and "qw" not in name
                    else bytes(size))
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=n, intermediate_size=n,
                  num_hidden_layers=blocks, num_attention_heads=8, vocab_size=64, max_position_embeddings=64,
                  rms_norm_eps=1e-5, hidden_act="silu", tie_word_embeddings=True,
                  quantization_config=dict(quant_method="gptq", bits=3, group_size=-1, sym=False, desc_act=False))
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)


def holds(path, model):
    """Every layer of the model equals that of make(), bit for bit, and every other tensor that of the folder."""
    with open(path + ".here", "rb") as f:
        here = pickle.load(f)
    with h5py.File(model) as f:
        assert "quantization_config" not in json.loads(f["config"][()])
        assert f.attrs["history:checkpoint"].startswith("quantization_config quant_method=")
        for name, y in here.items():
            g = f[name.replace(".", "/")]
            for key in ("storage", "group", "act_mode", "act_format"):
                assert g.attrs.get(key) == y.get(key), (name, key, g.attrs.get(key))
            assert g.attrs.get("scale_dtype", "f32") == y["scale_dtype"], name
            for key in ("codes", "scale", "zero", "group_index", "scale_tensor", "act_scale"):
                assert (key in g) == (key in y), (name, key)
                assert key not in y or identical(g[key], y[key]), (name, key)
        assert {n.replace("/", ".") for n in layers_of(f) if "codes" in f[n]} == set(here)
        for name, (_, t) in load(path)[0].items():
            if name.rpartition(".")[0] not in here or name.endswith(".bias"):
                assert identical(f[name.replace(".", "/")], t), name


def spoil(path, to, what, *values):
    """A copy of the folder with one error."""
    tensors, c = load(path)
    q, layer = c["quantization_config"], "model.layers.0.mlp.up_proj"
    group = q.get("config_groups", {}).get("group_0")
    value = json.loads(values[-1]) if values else None

    def change(member, f):
        name = f"{layer}.{member}"
        dtype, a = tensors[name]
        tensors[name] = dtype, f(a.copy())

    if what == "gone":
        del tensors[f"{layer}.{values[0]}"]
    elif what == "extra":
        tensors[f"{layer}.{values[0]}"] = "F32", np.array([value], "f4")
    elif what == "first":
        def first(a):
            a.flat[0] = float(value) if a.dtype.kind == "f" else value
            return a
        change(values[0], first)
    elif what == "type":
        name = f"{layer}.{values[0]}"
        TYPES[value] = tensors[name][1].dtype
        tensors[name] = value, tensors[name][1]
    elif what == "shorter":
        change(values[0], lambda a: a[:, :-1])
    elif what == "config":
        q[values[0]] = value
    elif what == "group":
        group[values[0]] = value
    elif what == "weights":
        group["weights"][values[0]] = value
    elif what == "inputs":
        group["input_activations"] = dict(num_bits=8, type="float", symmetric=True, dynamic=True) | value
    elif what == "keys":
        tensors["model.layers.0.self_attn.k_scale"] = "F32", np.array([1], "f4")
        q["kv_cache_scheme"] = value
    elif what == "asymmetric":
        group["input_activations"]["symmetric"] = False
        for name in [n for n in tensors if n.endswith(".input_scale")]:
            tensors[name.replace("_scale", "_zero_point")] = "I8", np.array([-3], "i1")
    elif what == "frozen":
        q["quantization_status"] = what
        for name in [n for n in tensors if n.startswith(layer) and not n.endswith("_scale")]:
            del tensors[name]
        tensors[layer + ".weight"] = "F32", np.ones((44, 32), "f4")
    elif what == "words":
        q[what] = {f"word{i}": "x" for i in range(value)}
    elif what == "renamed":
        c["compression_config"] = c.pop("quantization_config")
    elif what == "stranger":
        for name in [n for n in tensors if n.startswith(layer)]:
            tensors[name.replace("up_proj", "new_proj")] = tensors[name]
    save(to, tensors, c)


def same_config(folder, model):
    """Whether the model has the folder's configuration, with the same digits of numbers."""
    with open(os.path.join(folder, "config.json")) as f, h5py.File(model) as h:
        assert json.load(f, parse_float=str) == json.loads(h["config"][()], parse_float=str)


def history(model, *words):
    with h5py.File(model) as f:
        assert set(words) <= set(f.attrs["history:checkpoint"].split())


def fuzz(path):
    """Folders with some changed bytes in headers and config.json are imported, or refused with one line."""
    dice, bad = random.Random(5), 0
    with open(os.path.join(path, "model.safetensors"), "rb") as f:
        tensors = f.read()
    with open(os.path.join(path, "config.json"), "rb") as f:
        config = f.read()
    header, at = 8 + int.from_bytes(tensors[:8], "little"), config.index(b"quantization_config")
    os.makedirs("fuzz")
    for i in range(60):
        t, c = bytearray(tensors), bytearray(config)
        for _ in range(dice.randint(1, 3)):
            if i % 3:
                c[dice.randrange(at, len(c))] = dice.choice(b'0123456789[]{},:"-.x ')
            else:
                t[dice.randrange(8, header)] = dice.choice(b'0123456789[]{},:"-.x ')
        for name, text in (("model.safetensors", t), ("config.json", c)):
            with open(os.path.join("fuzz", name), "wb") as f:
                f.write(text)
        r = subprocess.run(["model-import", "-q", "fuzz", "-o", "fuzz.h5"], stderr=subprocess.PIPE)
        lines = [line for line in r.stderr.splitlines() if b": warning: " not in line]
        if r.returncode not in (0, 1) or len(lines) != r.returncode:
            bad += 1
            print(i, r.returncode, r.stderr.decode(errors="replace")[:1000])
    assert not bad


# --- other packages ---

def parameters_by_peer(w, args):
    """Scales, zero points and the divisor of scales, from the smallest and largest weight of each group."""
    import torch
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
    out, columns = w.shape
    if args.strategy == "tensor":
        low, high = w.min().reshape(1), w.max().reshape(1)
    elif args.strategy == "block":
        r, c = args.block_structure
        full = torch.zeros(-(-out // r) * r, -(-columns // c) * c)
        full[:out, :columns] = w
        blocks = full.reshape(len(full) // r, r, -1, c)
        low, high = blocks.amin((1, 3)), blocks.amax((1, 3))
    else:
        groups = w.reshape(out, -1, args.group_size or columns)
        low, high = groups.amin(2), groups.amax(2)
    whole = generate_gparam(w.min().reshape(1), w.max().reshape(1)) if args.strategy == "tensor_group" else None
    scale, zero = calculate_qparams(low, high, args, **{} if whole is None else {"global_scale": whole})
    return scale, zero, whole


def dequantized(state, found, scheme, compressor):
    """The weight that the package multiplies, in float32."""
    import torch
    if "fp4" not in scheme.format:
        return compressor.decompress(state, scheme)["weight"]
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    rows, half = state["weight_packed"].shape
    codes = unpack_fp4_from_uint8(state["weight_packed"], rows, 2 * half).float()
    return dequantize(x_q=codes, scale=compressor._decompress_scale(state["weight_scale"], torch.float32),
                      args=scheme.weights, global_scale=found, dtype=torch.float32)


def written_by_peer(source, *names):
    """Folders of the plain one's layers compressed by compressed-tensors; PATH.npz: its dequantized weights."""
    import torch
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme
    from safetensors.torch import save_file
    for path in names:
        s = SCHEMES[path] | ({"group": 32} if SCHEMES[path].get("group") == 4 else {})
        s |= {"block": [128, 128]} if "block" in s else {}
        group = compressed_group(s, ["Linear"])
        if "fp4" in s["format"]:
            group["weights"]["scale_dtype"] = "torch.uint8" if s["format"][0] == "m" else "torch.float8_e4m3fn"
        scheme = QuantizationScheme(**group)
        compressor = BaseCompressor.get_value_from_registry(s["format"])
        tensors, weights = {}, {}
        for name, t in folder(source).items():
            layer, w = name.removesuffix(".weight"), torch.tensor(t)
            if "_proj" not in layer or w.ndim != 2:
                tensors[name] = w
                continue
            scale, zero, whole = parameters_by_peer(w, scheme.weights)
            state = {"weight": w, "weight_scale": scale, "weight_zero_point": zero}
            state |= {} if whole is None else {"weight_global_scale": whole}
            state |= {"input_scale": torch.tensor([.05])} if s.get("inputs") == "tensor" else {}
            state = compressor.compress(state, scheme)
            weights[name] = dequantized(state, whole, scheme, compressor).float().numpy()
            tensors |= {f"{layer}.{m}": v.contiguous() for m, v in state.items()}
        os.makedirs(path)
        save_file(tensors, os.path.join(path, "model.safetensors"))
        with open(os.path.join(path, "config.json"), "w") as f:
            json.dump(config(source) | {"quantization_config": compressed_config([(s, "")]) | {"version": "0.20.0"}}, f)
        np.savez(path + ".npz", **weights)


def written_by_transformers(source, path):
    """FP8 in blocks of 128 x 128, and the weights that transformers dequantizes."""
    import torch
    from safetensors.torch import save_file
    from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
    tensors, weights = {}, {}
    for name, t in folder(source).items():
        w = torch.tensor(t)
        tensors[name] = w
        if "_proj" not in name or w.ndim != 2:
            continue
        shape = [-(-n // 128) for n in w.shape]
        scale = torch.rand(shape) * .01 + .001
        wide = scale.repeat_interleave(128, 0).repeat_interleave(128, 1)[:w.shape[0], :w.shape[1]]
        tensors[name] = (w / wide).to(torch.float8_e4m3fn)
        tensors[name + "_scale_inv"] = scale
        weights[name] = _dequantize_fp8_weight(tensors[name], scale, [128, 128], torch.float32).numpy()
    os.makedirs(path)
    save_file(tensors, os.path.join(path, "model.safetensors"))
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config(source) | {"quantization_config": fp8_config({"block": [128, 128]})}, f)
    np.savez(path + ".npz", **weights)


def equal_to_peer(path, exported):
    """Whether weights of an exported folder equal PATH.npz, bit for bit; otherwise how many differ."""
    theirs, ours = np.load(path + ".npz"), folder(exported)
    assert len(theirs.files)
    assert all(theirs[n].dtype == ours[n].dtype == "f4" for n in theirs.files)
    differ = sum(int((theirs[n].view("u4") != ours[n].view("u4")).sum()) for n in theirs.files)
    return "equal" if not differ else f"{differ} differ"


def no_bos(path):
    importlib.import_module("lib.hf").no_bos(path)


def likelihoods(tokens, *names):
    """Mean likelihoods over windows of 128 ids, by transformers on each folder in float32."""
    import torch
    import transformers
    hf = importlib.import_module("lib.hf")
    transformers.logging.set_verbosity_error()
    with h5py.File(tokens) as f:
        ids = f["tokens"][()]
    for name in names:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            name, dtype=torch.float32, attn_implementation="eager",
            quantization_config=transformers.CompressedTensorsConfig(dequantize=True)).eval()
        nll = [hf.nll_of(model, ids[i:i + 128]) for i in range(0, len(ids), 128)]
        print(name, format(float(np.concatenate(nll).mean()), ".9g"), sep="\t", flush=True)
