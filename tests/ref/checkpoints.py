#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints with unusual spellings in config.json or in names of tensors.

The results of model-import are compared with transformers: make.py loads the
same folders in transformers and stores the likelihoods of their tokens in
checkpoints.h5. model-import.t runs `checkpoints.py CHECKPOINTS.h5`, which
prints one line per row. Weights are a hash of their names, so none are stored.
"""
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np

LEFT_OUT = object()
LLAMA = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=16, intermediate_size=24,
             num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4, vocab_size=29,
             max_position_embeddings=64, rms_norm_eps=1e-5)
MISTRAL = LLAMA | dict(model_type="mistral", architectures=["MistralForCausalLM"], sliding_window=None)
QWEN2 = LLAMA | dict(model_type="qwen2", architectures=["Qwen2ForCausalLM"])
QWEN3 = LLAMA | dict(model_type="qwen3", architectures=["Qwen3ForCausalLM"], head_dim=6)
PHI3 = LLAMA | dict(model_type="phi3", architectures=["Phi3ForCausalLM"], pad_token_id=0)
GEMMA = LLAMA | dict(model_type="gemma", architectures=["GemmaForCausalLM"], pad_token_id=0, tie_word_embeddings=False)
GEMMA2 = GEMMA | dict(model_type="gemma2", architectures=["Gemma2ForCausalLM"], sliding_window=5)
GEMMA3 = GEMMA | dict(model_type="gemma3_text", architectures=["Gemma3ForCausalLM"], sliding_window=5)
MIXTRAL = MISTRAL | dict(model_type="mixtral", architectures=["MixtralForCausalLM"], num_local_experts=4, sliding_window=LEFT_OUT)
QWEN2MOE = QWEN2 | dict(model_type="qwen2_moe", architectures=["Qwen2MoeForCausalLM"], num_experts=5, num_experts_per_tok=2,
                        moe_intermediate_size=12, shared_expert_intermediate_size=20)
QWEN3MOE = QWEN3 | dict(model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"], num_experts=5, num_experts_per_tok=3,
                        moe_intermediate_size=12)
NEOX = dict(model_type="gpt_neox", architectures=["GPTNeoXForCausalLM"], hidden_size=24, intermediate_size=20, num_hidden_layers=2,
            num_attention_heads=3, vocab_size=29, max_position_embeddings=64)
OPT = dict(model_type="opt", architectures=["OPTForCausalLM"], hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=4,
           vocab_size=29, max_position_embeddings=48)
GPT2 = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], n_embd=16, n_layer=2, n_head=4, n_positions=48, vocab_size=29)
LONG_WAVES = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
ROPE = dict(theta=dict(rope_type="default", rope_theta=100.0), linear=dict(rope_type="linear", factor=2.5), llama3=LONG_WAVES,
            inside=LONG_WAVES | dict(original_max_position_embeddings=200),
            longrope=dict(rope_type="longrope", short_factor=[1.25, 2.0], long_factor=[1.5, 4.0]))
LONG = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)


def tensor(name, *shape):
    x = np.arange(np.prod(shape), dtype="u8") + np.uint64(zlib.crc32(name.encode()) << 24)
    for by in (0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9):
        x = (x ^ x >> np.uint64(30)) * np.uint64(by)
    u = (x >> np.uint64(40)).astype("f4") / 2 ** 23 - 1
    return (u if len(shape) == 2 else u / 2 + name.endswith("weight")).reshape(shape).astype("f4")


def branch(stem, names, i, h):
    gate, up, down = names
    return {f"{stem}.{gate}": (i, h), f"{stem}.{up}": (i, h), f"{stem}.{down}": (h, i)}


def mlp_shapes(c, p, b):
    h, names = c["hidden_size"], ("gate_proj", "up_proj", "down_proj")
    if c["model_type"] == "mixtral":
        s = {p + "block_sparse_moe.gate": (c["num_local_experts"], h)}
        for e in range(c["num_local_experts"]):
            s |= branch(f"{p}block_sparse_moe.experts.{e}", ("w1", "w3", "w2"), c["intermediate_size"], h)
        return s
    if "moe_intermediate_size" not in c or b in c.get("dense", ()):
        return branch(p + "mlp", names, c["intermediate_size"], h)
    s = {p + "mlp.gate": (c["num_experts"], h)}
    for e in range(c["num_experts"]):
        s |= branch(f"{p}mlp.experts.{e}", names, c["moe_intermediate_size"], h)
    if c["model_type"] == "qwen2_moe":
        s |= branch(p + "mlp.shared_expert", names, c["shared_expert_intermediate_size"], h)
        s[p + "mlp.shared_expert_gate"] = (1, h)
    return s


def shapes(c, biases, blocks):
    """Of all weights, and of biases where one of the words is in the name."""
    h, i, v = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    q, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    s = {"model.embed_tokens": (v, h), "model.norm": (h,), "lm_head": (v, h)}
    norms = ("q_norm", "k_norm") if c["model_type"] in ("qwen3", "qwen3_moe", "gemma3_text") else ()
    for b in range(blocks):
        p = f"model.layers.{b}."
        s |= {p + "input_layernorm": (h,), p + "post_attention_layernorm": (h,), p + "self_attn.q_proj": (q, h),
              p + "self_attn.k_proj": (kv, h), p + "self_attn.v_proj": (kv, h), p + "self_attn.o_proj": (h, q),
              **mlp_shapes(c, p, b)}
        s |= {p + "self_attn." + n: (c["head_dim"],) for n in norms}
        if c["model_type"] in ("gemma2", "gemma3_text"):
            s |= {p + "pre_feedforward_layernorm": (h,), p + "post_feedforward_layernorm": (h,)}
        if c["model_type"] == "phi3":
            s = {n: d for n, d in s.items() if not n.endswith((".q_proj", ".k_proj", ".v_proj", ".gate_proj", ".up_proj"))}
            s |= {p + "self_attn.qkv_proj": (q + 2 * kv, h), p + "mlp.gate_up_proj": (2 * i, h)}
    return {g + ".weight": d for g, d in s.items()} | {g + ".bias": d[:1] for g, d in s.items() if any(w in g for w in biases)}


def neox_shapes(c):
    h, i, v = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    s = {"gpt_neox.final_layer_norm": (h,)}
    for b in range(c["num_hidden_layers"]):
        p = f"gpt_neox.layers.{b}."
        s |= {p + "input_layernorm": (h,), p + "post_attention_layernorm": (h,), p + "attention.query_key_value": (3 * h, h),
              p + "attention.dense": (h, h), p + "mlp.dense_h_to_4h": (i, h), p + "mlp.dense_4h_to_h": (h, i)}
    s = {g + ".weight": d for g, d in s.items()} | {g + ".bias": d[:1] for g, d in s.items()}
    return s | {"gpt_neox.embed_in.weight": (v, h), NEOX_HEAD: (v, h)}


def gpt2_shapes(c):
    s = {"wte.weight": (29, 16), "wpe.weight": (48, 16), "ln_f.weight": (16,), "ln_f.bias": (16,)}
    for b in range(2):
        for n, d in {"attn.c_attn": (16, 48), "attn.c_proj": (16, 16), "mlp.c_fc": (16, 64), "mlp.c_proj": (64, 16)}.items():
            s |= {f"h.{b}.{n}.weight": d, f"h.{b}.{n}.bias": d[1:]}
        s |= {f"h.{b}.{n}.{m}": (16,) for n in ("ln_1", "ln_2") for m in ("weight", "bias")}
    return {"transformer." + n: d for n, d in s.items()}


def opt_shapes(c):
    h, i = c["hidden_size"], c["ffn_dim"]
    s = {"final_layer_norm": (h,)}
    for b in range(c["num_hidden_layers"]):
        p = f"layers.{b}."
        s |= {p + "self_attn." + n + "_proj": (h, h) for n in ("q", "k", "v", "out")}
        s |= {p + "self_attn_layer_norm": (h,), p + "final_layer_norm": (h,), p + "fc1": (i, h), p + "fc2": (h, i)}
    s = {g + ".weight": d for g, d in s.items()} | {g + ".bias": d[:1] for g, d in s.items()}
    s |= {"embed_tokens.weight": (c["vocab_size"], h), "embed_positions.weight": (50, h)}
    return {"model.decoder." + n: d for n, d in s.items()} | {HEAD: (c["vocab_size"], h)}


class Row:
    """config.json: base with changes. of: sizes of the tensors where config.json does not say them. seed: other weights.
    prefix: word that the names leave out."""

    def __init__(self, base, biases=(), blocks=2, drop=(), same=None, ids=48, ctx=48, of={}, seed="", prefix="", **changes):
        self.config = {k: v for k, v in (base | changes).items() if v is not LEFT_OUT}
        self.ids, self.ctx = (np.abs(tensor("ids", 1, ids))[0] * base["vocab_size"]).astype("i4"), ctx
        if base in (QWEN2, QWEN2MOE) and changes.get("qkv_bias", True):
            biases = (*biases, "q_proj", "k_proj", "v_proj")
        sizes = base | {k: v for k, v in changes.items() if k in SIZES} | of
        self.shapes = OTHER_SHAPES[base["model_type"]](sizes) if base in (GPT2, NEOX, OPT) else shapes(sizes, biases, blocks)
        self.tensors = {n.removeprefix(prefix): tensor(seed + n, *d) for n, d in self.shapes.items() if n not in drop}
        for name, other in (same or {}).items():
            self.tensors[name] = self.tensors[other]

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/config.json", "w") as f:
            json.dump(self.config, f)
        header, body = {"__metadata__": {"format": "pt"}}, b""
        for name, t in self.tensors.items():
            header[name] = dict(dtype="F32", shape=t.shape, data_offsets=[len(body), len(body) + t.nbytes])
            body += t.tobytes()
        header = json.dumps(header).encode()
        header += b" " * (-len(header) % 8)
        with open(folder + "/model.safetensors", "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header + body)


SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_experts", "num_local_experts", "moe_intermediate_size",
         "shared_expert_intermediate_size")
OTHER_SHAPES = {"gpt2": gpt2_shapes, "gpt_neox": neox_shapes, "opt": opt_shapes}
NEOX_HEAD = "embed_out.weight"
OPT_NORM = "model.decoder.final_layer_norm."
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
ALL = "proj", "norm", "lm_head"
ROWS = {
    # biases that the class has no parameter for
    "llama, biases without a key": Row(LLAMA, ALL),
    "llama, biases, attention_bias false": Row(LLAMA, ALL, attention_bias=False, mlp_bias=False),
    "llama, biases, attention_bias": Row(LLAMA, ALL, attention_bias=True),
    "llama, biases, mlp_bias": Row(LLAMA, ALL, mlp_bias=True),
    "mistral, biases": Row(MISTRAL, ALL, attention_bias=True, mlp_bias=True),
    "mistral, attention_bias without biases": Row(MISTRAL, attention_bias=True, mlp_bias=True),
    "qwen2, more biases": Row(QWEN2, ALL, attention_bias=True),
    "qwen2, attention_bias false": Row(QWEN2, attention_bias=False),
    "gpt2, attention_bias false": Row(GPT2, attention_bias=False),
    # windows
    "mistral, layer_types": Row(MISTRAL, sliding_window=5, layer_types=["full_attention", "sliding_attention"]),
    "ministral": Row(MISTRAL, model_type="ministral", sliding_window=5, layer_types=["sliding_attention", "attention"]),
    "mistral, sliding_window": Row(MISTRAL, sliding_window=5),
    "mistral, sliding_window null": Row(MISTRAL),
    "mistral, no sliding_window": Row(MISTRAL, ids=4260, ctx=4260, **LONG, blocks=1, sliding_window=LEFT_OUT),
    "qwen2, no sliding_window": Row(QWEN2, ids=4260, ctx=4260, **LONG, blocks=1, use_sliding_window=True, max_window_layers=0),
    "qwen2, layer_types": Row(QWEN2, sliding_window=5, use_sliding_window=True, max_window_layers=0,
                              layer_types=["sliding_attention", "full_attention"]),
    "qwen2, max_window_layers": Row(QWEN2, sliding_window=5, use_sliding_window=True, max_window_layers=1),
    "qwen2, use_sliding_window false": Row(QWEN2, sliding_window=5, use_sliding_window=False, max_window_layers=0),
    "llama, windows not heeded": Row(LLAMA, sliding_window=5, use_sliding_window=True,
                                     layer_types=["sliding_attention", "sliding_attention"]),
    # rotary settings
    "rope_scaling beside rope_parameters": Row(LLAMA, rope_parameters=ROPE["theta"], rope_scaling=ROPE["linear"]),
    "rope_scaling and rope_theta beside rope_parameters": Row(LLAMA, rope_parameters=ROPE["theta"] | {"rope_theta": 7.0},
                                                              rope_theta=300.0, rope_scaling=ROPE["linear"]),
    "empty rope_scaling": Row(LLAMA, rope_parameters=ROPE["linear"] | {"rope_theta": 100.0}, rope_scaling={}),
    "empty rope_parameters": Row(LLAMA, rope_parameters={}, rope_theta=100.0),
    "rope_parameters without a type": Row(LLAMA, rope_parameters={"factor": 2.0}, rope_theta=100.0),
    "rope_theta beside rope_parameters": Row(QWEN2, rope_parameters=ROPE["linear"], rope_theta=100.0),
    "rope_theta inside and beside": Row(MISTRAL, rope_parameters=ROPE["theta"], rope_theta=7.0),
    "original_max_position_embeddings beside": Row(LLAMA, rope_scaling=ROPE["llama3"], original_max_position_embeddings=1000),
    "original_max_position_embeddings inside": Row(LLAMA, rope_scaling=ROPE["inside"]),
    "original_max_position_embeddings twice": Row(LLAMA, rope_parameters=ROPE["inside"], original_max_position_embeddings=1000),
    "original_max_position_embeddings nowhere": Row(LLAMA, rope_scaling=ROPE["llama3"], max_position_embeddings=LEFT_OUT),
    "the same of mistral": Row(MISTRAL, rope_scaling=ROPE["llama3"], max_position_embeddings=LEFT_OUT),
    "a part of the head, default kind": Row(LLAMA, rope_parameters=ROPE["theta"] | {"partial_rotary_factor": 0.5}),
    "a part of the head that is all of it": Row(LLAMA, rope_scaling=ROPE["linear"], partial_rotary_factor=1.0),
    # which class
    "model_type against architectures": Row(LLAMA, model_type="mistral", sliding_window=5),
    "another task's architecture": Row(LLAMA, architectures=["LlamaForSequenceClassification"]),
    # tied heads
    "tied, head differs": Row(LLAMA, tie_word_embeddings=True),
    "tied, head the same": Row(LLAMA, tie_word_embeddings=True, same={HEAD: EMBEDDING}),
    "tied, no head": Row(LLAMA, tie_word_embeddings=True, drop=[HEAD]),
    "tied, no embedding": Row(LLAMA, tie_word_embeddings=True, drop=[EMBEDDING]),
    "gpt2, tied by default": Row(GPT2),
    # sizes
    "more blocks than config.json says": Row(LLAMA, blocks=4),
    "mistral, no num_key_value_heads": Row(MISTRAL, num_attention_heads=16, num_key_value_heads=LEFT_OUT,
                                           of=dict(num_key_value_heads=8)),
    "qwen2, no num_key_value_heads": Row(QWEN2, num_attention_heads=64, num_key_value_heads=LEFT_OUT, of=dict(num_key_value_heads=32)),
    "qwen2, num_key_value_heads null": Row(QWEN2, num_key_value_heads=None, of=dict(num_key_value_heads=4)),
    "llama, no num_key_value_heads": Row(LLAMA, num_key_value_heads=LEFT_OUT, of=dict(num_key_value_heads=4)),
    "llama, head_dim null": Row(LLAMA, head_dim=None),
    "gpt2, names of others": Row(GPT2, n_embd=5, hidden_size=16, n_head=LEFT_OUT, num_attention_heads=4, n_layer=LEFT_OUT,
                                 num_hidden_layers=2, n_positions=LEFT_OUT, max_position_embeddings=48, rms_norm_eps=0.5,
                                 hidden_act="silu", intermediate_size=3, num_key_value_heads=1, head_dim=2, n_inner=None),
    "llama, gelu": Row(LLAMA, hidden_act="gelu_python"),
    # norms of query and key heads, heads of another width than hidden / heads
    "qwen3": Row(QWEN3),
    "qwen3, other weights": Row(QWEN3, seed="2"),
    "qwen3, no head_dim": Row(QWEN3, head_dim=LEFT_OUT, num_attention_heads=2, num_key_value_heads=1,
                              of=dict(head_dim=128, num_key_value_heads=1)),
    "qwen3, one key head": Row(QWEN3, head_dim=10, hidden_size=12, num_attention_heads=5, num_key_value_heads=1,
                               of=dict(head_dim=10, num_key_value_heads=1)),
    "qwen3, no num_key_value_heads": Row(QWEN3, num_attention_heads=64, num_key_value_heads=LEFT_OUT,
                                         of=dict(num_key_value_heads=32)),
    "qwen3, biases": Row(QWEN3, ALL),
    "qwen3, attention_bias": Row(QWEN3, ALL, attention_bias=True),
    "qwen3, tied": Row(QWEN3, tie_word_embeddings=True, drop=[HEAD]),
    "qwen3, sliding_window": Row(QWEN3, sliding_window=5, use_sliding_window=True, max_window_layers=1),
    "qwen3, layer_types": Row(QWEN3, sliding_window=5, use_sliding_window=True, max_window_layers=0,
                              layer_types=["full_attention", "sliding_attention"]),
    "qwen3, use_sliding_window false": Row(QWEN3, sliding_window=5, max_window_layers=0),
    "qwen3, llama3": Row(QWEN3, rope_scaling=ROPE["llama3"]),
    "qwen3, epsilon": Row(QWEN3, rms_norm_eps=0.3),
    # mixtures of experts: which blocks, how many experts, their shares
    "mixtral": Row(MIXTRAL),
    "mixtral, other weights": Row(MIXTRAL, seed="2"),
    "mixtral, one expert a token": Row(MIXTRAL, num_experts_per_tok=1),
    "mixtral, all experts": Row(MIXTRAL, num_experts_per_tok=4),
    "mixtral, no num_local_experts": Row(MIXTRAL, num_local_experts=LEFT_OUT, of=dict(num_local_experts=8)),
    "mixtral, num_experts too": Row(MIXTRAL, num_experts=3, of=dict(num_local_experts=3)),
    "mixtral, sliding_window": Row(MIXTRAL, sliding_window=5),
    "mixtral, layer_types not heeded": Row(MIXTRAL, sliding_window=5, layer_types=["full_attention", "full_attention"]),
    "mixtral, no window": Row(MIXTRAL, ids=4260, ctx=4260, **LONG, blocks=1),
    "mixtral, theta": Row(MIXTRAL, rope_theta=100.0),
    "mixtral, names of others": Row(MIXTRAL, norm_topk_prob=False, decoder_sparse_step=2, mlp_only_layers=[0], moe_intermediate_size=3),
    "mixtral, biases": Row(MIXTRAL, ALL),
    "mixtral, tied": Row(MIXTRAL, tie_word_embeddings=True, drop=[HEAD]),
    "qwen2_moe": Row(QWEN2MOE),
    "qwen2_moe, other weights": Row(QWEN2MOE, seed="2"),
    "qwen2_moe, norm_topk_prob": Row(QWEN2MOE, norm_topk_prob=True),
    "qwen2_moe, no sizes": Row(QWEN2MOE, moe_intermediate_size=LEFT_OUT, shared_expert_intermediate_size=LEFT_OUT, hidden_size=8,
                               num_attention_heads=2, num_hidden_layers=1, blocks=1,
                               of=dict(moe_intermediate_size=1408, shared_expert_intermediate_size=5632)),
    "qwen2_moe, no numbers": Row(QWEN2MOE, num_experts=LEFT_OUT, num_experts_per_tok=LEFT_OUT, of=dict(num_experts=60)),
    "qwen2_moe, num_local_experts not heeded": Row(QWEN2MOE, num_local_experts=3),
    "qwen2_moe, decoder_sparse_step": Row(QWEN2MOE, decoder_sparse_step=2, of=dict(dense=[0])),
    "qwen2_moe, mlp_only_layers": Row(QWEN2MOE, mlp_only_layers=[1, 5], of=dict(dense=[1])),
    "qwen2_moe, both": Row(QWEN2MOE, mlp_only_layers=[1], decoder_sparse_step=2, of=dict(dense=[0, 1])),
    "qwen2_moe, mlp_only_layers null": Row(QWEN2MOE, mlp_only_layers=None),
    "qwen2_moe, qkv_bias false": Row(QWEN2MOE, qkv_bias=False),
    "qwen2_moe, biases": Row(QWEN2MOE, ALL),
    "qwen2_moe, sliding_window": Row(QWEN2MOE, sliding_window=5, use_sliding_window=True),
    "qwen2_moe, max_window_layers": Row(QWEN2MOE, sliding_window=5, use_sliding_window=True, num_hidden_layers=4, max_window_layers=2,
                                        blocks=4),
    "qwen2_moe, layer_types": Row(QWEN2MOE, sliding_window=5, use_sliding_window=True,
                                  layer_types=["full_attention", "sliding_attention"]),
    "qwen2_moe, use_sliding_window false": Row(QWEN2MOE, sliding_window=5, max_window_layers=0),
    "qwen3_moe": Row(QWEN3MOE),
    "qwen3_moe, other weights": Row(QWEN3MOE, seed="2"),
    "qwen3_moe, norm_topk_prob": Row(QWEN3MOE, norm_topk_prob=True),
    "qwen3_moe, num_local_experts": Row(QWEN3MOE, num_local_experts=4, of=dict(num_experts=4)),
    "qwen3_moe, num_local_experts only": Row(QWEN3MOE, num_experts=LEFT_OUT, num_local_experts=4, of=dict(num_experts=4)),
    "qwen3_moe, decoder_sparse_step": Row(QWEN3MOE, decoder_sparse_step=2, of=dict(dense=[0])),
    "qwen3_moe, mlp_only_layers": Row(QWEN3MOE, mlp_only_layers=[0], of=dict(dense=[0])),
    "qwen3_moe, no head_dim": Row(QWEN3MOE, head_dim=LEFT_OUT, of=dict(head_dim=4)),
    "qwen3_moe, no num_key_value_heads": Row(QWEN3MOE, num_key_value_heads=LEFT_OUT, of=dict(num_key_value_heads=4)),
    "qwen3_moe, attention_bias": Row(QWEN3MOE, ALL, attention_bias=True),
    "qwen3_moe, sliding_window": Row(QWEN3MOE, sliding_window=5, use_sliding_window=True, max_window_layers=1),
    "qwen3_moe, layer_types not heeded": Row(QWEN3MOE, sliding_window=5, use_sliding_window=True,
                                             layer_types=["full_attention", "full_attention"]),
    "qwen3_moe, use_sliding_window false": Row(QWEN3MOE, sliding_window=5),
    # parallel residual, interleaved rows, a part of the head turned
    "gpt_neox": Row(NEOX),
    "gpt_neox, other weights": Row(NEOX, seed="2"),
    "gpt_neox, serial": Row(NEOX, use_parallel_residual=False),
    "gpt_neox, serial, other weights": Row(NEOX, use_parallel_residual=False, seed="2"),
    "gpt_neox, more heads": Row(NEOX, hidden_size=40, num_attention_heads=5),
    "gpt_neox, one head": Row(NEOX, hidden_size=8, num_attention_heads=1, intermediate_size=36),
    "gpt_neox, tied": Row(NEOX, tie_word_embeddings=True, drop=[NEOX_HEAD]),
    "gpt_neox, tied, serial": Row(NEOX, tie_word_embeddings=True, drop=[NEOX_HEAD], use_parallel_residual=False),
    "gpt_neox, tied, head differs": Row(NEOX, tie_word_embeddings=True),
    "gpt_neox, attention_bias": Row(NEOX, attention_bias=True),
    "gpt_neox, attention_bias false": Row(NEOX, attention_bias=False),
    "gpt_neox, gelu_new": Row(NEOX, hidden_act="gelu_new"),
    "gpt_neox, epsilon": Row(NEOX, layer_norm_eps=0.3, rms_norm_eps=0.1),
    "gpt_neox, rotary_pct": Row(NEOX, rotary_pct=0.5, rotary_emb_base=100),
    "gpt_neox, rotary_pct of all": Row(NEOX, rotary_pct=1.0, use_parallel_residual=False),
    "gpt_neox, rotary_pct that is rounded": Row(NEOX, rotary_pct=0.6),
    "gpt_neox, inside": Row(NEOX, rope_parameters=ROPE["theta"] | dict(partial_rotary_factor=0.75), rotary_pct=0.5, rotary_emb_base=7),
    "gpt_neox, names of others": Row(NEOX, rope_theta=7.0, partial_rotary_factor=0.75, num_key_value_heads=1),
    "gpt_neox, linear": Row(NEOX, rope_scaling=ROPE["linear"], rotary_pct=0.5),
    "gpt_neox, llama3": Row(NEOX, rope_scaling=ROPE["llama3"], rotary_pct=1.0),
    # fused layers, longrope
    "phi3": Row(PHI3),
    "phi3, other weights": Row(PHI3, seed="2"),
    "phi3, no head_dim": Row(PHI3, head_dim=LEFT_OUT),
    "phi3, wider heads": Row(PHI3, head_dim=6, of=dict(head_dim=6)),
    "phi3, no num_key_value_heads": Row(PHI3, num_key_value_heads=LEFT_OUT, of=dict(num_key_value_heads=4)),
    "phi3, num_key_value_heads null": Row(PHI3, num_key_value_heads=None, of=dict(num_key_value_heads=4)),
    "phi3, biases": Row(PHI3, ALL, attention_bias=True, mlp_bias=True),
    "phi3, sliding_window": Row(PHI3, sliding_window=5),
    "phi3, layer_types not heeded": Row(PHI3, sliding_window=5, layer_types=["full_attention", "sliding_attention"]),
    "phi3, layer_types without a window": Row(PHI3, layer_types=["sliding_attention", "sliding_attention"]),
    "phi3, partial_rotary_factor": Row(PHI3, partial_rotary_factor=0.5, rope_theta=100.0),
    "phi3, partial_rotary_factor inside": Row(PHI3, partial_rotary_factor=1.0, rope_parameters=ROPE["theta"] | dict(partial_rotary_factor=0.5)),
    "phi3, tied": Row(PHI3, tie_word_embeddings=True, drop=[HEAD]),
    "phi3, longrope within its context": Row(PHI3, rope_scaling=ROPE["longrope"], original_max_position_embeddings=48),
    "phi3, longrope beyond it": Row(PHI3, rope_scaling=ROPE["longrope"], original_max_position_embeddings=47),
    "phi3, longrope, no original context": Row(PHI3, rope_scaling=ROPE["longrope"], max_position_embeddings=8192),
    "phi3, longrope, original context inside": Row(PHI3, rope_scaling=ROPE["longrope"] | dict(original_max_position_embeddings=16),
                                                   max_position_embeddings=8192),
    "phi3, longrope that extends nothing": Row(PHI3, rope_scaling=ROPE["longrope"], original_max_position_embeddings=64),
    "phi3, longrope, factor": Row(PHI3, rope_scaling=ROPE["longrope"] | dict(factor=3.0), original_max_position_embeddings=20),
    "phi3, longrope, attention_factor": Row(PHI3, rope_scaling=ROPE["longrope"] | dict(attention_factor=0.5),
                                            original_max_position_embeddings=20),
    "phi3, su": Row(PHI3, rope_scaling=dict(ROPE["longrope"], rope_type="su", original_max_position_embeddings=9),
                    original_max_position_embeddings=20),
    "phi3, yarn": Row(PHI3, rope_scaling={k: v for k, v in ROPE["longrope"].items() if k != "rope_type"} | dict(type="yarn"),
                      original_max_position_embeddings=20),
    "phi3, longrope, a part of the head": Row(PHI3, rope_scaling=ROPE["longrope"] | dict(short_factor=[1.5], long_factor=[2.5]),
                                              partial_rotary_factor=0.5, original_max_position_embeddings=20),
    # learned positions behind two rows, norms behind the sums
    "opt": Row(OPT, drop=[HEAD]),
    "opt, other weights": Row(OPT, drop=[HEAD], seed="2"),
    "opt, tied, head differs": Row(OPT),
    "opt, not tied": Row(OPT, tie_word_embeddings=False),
    "opt, do_layer_norm_before false": Row(OPT, drop=[HEAD], do_layer_norm_before=False),
    "opt, do_layer_norm_before false, no final norm": Row(OPT, drop=[HEAD, OPT_NORM + "weight", OPT_NORM + "bias"], do_layer_norm_before=False),
    "opt, enable_bias false": Row(OPT, drop=[HEAD], enable_bias=False),
    "opt, word_embed_proj_dim": Row(OPT, drop=[HEAD], word_embed_proj_dim=16),
    "opt, word_embed_proj_dim null": Row(OPT, drop=[HEAD], word_embed_proj_dim=None),
    "opt, names of others": Row(OPT, drop=[HEAD], intermediate_size=5, hidden_act="silu", num_key_value_heads=1, head_dim=2, rms_norm_eps=0.5,
                                layer_norm_eps=0.5, attention_bias=False, rope_theta=3.0),
    "opt, gelu_new": Row(OPT, drop=[HEAD], activation_function="gelu_new"),
    "opt, names without their prefix": Row(OPT, drop=[HEAD], prefix="model."),
    "opt, one head": Row(OPT, drop=[HEAD], num_attention_heads=1),
    # gains that are one more, scaled embeddings, soft-caps, alternating windows
    "gemma": Row(GEMMA),
    "gemma, gelu": Row(GEMMA, hidden_act="gelu"),
    "gemma, gelu_python": Row(GEMMA, hidden_act="gelu_python"),
    "gemma, hidden_activation not heeded": Row(GEMMA, hidden_activation="relu", use_bidirectional_attention=None),
    "gemma, attention_bias": Row(GEMMA, ALL, attention_bias=True),
    "gemma, tied": Row(GEMMA, tie_word_embeddings=LEFT_OUT, drop=[HEAD]),
    "gemma2": Row(GEMMA2),
    "gemma2, other weights": Row(GEMMA2, seed="2"),
    "gemma2, soft-caps": Row(GEMMA2, attn_logit_softcapping=1.5, final_logit_softcapping=2.0),
    "gemma2, no soft-caps": Row(GEMMA2, attn_logit_softcapping=None, final_logit_softcapping=None, use_bidirectional_attention=None),
    "gemma2, query_pre_attn_scalar": Row(GEMMA2, query_pre_attn_scalar=3),
    "gemma2, no head_dim": Row(GEMMA2, head_dim=LEFT_OUT, query_pre_attn_scalar=10000, of=dict(head_dim=256)),
    "gemma2, layer_types": Row(GEMMA2, layer_types=["full_attention", "sliding_attention"]),
    "gemma2, sliding_window_pattern not heeded": Row(GEMMA2, sliding_window_pattern=1),
    "gemma2, hidden_act not heeded": Row(GEMMA2, hidden_act="relu", hidden_activation="gelu"),
    "gemma2, no num_key_value_heads": Row(GEMMA2, num_key_value_heads=LEFT_OUT, of=dict(num_key_value_heads=4)),
    "gemma2, rope_theta": Row(GEMMA2, rope_theta=100.0),
    "gemma2, llama3": Row(GEMMA2, rope_scaling=ROPE["llama3"]),
    "gemma2, biases": Row(GEMMA2, ALL),
    "gemma3": Row(GEMMA3),
    "gemma3, other weights": Row(GEMMA3, seed="2"),
    "gemma3, a pattern": Row(GEMMA3, sliding_window_pattern=2),
    "gemma3, a pattern of one": Row(GEMMA3, sliding_window_pattern=1),
    "gemma3, layer_types": Row(GEMMA3, layer_types=["full_attention", "sliding_attention"], sliding_window_pattern=2),
    "gemma3, attn_logit_softcapping not heeded": Row(GEMMA3, attn_logit_softcapping=0.5),
    "gemma3, soft-cap": Row(GEMMA3, final_logit_softcapping=1.5),
    "gemma3, thetas beside": Row(GEMMA3, sliding_window_pattern=2, rope_theta=50.0, rope_local_base_freq=7.0),
    "gemma3, thetas inside": Row(GEMMA3, sliding_window_pattern=2, rope_theta=50.0, rope_local_base_freq=7.0,
                                 rope_parameters=dict(full_attention=ROPE["theta"], sliding_attention=dict(rope_type="default", rope_theta=20.0))),
    "gemma3, one inside": Row(GEMMA3, sliding_window_pattern=2, rope_theta=50.0, rope_local_base_freq=7.0,
                              rope_parameters=dict(full_attention=ROPE["theta"])),
    "gemma3, the other inside": Row(GEMMA3, sliding_window_pattern=2, rope_theta=50.0, rope_local_base_freq=7.0,
                                    rope_parameters=dict(full_attention=None, sliding_attention=ROPE["linear"])),
    "gemma3, rope_parameters for all not heeded": Row(GEMMA3, sliding_window_pattern=2, rope_parameters=ROPE["linear"]),
    "gemma3, rope_scaling": Row(GEMMA3, sliding_window_pattern=2, rope_theta=50.0, rope_scaling=ROPE["linear"]),
    "gemma3, rope_scaling by type not heeded": Row(GEMMA3, sliding_window_pattern=2, rope_scaling=dict(type="linear", factor=3.0)),
    "gemma3, rope_scaling beside rope_parameters": Row(GEMMA3, sliding_window_pattern=2, rope_scaling=dict(factor=2.0),
                                                       rope_parameters=dict(full_attention=ROPE["linear"] | dict(rope_theta=50.0))),
    "gemma3, llama3": Row(GEMMA3, sliding_window_pattern=2, rope_theta=50.0, rope_scaling=ROPE["llama3"], original_max_position_embeddings=9),
    "gemma3, longrope": Row(GEMMA3, sliding_window_pattern=2, rope_parameters=dict(
        full_attention=ROPE["theta"], sliding_attention=ROPE["longrope"] | dict(original_max_position_embeddings=20, rope_theta=30.0))),
    "gemma3, tied": Row(GEMMA3, tie_word_embeddings=LEFT_OUT, drop=[HEAD]),
    "gemma3, biases": Row(GEMMA3, ALL, attention_bias=True),
    "llama, longrope": Row(LLAMA, rope_scaling=ROPE["longrope"] | dict(original_max_position_embeddings=20)),
    "llama, longrope, original context beside": Row(LLAMA, rope_scaling=ROPE["longrope"], original_max_position_embeddings=20),
    "llama, longrope, no original context": Row(LLAMA, rope_scaling=ROPE["longrope"]),
}


def keep(nll):
    return nll[-64:]


def compare(name, row, tokens, ctx, want, part=lambda nll: nll):
    """Prints a line: whether the tools' likelihoods of a part of the targets are those wanted, or what failed."""
    import h5py

    row.write("row")
    for command in (["model-import", "-q", "row", "-o", "row.h5"],
                    ["eval-ppl", "--tokens", tokens, "--ctx", str(ctx), "row.h5", "-o", "row.nll.h5"]):
        done = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        if done.returncode:
            print(name, done.stderr.decode(errors="replace").strip(), sep="\t")
            return
    with h5py.File("row.nll.h5") as f:
        worst = np.abs(part(f["nll_of_target"][...]) - want).max()
    print(name, "same" if worst < 1e-4 else f"differs by {worst:.2g}", sep="\t")


def main():
    import h5py

    with h5py.File(sys.argv[1]) as ref:
        for name, row in ROWS.items():
            with h5py.File("row.tokens.h5", "w") as f:
                f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
                d = f.create_dataset("tokens", data=row.ids)
                d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = -1, 0, row.config["vocab_size"]
            compare(name, row, "row.tokens.h5", row.ctx, ref[name][...], keep)


if __name__ == "__main__":
    main()
