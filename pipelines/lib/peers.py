"""peers.py FUNCTION ARGUMENT... -- other packages quantize plain weights: pipelines/lib/packages.sh

Models are folders, packed by tar. Calibration and test are windows of ids, cut as by `--convention bos` of the tools.
All arithmetic is in float32.
"""

import contextlib
import json
import os
import resource
import sys
import tarfile
import tempfile
import time

import h5py
import numpy as np


def windows(tokens, ctx, limit=0):
    """[n, ctx] ids: a BOS and the next ctx - 1 ids, for all complete windows."""
    with h5py.File(tokens) as f:
        ids, bos = f["tokens"][()], int(f["tokens"].attrs["bos_id"])
    ids = ids[:int(limit) or len(ids)]
    step = int(ctx) - 1
    n = len(ids) // step
    return np.hstack([np.full((n, 1), bos), ids[:n * step].reshape(n, step)]).astype("i8")


@contextlib.contextmanager
def unpacked(tar):
    """The one folder with a config.json in a tar file."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(tar) as t:
            t.extractall(place, filter="data")
        yield next(at for at, _, files in os.walk(place) if "config.json" in files)


def pack(folder):
    """Writes to standard output, which has no other output."""
    with tarfile.open(fileobj=OUT, mode="w|") as t:
        t.add(folder, ".")


def load(folder, **how):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **how).eval()


def likelihood(model, ids):
    """Mean NLL over the targets, in double from float32 logits."""
    import torch

    total = 0
    for row in torch.tensor(ids):
        with torch.no_grad():
            y = model(input_ids=row[None], use_cache=False).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(y, row[1:], reduction="sum").item()
    return total / (ids.size - len(ids))


# --- llm-compressor ---
def integers(bits, symmetric, group):
    where = dict(strategy="channel") if group == "channel" else dict(strategy="group", group_size=int(group))
    return dict(num_bits=bits, type="int", symmetric=symmetric, **where)


def floats(**more):
    return dict(num_bits=8, type="float", symmetric=True, **more)


INT8_INPUTS = dict(num_bits=8, type="int", symmetric=True, strategy="token", dynamic=True)
SCHEMES = {
    "w8a8": (integers(8, True, "channel"), INT8_INPUTS),
    "fp8": (floats(strategy="channel"), floats(strategy="token", dynamic=True)),
}


def arguments_of(scheme, group):
    """Weights and inputs; uintB: B bits and zero points, intB: without."""
    name, bits = scheme[:-1], scheme[-1]
    return SCHEMES.get(scheme) or (integers(int(bits), {"uint": False, "int": True}[name], group), None)


def recipe(method, scheme, group):
    """rtn, gptq-none, gptq-static or awq; all other settings are the package's defaults."""
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from llmcompressor.modifiers.gptq import GPTQModifier
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from llmcompressor.modifiers.transform.awq import AWQModifier

    weights, inputs = (a and QuantizationArgs(**a) for a in arguments_of(scheme, group))
    groups = {"group_0": QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)}
    how = dict(config_groups=groups, ignore=["lm_head"])
    if method.startswith("gptq"):
        order = method[5:]
        return [GPTQModifier(**how, dampening_frac=0.01, actorder=None if order == "none" else order)]
    return [AWQModifier()] * (method == "awq") + [QuantizationModifier(**how)]


def no_tokenizer():
    """A tokenizer that the package requires in addition to ids, but does not use."""
    import tokenizers
    import transformers

    words = tokenizers.models.WordLevel({"?": 0}, unk_token="?")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), pad_token="?")


def llmcompressor(method, scheme, group, source, tokens, ctx, limit, scales="float32"):
    """SOURCE quantized by llm-compressor. Its scales are rounded to SCALES; the codes stay."""
    import datasets
    import llmcompressor
    import torch

    if not torch.cuda.is_available():   # its AWQ pins memory, which needs a driver
        torch.Tensor.pin_memory = lambda self, *a, **k: self
    ids = windows(tokens, ctx, limit)
    rows = datasets.Dataset.from_dict(dict(input_ids=ids.tolist(), attention_mask=np.ones_like(ids).tolist()))
    with unpacked(source) as folder:    # the package reads it again when it saves the result
        model = load(folder)
        llmcompressor.oneshot(model=model, dataset=rows, recipe=recipe(method, scheme, group), max_seq_length=int(ctx),
                              num_calibration_samples=len(ids), shuffle_calibration_samples=False,
                              processor=no_tokenizer())
        for name, scale in model.named_parameters():
            if name.endswith(".weight_scale"):
                scale.data = scale.to(getattr(torch, scales))
        with tempfile.TemporaryDirectory() as place:
            model.save_pretrained(place, save_compressed=True)
            pack(place)


