"""compressed.py -- Python of tests/compressed.t: a reader of compressed-tensors folders, and the expected layers"""

import json
import os
import re

import h5py
import numpy as np

from lib.checkpoint import (DOWN, FP4, config, fields, folder, fp8, half, identical, middle, power, reported,
                            safetensors, scale, single, units)
from lib.h5 import copied, layers_of


def fits(name, targets):
    """Whether the name is one of the targets, or its start matches one of their patterns."""
    return any(re.match(t[3:], name) if t.startswith("re:") else t == name for t in targets)


class Folder:
    """The linear layers of a folder, from config.json and names of tensors only."""

    def __init__(self, path):
        self.tensors, self.config = folder(path), config(path)
        self.q = q = self.config["quantization_config"]
        assert q["quant_method"] == "compressed-tensors" and q["quantization_status"] == "compressed"
        formats = {g["format"] for g in q["config_groups"].values()}
        assert q["format"] == (formats.pop() if len(formats) == 1 else "mixed-precision")

    def scheme(self, name):
        """The group of a linear layer; None: it is ignored."""
        if fits(name, self.q["ignore"]):
            return None
        found = [g for g in self.q["config_groups"].values() if "Linear" in g["targets"] or fits(name, g["targets"])]
        assert len(found) == 1, name
        return found[0]

    def take(self, name, member, *shape):
        t = self.tensors.pop(f"{name}.{member}")
        assert t.shape == shape, (name, member, t.shape, shape)
        return t

    def layer(self, name, out, columns):
        """Units [out, in] without scales, scales for each unit, as f32; the scheme; the input's scale."""
        s = self.scheme(name)
        w, x = s["weights"], s["input_activations"]
        bits, format, group = w["num_bits"], s["format"], w["group_size"]
        groups = columns // group if group else 1
        assert w["strategy"] in ("tensor", "channel") if group is None else columns % group == 0
        rows = 1 if w["strategy"] == "tensor" else out
        scale = None
        if format == "pack-quantized":
            codes = fields(self.take(name, "weight_packed", out, -(-columns * bits // 32)), bits, columns)
            assert (self.take(name, "weight_shape", 2) == (out, columns)).all()
            zero = np.full((out, groups), 1 << bits - 1)
            if not w["symmetric"]:
                z = self.take(name, "weight_zero_point", -(-out * bits // 32), groups)
                zero = fields(z.T, bits, out).T
            units = codes - np.repeat(zero, columns // groups, 1)
        elif format == "int-quantized":
            units = self.take(name, "weight", out, columns)
            assert units.dtype == "i1" and w["symmetric"] and x and np.abs(units.astype(int)).max() < 1 << bits - 1
        elif format == "float-quantized":
            units = fp8(self.take(name, "weight", out, columns))
        else:
            units = FP4[fields(self.take(name, "weight_packed", out, columns // 2), 4, columns)]
        if format == "mxfp4-pack-quantized":
            scale = power(self.take(name, "weight_scale", out, groups))
            assert group == 32
        elif format == "nvfp4-pack-quantized":
            scale = fp8(self.take(name, "weight_scale", out, groups)) / self.take(name, "weight_global_scale", 1)
            assert group == 16 and w["strategy"] == "tensor_group"
        elif w["strategy"] == "tensor":
            scale = single(self.take(name, "weight_scale", 1)).reshape(1, 1)
        else:
            scale = single(self.take(name, "weight_scale", rows, groups))
        scale = np.broadcast_to(np.repeat(scale, columns // groups, 1), (out, columns))
        static = x and not x["dynamic"]
        return units.astype("f4"), scale, s, single(self.take(name, "input_scale", 1))[0] if static else None


def packed(model, path):
    """Every layer of the folder equals the model's, bit for bit; the other tensors are plain tensors of the model."""
    here, plain, n = Folder(path), {}, 0
    with h5py.File(model) as f:
        names = {name for name in layers_of(f) if "/branch_" not in name}
        for name in names:
            g, dotted = f[name], name.replace("/", ".")
            w = units(g)
            u, s, scheme, input_scale = here.layer(dotted, *w[0].shape)
            assert identical(u, w[0]) and identical(s, w[1]), name
            mode = g.attrs.get("act_mode")
            x = scheme["input_activations"]
            assert (mode is None) == (x is None), name
            if mode == "static-tensor":
                assert x["strategy"] == "tensor" and input_scale == g["act_scale"][0]
            elif mode:
                assert x["strategy"] == "token" and x["dynamic"] is True
            n += 1
        f.visititems(lambda name, d: plain.update({name.replace("/", "."): d.shape})
                     if isinstance(d, h5py.Dataset) and name.rpartition("/")[0] not in names else None)
    assert n
    for name, t in here.tensors.items():
        assert t.shape == plain[name], name
        if t.ndim == 2 and "embed" not in name:         # a linear layer that is not quantized
            assert here.scheme(name.rpartition(".")[0]) is None, name


def kinds(path):
    """Format, bits, symmetric, strategy, group and inputs of the groups of a folder, one per line."""
    for g in Folder(path).q["config_groups"].values():
        w, x = g["weights"], g["input_activations"]
        print(g["format"], w["num_bits"], "symmetric" if w["symmetric"] else "asymmetric", w["strategy"],
              w["group_size"], x and x["type"] + " " + x["strategy"])


def adapter(model, path, kind="F32"):
    """Every branch of the model is in the adapter, with the name of its layer, each number rounded once."""
    found = safetensors(os.path.join(path, "adapter_model.safetensors"))
    with open(os.path.join(path, "adapter_config.json")) as f:
        c = json.load(f)
    with h5py.File(model) as f:
        names = []
        f.visititems(lambda name, g: names.append(name[:-9]) if name.endswith("/branch_a") else None)
        ranks = {}
        for name in names:
            stem = name.replace("/", ".")
            for part, which in ("branch_a", "A"), ("branch_b", "B"):
                g = f[name][part]
                t = g["weight"][()].astype("f4") if "weight" in g else np.multiply(*units(g))
                t = half(t) if kind == "BF16" else t
                assert identical(found.pop(f"base_model.model.{stem}.lora_{which}.weight"), t), (name, part)
            ranks[stem] = t.shape[1]
    assert not found and sorted(c["target_modules"]) == sorted(ranks)
    assert c["r"] == c["lora_alpha"] == max(ranks.values()) and c["peft_type"] == "LORA"
    patterns = {} if len(set(ranks.values())) == 1 else ranks
    assert c["rank_pattern"] == c["alpha_pattern"] == patterns


def joined(base, adapter, dense):
    """Weights of the plain folder plus B A equal those of the folder with branches, to rounding of `rank` terms."""
    w, wanted = folder(base), folder(dense)
    found = safetensors(os.path.join(adapter, "adapter_model.safetensors"))
    assert found
    for name, t in wanted.items():
        stem = "base_model.model." + name.rpartition(".")[0]
        x = w[name].astype("f8")
        if stem + ".lora_A.weight" in found:
            a, b = (found[f"{stem}.lora_{c}.weight"].astype("f8") for c in "AB")
            most = (np.abs(x) + np.abs(b) @ np.abs(a)).max()
            assert np.abs(x + b @ a - t).max() <= (len(a) + 1) * 2.0 ** -24 * most, name
        else:
            assert identical(w[name], t), name


def packs(path, name):
    assert Folder(path).scheme(name) and f"{name}.weight_packed" in folder(path)


def ignored(path):
    print(*Folder(path).q["ignore"])


def dequantized(path, dense):
    """Units times scales, rounded once, are the weights of the plain folder."""
    here = Folder(path)
    for name, t in folder(dense).items():
        stem = name.rpartition(".")[0]
        if name in here.tensors and here.tensors[name].shape == t.shape and here.tensors[name].dtype == t.dtype:
            assert identical(here.tensors.pop(name), t)
            continue
        u, s, *_ = here.layer(stem, *t.shape)
        assert identical(u * s, t), name
    assert not here.tensors


def changed(model, path, report):
    here = Folder(path)
    reported(model, report, lambda name, shape: np.multiply(*(t.astype("f8") for t in here.layer(name, *shape)[:2])))


def order(source, path):
    with copied(source, path) as f:
        n = f[DOWN]["codes"].shape[1]
        f[DOWN].create_dataset("group_index", data=(np.arange(n) % (n // 4)).astype("i4"))


def dense(source, path):
    """A copy with plain weights in place of quantized ones, with the branches."""
    with copied(source, path) as f:
        for name in [n for n in layers_of(f) if "/branch_" not in n]:
            g = f[name]
            w = np.multiply(*units(g))
            for member in [m for m in g if not m.startswith("branch_") and m != "bias"]:
                del g[member]
            for member in list(g.attrs):
                del g.attrs[member]
            g["weight"] = w


def hadamard(source, path):
    with copied(source, path) as f:
        f[DOWN].attrs["online_hadamard"] = np.int64(4)


def signs(source, path):
    with copied(source, path) as f:
        f[DOWN].create_dataset("input_signs", data=np.ones(f[DOWN]["codes"].shape[1], "i1"))


def split(source, path):
    with copied(source, path) as f:
        f[DOWN].create_dataset("split_index", data=np.array([3], "i4"))
        f[DOWN].create_dataset("split_weight", data=np.ones((f[DOWN]["codes"].shape[0], 1), "f2"))


# --- tests/doors/compressed.t ---
def read_by_peer(path):
    from safetensors.torch import load_file

    files = (os.path.join(path, f) for f in os.listdir(path) if f.endswith(".safetensors"))
    return {name: t for f in files for name, t in load_file(f).items()}


def dequantized_by_peer(*names):
    """Whether the package dequantizes the folder NAME to the weights of NAME-plain, file by file."""
    import torch
    from compressed_tensors.entrypoints.convert import CompressedTensorsDequantizer, convert_checkpoint

    types = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    for name in names:
        # a target "Linear" means every tensor there
        ignore = ["re:.*norm.*", "re:.*embed.*"]
        dtype = types[Folder(name).config["dtype"]]
        convert_checkpoint(name, name + "-by-peer", CompressedTensorsDequantizer(name, ignore=ignore, dtype=dtype))
        a, b = read_by_peer(name + "-by-peer"), read_by_peer(name + "-plain")
        differ = [n for n in b if n not in a or a[n].dtype != b[n].dtype or not torch.equal(a[n], b[n])]
        print(name, differ[:3] or "equal", sep="\t", flush=True)


def loaded_by_peer(*names):
    """Whether transformers loads the folder, has the weights of NAME-plain and computes the same logits."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    for name in names:
        here = Folder(name)
        q = here.q["config_groups"]["group_0"]
        inputs = q["input_activations"]
        # packed zero points are loaded only if weights are dequantized at once
        how = {} if q["weights"]["symmetric"] else dict(
            quantization_config=transformers.CompressedTensorsConfig(dequantize=True))
        model = getattr(transformers, here.config["architectures"][0])
        a = model.from_pretrained(name, attn_implementation="eager", **how)
        b = model.from_pretrained(name + "-plain", attn_implementation="eager")
        ids = torch.arange(3, 43)[None]
        with torch.no_grad():
            x, y = a(ids).logits, b(ids).logits
        w, v = a.state_dict(), b.state_dict()
        differ = [n for n in v if n not in w or not torch.equal(w[n], v[n])]
        if inputs is None and not torch.equal(x, y):
            differ.append(f"logits by {(x - y).abs().max()}")
        print(name, differ[:3] or "equal", sep="\t", flush=True)


def with_adapter(base, adapter, dense):
    """Mean likelihoods from float32 logits: of the folder with the adapter, the dense folder, the folder alone."""
    import peft
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    ids = torch.tensor(np.random.default_rng(3).integers(1, 250, (4, 96)))

    def nll(model):
        with torch.no_grad():
            y = model(input_ids=ids).logits[:, :-1].double()
        return torch.nn.functional.cross_entropy(y.flatten(0, 1), ids[:, 1:].flatten()).item()

    load = transformers.AutoModelForCausalLM.from_pretrained
    model = load(base)
    alone = nll(model)      # its weights are dequantized after the first run
    print(nll(peft.PeftModel.from_pretrained(model, adapter)), nll(load(dense)), alone, sep="\t")
