"""peers.py FUNCTION ARGUMENT... -- other packages quantize plain weights: pipelines/peers.sh, tests/doors/peers.t

Models are folders, packed by tar. Calibration and test are windows of ids as `--convention bos` of the tools cuts
them. All arithmetic is in float32.
"""

import os
import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, in which tokenize.py stands before that of the library

import contextlib
import json
import tarfile
import tempfile

import h5py
import numpy as np


def windows(tokens, ctx, limit=0):
    """[n, ctx] ids: a BOS and the next ctx - 1 ids, as often as there are so many."""
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
    """To standard output, which has had nothing else."""
    with tarfile.open(fileobj=OUT, mode="w|") as t:
        t.add(folder, ".")


def load(folder, **how):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **how).eval()


def likelihood(model, ids):
    """Mean over the targets, in double of float32 logits."""
    import torch

    total = 0
    for row in torch.tensor(ids):
        with torch.no_grad():
            y = model(input_ids=row[None], use_cache=False).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(y, row[1:], reduction="sum").item()
    return total / (ids.size - len(ids))


# --- llm-compressor ---
def integers(symmetric, bits=4, group=64):
    where = dict(strategy="group", group_size=group) if group else dict(strategy="channel")
    return dict(num_bits=bits, type="int", symmetric=symmetric, **where)


def floats(**more):
    return dict(num_bits=8, type="float", symmetric=True, **more)


INT8_INPUTS = dict(num_bits=8, type="int", symmetric=True, strategy="token", dynamic=True)
SCHEMES = {
    "asymmetric": (integers(False), None),
    "symmetric": (integers(True), None),
    "w8a8": (integers(True, 8, 0), INT8_INPUTS),
    "fp8": (floats(strategy="channel"), floats(strategy="token", dynamic=True)),
}


def recipe(method, scheme):
    """rtn, gptq-none, gptq-static or awq; what is not said here are the package's defaults."""
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from llmcompressor.modifiers.gptq import GPTQModifier
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from llmcompressor.modifiers.transform.awq import AWQModifier

    weights, inputs = (a and QuantizationArgs(**a) for a in SCHEMES[scheme])
    groups = {"group_0": QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)}
    how = dict(config_groups=groups, ignore=["lm_head"])
    if method.startswith("gptq"):
        order = method[5:]
        return [GPTQModifier(**how, dampening_frac=0.01, actorder=None if order == "none" else order)]
    return [AWQModifier()] * (method == "awq") + [QuantizationModifier(**how)]


def no_tokenizer():
    """The package wants one beside ids too, and does not use it."""
    import tokenizers
    import transformers

    words = tokenizers.models.WordLevel({"?": 0}, unk_token="?")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), pad_token="?")


def llmcompressor(method, scheme, source, tokens, ctx, limit):
    """What llm-compressor makes of SOURCE."""
    import datasets
    import llmcompressor
    import torch

    if not torch.cuda.is_available():   # its AWQ pins what it keeps, which takes a driver
        torch.Tensor.pin_memory = lambda self, *a, **k: self
    ids = windows(tokens, ctx, limit)
    rows = datasets.Dataset.from_dict(dict(input_ids=ids.tolist(), attention_mask=np.ones_like(ids).tolist()))
    with unpacked(source) as folder:    # which is looked at again where the result is saved
        model = load(folder)
        llmcompressor.oneshot(model=model, dataset=rows, recipe=recipe(method, scheme), max_seq_length=int(ctx),
                              num_calibration_samples=len(ids), shuffle_calibration_samples=False,
                              processor=no_tokenizer())
        with tempfile.TemporaryDirectory() as place:
            model.save_pretrained(place, save_compressed=True)
            pack(place)


def nll(source, tokens, ctx, limit=0):
    """Of the windows, by transformers on the weights that the package makes; inputs are not rounded."""
    import transformers

    with unpacked(source) as folder:
        with open(os.path.join(folder, "config.json")) as f:
            weights = json.load(f)["quantization_config"]["config_groups"]["group_0"]["weights"]
        # packed zero points are loaded only where weights are dequantized at once
        how = {} if weights["symmetric"] else dict(
            quantization_config=transformers.CompressedTensorsConfig(dequantize=True))
        model = load(folder, **how)
    for m in model.modules():
        m.quantization_enabled = False
    print(f"{likelihood(model, windows(tokens, ctx, limit)):.8f}", file=OUT_TEXT)


if __name__ == "__main__":
    # what packages print goes to standard error
    OUT = os.fdopen(os.dup(1), "wb")
    OUT_TEXT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    globals()[sys.argv[1]](*sys.argv[2:])
