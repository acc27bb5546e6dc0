#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A random Llama of any size, as a Hugging Face folder, and the same weights as GGUF.

    random-llama.py FOLDER [--hidden 768 --blocks 12 --heads 12 --kv-heads 12 --intermediate 2048
                            --vocab 32000 --dtype f32|bf16 --seed 1] [--gguf FILE]

Weights are normal with standard deviation 0.02. Weights that write into the
residual stream are divided by the root of twice the number of blocks (GPT-2's
rule), so that logits stay finite at any depth. A tensor depends only on the seed
and its name. One tensor is in memory at a time. --gguf needs the PyPI package
gguf; the vocabulary has a token for each byte, with the byte as its id, and
fillers that occur in no text. Prints the number of parameters.
"""
import argparse
import json
import os
import pathlib
import zlib

import numpy as np

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("folder", type=pathlib.Path)
for name, default in dict(hidden=768, blocks=12, heads=12, kv_heads=0, intermediate=2048, vocab=32000, positions=4096, seed=1).items():
    p.add_argument("--" + name.replace("_", "-"), type=int, default=default)
p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
p.add_argument("--gguf", type=pathlib.Path)
a = p.parse_args()
kv_heads = a.kv_heads or a.heads
head = a.hidden // a.heads

# Hugging Face name, GGUF name, shape, heads of a query or key layer, into the residual stream
TENSORS = [("model.embed_tokens.weight", "token_embd.weight", (a.vocab, a.hidden), 0, False)]
for i in range(a.blocks):
    for hf, gguf, shape, heads, out in [
            ("input_layernorm", "attn_norm", (a.hidden,), 0, False),
            ("self_attn.q_proj", "attn_q", (a.hidden, a.hidden), a.heads, False),
            ("self_attn.k_proj", "attn_k", (kv_heads * head, a.hidden), kv_heads, False),
            ("self_attn.v_proj", "attn_v", (kv_heads * head, a.hidden), 0, False),
            ("self_attn.o_proj", "attn_output", (a.hidden, a.hidden), 0, True),
            ("post_attention_layernorm", "ffn_norm", (a.hidden,), 0, False),
            ("mlp.gate_proj", "ffn_gate", (a.intermediate, a.hidden), 0, False),
            ("mlp.up_proj", "ffn_up", (a.intermediate, a.hidden), 0, False),
            ("mlp.down_proj", "ffn_down", (a.hidden, a.intermediate), 0, True)]:
        TENSORS.append((f"model.layers.{i}.{hf}.weight", f"blk.{i}.{gguf}.weight", shape, heads, out))
TENSORS += [("model.norm.weight", "output_norm.weight", (a.hidden,), 0, False),
            ("lm_head.weight", "output.weight", (a.vocab, a.hidden), 0, False)]


def bf16(x):
    u = x.view(np.uint32)
    return ((u + 0x7fff + (u >> 16 & 1)) >> 16).astype(np.uint16)


def values(name, shape, out):
    """Norms are ones in f32; the rest in the type asked for."""
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    x = np.random.default_rng([a.seed, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
    x *= np.float32(0.02 / np.sqrt(2 * a.blocks) if out else 0.02)
    return x if a.dtype == "f32" else bf16(x)


def write_folder():
    header, at = {}, 0
    for name, _, shape, _, _ in TENSORS:
        plain = len(shape) == 1 or a.dtype == "f32"
        size = int(np.prod(shape)) * (4 if plain else 2)
        header[name] = dict(dtype="F32" if plain else "BF16", shape=shape, data_offsets=[at, at + size])
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    a.folder.mkdir(parents=True, exist_ok=True)
    with open(a.folder / "model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name, _, shape, _, out in TENSORS:
            values(name, shape, out).tofile(f)
    (a.folder / "config.json").write_text(json.dumps(dict(
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=a.hidden, num_hidden_layers=a.blocks,
        num_attention_heads=a.heads, num_key_value_heads=kv_heads, intermediate_size=a.intermediate,
        vocab_size=a.vocab, max_position_embeddings=a.positions, rms_norm_eps=1e-5, rope_theta=10000.0,
        hidden_act="silu", tie_word_embeddings=False, bos_token_id=0, eos_token_id=a.vocab - 1), indent=1))


def write_gguf():
    import gguf
    w = gguf.GGUFWriter(str(a.gguf), "llama", use_temp_file=False)
    w.add_name("random")
    w.add_context_length(a.positions)
    w.add_embedding_length(a.hidden)
    w.add_block_count(a.blocks)
    w.add_feed_forward_length(a.intermediate)
    w.add_head_count(a.heads)
    w.add_head_count_kv(kv_heads)
    w.add_rope_dimension_count(head)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(a.vocab)
    w.add_file_type(gguf.LlamaFileType.ALL_F32 if a.dtype == "f32" else gguf.LlamaFileType.MOSTLY_BF16)
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list([f"<0x{i:02X}>" for i in range(256)] + [f"filler{i}" for i in range(256, a.vocab)])
    w.add_token_scores([0.0] * 256 + [-1e9] * (a.vocab - 256))
    w.add_token_types([gguf.TokenType.BYTE] * 256 + [gguf.TokenType.UNUSED] * (a.vocab - 256))
    w.add_bos_token_id(0)
    w.add_eos_token_id(a.vocab - 1)
    w.add_unk_token_id(a.vocab - 2)
    w.add_add_bos_token(True)
    w.add_add_space_prefix(False)
    for name, short, shape, heads, out in TENSORS:
        x = values(name, shape, out)
        if heads:                       # llama.cpp turns neighbouring pairs, Hugging Face halves
            x = np.ascontiguousarray(x.reshape(heads, 2, head // 2, a.hidden).swapaxes(1, 2).reshape(shape))
        if x.dtype == np.uint16:
            w.add_tensor(short, x.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            w.add_tensor(short, x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write_folder()
if a.gguf:
    try:
        write_gguf()
    except BaseException:
        if os.path.exists(a.gguf):
            os.unlink(a.gguf)
        raise
print(sum(int(np.prod(shape)) for _, _, shape, _, _ in TENSORS))