# --- GPTQModel ---
def gptqmodel(method, scheme, group, source, tokens, ctx, limit):
    """SOURCE quantized by GPTQModel, weights intB. gptq-none: columns in storage order, scales of groups from
    compensated weights, our damping; gptq: the package's defaults."""
    import torch

    os.cpu_count = lambda: 8    # with two processors its thread pools fail
    from gptqmodel import BACKEND, GPTQModel, QuantizeConfig

    none = dict(desc_act=False, act_group_aware=False, static_groups=False, damp_percent=0.01)
    rows = [dict(input_ids=r.tolist(), attention_mask=[1] * len(r)) for r in windows(tokens, ctx, int(limit))]
    how = QuantizeConfig(bits=int(scheme.removeprefix("int")), group_size=-1 if group == "channel" else int(group),
                         sym=True, offload_to_disk=False, device="cpu", pack_impl="original",
                         **{"gptq-none": none, "gptq": {}}[method])
    with unpacked(source) as folder, tempfile.TemporaryDirectory() as place:
        no_tokenizer().save_pretrained(folder)
        model = GPTQModel.load(folder, how, dtype=torch.float32)
        model.quantize(rows, batch_size=1, backend=BACKEND.GPTQ_TORCH, calibration_sort=None)
        model.save(place)
        pack(place)


def gptqmodel_weights(folder):
    """NAME.weight dequantized by the package in float32, for folders of GPTQ and AWQ."""
    import torch
    import transformers

    os.cpu_count = lambda: 8
    from gptqmodel.nn_modules.qlinear import AWQuantLinear, BaseQuantLinear
    from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="cpu", dtype=torch.float16)
    y = {}
    for name, m in model.named_modules():
        if isinstance(m, BaseQuantLinear):
            m.scales = m.scales.float()     # products of the codes are then exact
            w = dequantize_gemm(m.qweight, m.qzeros, m.scales, m.bits, m.group_size) \
                if isinstance(m, AWQuantLinear) else m.dequantize_weight()
            y[name + ".weight"] = w.T.contiguous()
    assert y
    return y


def gptqmodel_dequantized(folder):
    """The plain model of these weights, by transformers."""
    import safetensors.torch
    import torch
    import transformers

    weights = gptqmodel_weights(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    del config.quantization_config
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            found = safetensors.torch.load_file(os.path.join(folder, file))
            weights |= {n: t.float() for n, t in found.items() if n.rpartition(".")[0] + ".weight" not in weights}
    missing, left = model.load_state_dict(weights, strict=False)
    assert not left and set(missing) <= {"lm_head.weight"}, (missing, left)
    return model.eval()


# --- both ---
def dequantized(folder):
    """The model of the package's dequantized weights, by transformers; inputs are not rounded."""
    import transformers

    with open(os.path.join(folder, "config.json")) as f:
        quantization = json.load(f)["quantization_config"]
    if quantization["quant_method"] == "gptq":
        return gptqmodel_dequantized(folder)
    # packed zero points are loaded only if weights are dequantized at once
    how = {} if quantization["config_groups"]["group_0"]["weights"]["symmetric"] else dict(
        quantization_config=transformers.CompressedTensorsConfig(dequantize=True))
    model = load(folder, **how)
    for m in model.modules():
        m.quantization_enabled = False
    return model


def nll(source, tokens, ctx, limit=0):
    """The NLL of the windows."""
    with unpacked(source) as folder:
        model = dequantized(folder)
    print(f"{likelihood(model, windows(tokens, ctx, limit)):.8f}", file=OUT_TEXT)


if __name__ == "__main__":
    # output of packages goes to standard error
    OUT = os.fdopen(os.dup(1), "wb")
    OUT_TEXT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    STARTED = time.process_time()
    globals()[sys.argv[1]](*sys.argv[2:])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{sys.argv[1]}: peak memory {memory:.1f} MiB, {time.process_time() - STARTED:.2f} s of processor time",
          file=sys.stderr)
