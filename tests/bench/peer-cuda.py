#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of eval-ppl, hessian-accum and dpq-run in PyTorch on a GPU, for tests/bench/cuda.

peer-cuda.py make FOLDER HIDDEN BLOCKS HEADS KV INTERMEDIATE    a random Llama in bf16, and its tokens
peer-cuda.py ppl FOLDER TOKENS CTX f32|bf16                     seconds to load, to run, and the mean nll
peer-cuda.py hessian FOLDER TOKENS CTX f32|bf16                 the same with a sum of x x^T for each input
peer-cuda.py gptq GROUP ROWSxCOLUMNS...                         seconds of GPTQ of layers (Frantar et al., 2022)

Seconds of a run are the median of three after one that is not counted; gptq: one run after one; hessian: the first. TF32 is off.
"""
import json
import os
import sys
import time

import torch

VOCAB = 32000


def make(folder, hidden, blocks, heads, kv, intermediate):
    import h5py
    from safetensors.torch import save_file

    hidden, blocks, heads, kv, intermediate = map(int, (hidden, blocks, heads, kv, intermediate))
    os.makedirs(folder, exist_ok=True)
    head = hidden // heads
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=hidden, num_hidden_layers=blocks,
                  num_attention_heads=heads, num_key_value_heads=kv, head_dim=head, intermediate_size=intermediate,
                  vocab_size=VOCAB, max_position_embeddings=4096, rms_norm_eps=1e-5, rope_theta=10000.0,
                  hidden_act="silu", tie_word_embeddings=False, torch_dtype="bfloat16", bos_token_id=1, eos_token_id=2)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f)
    g = torch.Generator("cuda").manual_seed(1)

    def normal(*shape):
        return (torch.randn(*shape, generator=g, device="cuda") * 0.02).bfloat16().cpu()

    where, parameters = {}, 0

    def shard(name, tensors):
        nonlocal parameters
        save_file(tensors, f"{folder}/{name}", metadata={"format": "pt"})
        where.update(dict.fromkeys(tensors, name))
        parameters += sum(t.numel() for t in tensors.values())

    one = torch.ones(hidden).bfloat16()
    shard("ends.safetensors", {"model.embed_tokens.weight": normal(VOCAB, hidden), "model.norm.weight": one,
                               "lm_head.weight": normal(VOCAB, hidden)})
    for i in range(blocks):
        p, t = f"model.layers.{i}.", {}
        for name, rows, columns in (("self_attn.q_proj", heads * head, hidden), ("self_attn.k_proj", kv * head, hidden),
                                    ("self_attn.v_proj", kv * head, hidden), ("self_attn.o_proj", hidden, heads * head),
                                    ("mlp.gate_proj", intermediate, hidden), ("mlp.up_proj", intermediate, hidden),
                                    ("mlp.down_proj", hidden, intermediate)):
            t[f"{p}{name}.weight"] = normal(rows, columns)
        t[p + "input_layernorm.weight"], t[p + "post_attention_layernorm.weight"] = one.clone(), one.clone()
        shard(f"block{i}.safetensors", t)
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {"total_size": 2 * parameters}, "weight_map": where}, f)
    with h5py.File(f"{folder}/tokens.h5", "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
        f["tokens"] = torch.randint(0, VOCAB, (32768,), generator=g, device="cuda").int().cpu().numpy()
        f["tokens"].attrs["add_bos"] = 0
    print(f"{parameters / 1e9:.2f}")


def windows(folder, tokens, ctx):
    import h5py

    with h5py.File(f"{folder}/tokens.h5") as f:
        return torch.tensor(f["tokens"][:int(tokens)]).long().reshape(-1, int(ctx)).cuda()


def load(folder, dtype):
    from transformers import AutoModelForCausalLM

    start = time.time()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype={"f32": torch.float32, "bf16": torch.bfloat16}[dtype],
                                                 device_map="cuda").eval()
    torch.cuda.synchronize()
    return model, time.time() - start


def timed(run, times=3, warm=1):
    seconds = []
    for _ in range(times + warm):
        torch.cuda.synchronize()
        start = time.time()
        result = run()
        torch.cuda.synchronize()
        seconds.append(time.time() - start)
    return sorted(seconds[warm:])[times // 2], result


@torch.no_grad()
def nll_of(model, ids):
    total = 0.0
    for window in ids:
        logits = model(window[None]).logits[0, :-1].float()
        total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").double().item()
    return total / (ids.shape[0] * (ids.shape[1] - 1))


def ppl(folder, tokens, ctx, dtype):
    model, seconds = load(folder, dtype)
    ids = windows(folder, tokens, ctx)
    run, nll = timed(lambda: nll_of(model, ids))
    print(f"{seconds:.2f}\t{run:.3f}\t{nll:.8f}\t{torch.cuda.max_memory_allocated() / 2**20:.0f}")


def hessian(folder, tokens, ctx, dtype):
    """Sums of the inputs of one block at a time: those of all blocks do not fit into the memory of a GPU."""
    model, seconds = load(folder, dtype)
    ids = windows(folder, tokens, ctx)

    def of_block(block):
        sums = {}

        def hook(name):
            def add(_, args):
                x = args[0].flatten(0, -2).float()
                if name not in sums:
                    sums[name] = torch.zeros(x.shape[1], x.shape[1], device="cuda")
                sums[name].addmm_(x.T, x)
            return add

        inputs = {"self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"}
        hooks = [m.register_forward_pre_hook(hook(n)) for n, m in block.named_modules() if n in inputs]
        return hooks, sums

    def run():
        with torch.no_grad():
            x = [model.model.embed_tokens(window[None]) for window in ids]
            place = torch.arange(ids.shape[1], device="cuda")[None]
            rotary = model.model.rotary_emb(x[0], place)
            for block in model.model.layers:
                hooks, sums = of_block(block)
                for i in range(len(x)):
                    y = block(x[i], position_embeddings=rotary, position_ids=place, attention_mask=None)
                    x[i] = y[0] if isinstance(y, tuple) else y
                for h in hooks:
                    h.remove()
                for s in sums.values():
                    s.cpu()

    seconds_run, _ = timed(run, 1, 0)
    print(f"{seconds:.2f}\t{seconds_run:.3f}\t-\t{torch.cuda.max_memory_allocated() / 2**20:.0f}")


@torch.no_grad()
def gptq(group, *shapes):
    for shape in shapes:
        rows, columns = map(int, shape.split("x"))
        print(f"{shape}\t{gptq_seconds(rows, columns, int(group)):.4f}")


def gptq_seconds(rows, columns, group):
    w0 = torch.randn(rows, columns, device="cuda") * 0.02
    x = torch.randn(columns + 1024, columns, device="cuda")
    h0 = x.T @ x

    def run():
        w, h = w0.clone(), h0.clone()
        h.diagonal().add_(0.01 * h.diagonal().mean())
        u = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(h)), upper=True)
        q = torch.zeros_like(w)
        for first in range(0, columns, 128):
            last = min(first + 128, columns)
            block, error = w[:, first:last].clone(), torch.zeros(rows, last - first, device="cuda")
            v = u[first:last, first:last]
            for i in range(last - first):
                if (first + i) % group == 0:
                    part = w[:, first + i:first + i + group]
                    low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
                    scale = ((high - low) / 15).clamp(min=1e-8)
                    zero = (-low / scale).round()
                c = block[:, i]
                y = scale * (torch.clamp(torch.round(c / scale) + zero, 0, 15) - zero)
                q[:, first + i] = y
                e = (c - y) / v[i, i]
                block[:, i:] -= e[:, None] * v[i, i:][None]
                error[:, i] = e
            w[:, last:] -= error @ u[first:last, last:]
        return q

    return timed(run, 1)[0]


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    {"make": make, "ppl": ppl, "hessian": hessian, "gptq": gptq}[sys.argv[1]](*sys.argv[2:])
