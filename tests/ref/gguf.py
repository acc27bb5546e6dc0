# SPDX-License-Identifier: GPL-3.0-or-later
"""GGUF files for tests/gguf.t, by struct and numpy: a writer, the blocks of each type, and small models.

The models are those of make.py, with logits of transformers. model() names, permutes and stacks their tensors
as llama.cpp's convert_hf_to_gguf.py does. decode() computes the numbers of a block, directly from ggml-common.h.
"""
import json
import struct

import h5py
import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
NUMBER = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
# id, numbers and bytes of a block
TYPES = dict(F32=(0, 1, 4), F16=(1, 1, 2), BF16=(30, 1, 2), Q4_0=(2, 32, 18), Q4_1=(3, 32, 20), Q5_0=(6, 32, 22), Q5_1=(7, 32, 24),
             Q8_0=(8, 32, 34), Q4_K=(12, 256, 144), Q5_K=(13, 256, 176), Q6_K=(14, 256, 210), IQ4_NL=(20, 32, 18),
             MXFP4=(39, 32, 17))
LEVELS = -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113    # of IQ4_NL


def string(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def scalar(kind, v):
    return string(v) if kind == STRING else struct.pack("<" + NUMBER[kind], v)


def value(v):
    """(type, number), a list of such of one type, or what is plain in Python."""
    if isinstance(v, bytes):
        return v                            # type and value, raw
    if isinstance(v, bool):
        v = (BOOL, v)
    elif isinstance(v, int):
        v = (U32, v)
    elif isinstance(v, float):
        v = (F32, v)
    elif isinstance(v, str):
        v = (STRING, v)
    if isinstance(v, list):
        kind = STRING if isinstance(v[0], (str, bytes)) else F32 if isinstance(v[0], float) else I32
        v = (ARRAY, (kind, v))
    kind, x = v
    if kind == ARRAY:
        return struct.pack("<IIQ", ARRAY, x[0], len(x[1])) + b"".join(scalar(x[0], e) for e in x[1])
    return struct.pack("<I", kind) + scalar(kind, x)


def data(a, kind):
    """The bytes of an array as F32, F16 or BF16."""
    a = np.ascontiguousarray(a, "f4")
    if kind == "BF16":
        return (a.view("u4") >> 16).astype("u2").tobytes()
    return a.astype({"F32": "f4", "F16": "f2"}[kind]).tobytes()


def write(path, values, tensors, version=3, align=32, magic=b"GGUF", counts=None, offsets=None, order="<"):
    """values: {key: value}, or pairs; tensors: {name: (shape, type or its number, bytes)}, or pairs."""
    values = list(values.items()) if isinstance(values, dict) else values
    tensors = list(tensors.items()) if isinstance(tensors, dict) else tensors
    n, m = counts or (len(tensors), len(values))
    head = magic + struct.pack(order + "I", version) + struct.pack("<QQ", n, m)
    for k, v in values:
        head += string(k) + value(v)
    body = b""
    for name, (shape, kind, raw) in tensors:
        at = (offsets or {}).get(name, len(body))
        head += string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        head += struct.pack("<IQ", TYPES[kind][0] if isinstance(kind, str) else kind, at)
        body += raw + b"\0" * (-len(raw) % align)
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % align) + body)


def half(b):
    return float(np.frombuffer(b, "<f2")[0])


def six(s, g):
    """Scale and offset of group g of a Q4_K or Q5_K block, 6 bits each, of its 12 bytes."""
    if g < 4:
        return s[g] % 64, s[g + 4] % 64
    return s[g + 4] % 16 + s[g - 4] // 64 * 16, s[g + 4] // 16 + s[g] // 64 * 16


def decode(kind, b):
    """The numbers of a block, in double; they are float32 numbers but for one sum, which is rounded to float32."""
    nibble = lambda q, j: q[j] % 16 if j < 16 else q[j - 16] // 16
    bit = lambda q, j: q[j // 8] >> j % 8 & 1
    if kind == "Q4_0":
        y = [half(b[:2]) * (nibble(b[2:], j) - 8) for j in range(32)]
    elif kind == "Q4_1":
        y = [half(b[:2]) * nibble(b[4:], j) + half(b[2:4]) for j in range(32)]
    elif kind == "Q5_0":
        y = [half(b[:2]) * (nibble(b[6:], j) + 16 * bit(b[2:6], j) - 16) for j in range(32)]
    elif kind == "Q5_1":
        y = [half(b[:2]) * (nibble(b[8:], j) + 16 * bit(b[4:8], j)) + half(b[2:4]) for j in range(32)]
    elif kind == "Q8_0":
        y = [half(b[:2]) * (b[2 + j] - 256 * (b[2 + j] > 127)) for j in range(32)]
    elif kind == "MXFP4":
        grid = [0, .5, 1, 1.5, 2, 3, 4, 6]
        y = [2.0 ** (b[0] - 127) * grid[nibble(b[1:], j) % 8] * (-1) ** (nibble(b[1:], j) // 8) + 0.0 for j in range(32)]    # no -0
    elif kind == "IQ4_NL":
        y = [half(b[:2]) * LEVELS[nibble(b[2:], j)] for j in range(32)]
    elif kind in ("Q4_K", "Q5_K"):
        y, fifth = [], kind == "Q5_K"
        for k in range(256):
            g, j = divmod(k, 32)
            q = b[(48 if fifth else 16) + g // 2 * 32 + j] >> 4 * (g % 2) & 15
            q += 16 * (b[16 + j] >> g & 1) * fifth
            s, m = six(b[4:16], g)
            y.append(half(b[:2]) * s * q - half(b[2:4]) * m)
    else:
        assert kind == "Q6_K"
        y = []
        for k in range(256):
            h, r = divmod(k, 128)
            g, j = divmod(r, 32)
            q = (b[64 * h + 32 * (g % 2) + j] >> 4 * (g // 2) & 15) + 16 * (b[128 + 32 * h + j] >> 2 * g & 3)
            s = b[192 + k // 16]
            y.append(half(b[208:]) * (s - 256 * (s > 127)) * (q - 32))
    return np.array(y, "f8").astype("f4")


def blocks(dice, kind, n):
    """n random blocks with scales that are finite, and their numbers."""
    _, length, size = TYPES[kind]
    raw = dice.integers(0, 256, (n, size), dtype="u1")
    for at in {"Q6_K": (208,), "MXFP4": (), "Q4_0": (0,), "Q5_0": (0,), "Q8_0": (0,), "IQ4_NL": (0,)}.get(kind, (0, 2)):
        raw[:, at + 1] &= 0xbf              # no exponent of all ones
    if kind == "MXFP4":
        raw[:, 0] = dice.integers(0, 250, n)
    return raw.tobytes(), np.concatenate([decode(kind, row.tobytes()) for row in raw])


def permute(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


LLAMA = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn/q_proj": "attn_q", "self_attn/k_proj": "attn_k",
         "self_attn/v_proj": "attn_v", "self_attn/o_proj": "attn_output", "self_attn/q_norm": "attn_q_norm", "self_attn/k_norm": "attn_k_norm",
         "mlp/gate_proj": "ffn_gate", "mlp/up_proj": "ffn_up", "mlp/down_proj": "ffn_down"}
GPT2 = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn/c_attn": "attn_qkv", "attn/c_proj": "attn_output", "mlp/c_fc": "ffn_up",
        "mlp/c_proj": "ffn_down"}
NEOX = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "attention/dense": "attn_output",
        "mlp/dense_h_to_4h": "ffn_up", "mlp/dense_4h_to_h": "ffn_down"}
MIXTRAL = LLAMA | {"block_sparse_moe/gate": "ffn_gate_inp", "block_sparse_moe/experts/0/w1": "ffn_gate_exps",
                   "block_sparse_moe/experts/0/w3": "ffn_up_exps", "block_sparse_moe/experts/0/w2": "ffn_down_exps"}
QWEN_MOE = LLAMA | {"mlp/gate": "ffn_gate_inp", "mlp/shared_expert_gate": "ffn_gate_inp_shexp"} | {
    f"mlp/{group}{n}_proj": f"ffn_{n}_{short}" for n in ("gate", "up", "down") for group, short in (("shared_expert/", "shexp"), ("experts/0/", "exps"))}
GEMMA = LLAMA | {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                 "post_feedforward_layernorm": "post_ffw_norm"}
PHI3 = LLAMA | {"self_attn/q_proj": "attn_qkv", "mlp/gate_proj": "ffn_up"}
FUSED = {"attention/q_proj": ("k_proj", "v_proj"), "self_attn/q_proj": ("k_proj", "v_proj"), "mlp/gate_proj": ("up_proj",)}
KINDS = {"mixtral": ("llama", "model/layers", MIXTRAL), "qwen2_moe": ("qwen2moe", "model/layers", QWEN_MOE),
         "qwen3_moe": ("qwen3moe", "model/layers", QWEN_MOE), "phi3": ("phi3", "model/layers", PHI3), "gemma": ("gemma", "model/layers", LLAMA),
         "gemma2": ("gemma2", "model/layers", GEMMA), "gemma3_text": ("gemma3", "model/layers", GEMMA),
         "llama": ("llama", "model/layers", LLAMA), "qwen2": ("qwen2", "model/layers", LLAMA), "qwen3": ("qwen3", "model/layers", LLAMA),
         "gpt2": ("gpt2", "transformer/h", GPT2), "gpt_neox": ("gptneox", "gpt_neox/layers", NEOX)}
TOPS = {"model/embed_tokens": "token_embd", "model/norm": "output_norm", "lm_head": "output", "transformer/wte": "token_embd",
        "transformer/wpe": "position_embd", "transformer/ln_f": "output_norm", "gpt_neox/embed_in": "token_embd",
        "gpt_neox/final_layer_norm": "output_norm", "embed_out": "output"}


def rope(c, values, tensors, arch, head):
    """Rotary scaling as the converter writes it: Llama 3's as divisors, rounded to float32."""
    r = c.get("rope_scaling") or c.get("rope_parameters") or {}
    if "full_attention" in r:
        values[arch + ".rope.freq_base_swa"] = r["sliding_attention"]["rope_theta"]
        r = r["full_attention"]
    for name in "long", "short":
        if name + "_factor" in r:
            tensors[f"rope_factors_{name}.weight"] = ((len(r[name + "_factor"]),), "F32", data(r[name + "_factor"], "F32"))
    values[arch + ".rope.freq_base"] = float(c.get("rope_theta", c.get("rotary_emb_base", r.get("rope_theta", 10000.0))))
    if r.get("rope_type") == "linear":
        values |= {arch + ".rope.scaling.type": "linear", arch + ".rope.scaling.factor": r["factor"]}
    if r.get("rope_type") == "llama3":
        f = np.float32(1) / np.float32(values[arch + ".rope.freq_base"]) ** (np.arange(0, head, 2, dtype="f4") / np.float32(head))
        y = []
        for x in f:
            wave, old = 2 * np.pi / float(x), r["original_max_position_embeddings"]
            s = (old / wave - r["low_freq_factor"]) / (r["high_freq_factor"] - r["low_freq_factor"])
            y.append(1 if s > 1 else r["factor"] if s < 0 else 1 / ((1 - s) / r["factor"] + s))
        tensors["rope_freqs.weight"] = ((len(y),), "F32", data(y, "F32"))


def model(path, kind=lambda name, a: "F32"):
    """Values and tensors of the model at the path; kind: the type that each is stored in."""
    with h5py.File(path) as f:
        c = json.loads(f["config"][()])
        tree = {}
        f.visititems(lambda p, o: tree.update({p: o[...]} if isinstance(o, h5py.Dataset) and p[:4] not in ("conf", "test") else {}))
    arch, above, names = KINDS[c["model_type"]]
    get = lambda *keys: next(c[k] for k in keys if c.get(k) is not None)
    h, heads = get("hidden_size", "n_embd"), get("num_attention_heads", "n_head")
    kv = c.get("num_key_value_heads") or heads
    head = c.get("head_dim") or h // heads
    values = {"general.architecture": arch, "general.alignment": 32, arch + ".block_count": get("num_hidden_layers", "n_layer"),
              arch + ".context_length": get("max_position_embeddings", "n_positions"), arch + ".embedding_length": h,
              arch + ".feed_forward_length": c.get("intermediate_size") or 4 * h, arch + ".attention.head_count": heads}
    for key, theirs in (("num_experts", "expert_count"), ("num_local_experts", "expert_count"), ("num_experts_per_tok", "expert_used_count"),
                        ("moe_intermediate_size", "expert_feed_forward_length"), ("sliding_window_pattern", "attention.sliding_window_pattern"),
                        ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"), ("sliding_window", "attention.sliding_window"),
                        ("attn_logit_softcapping", "attn_logit_softcapping"), ("final_logit_softcapping", "final_logit_softcapping"),
                        ("original_max_position_embeddings", "rope.scaling.original_context_length")):
        if c.get(key) and (key != "sliding_window" or c.get("use_sliding_window", True)):
            values[f"{arch}.{theirs}"] = c[key]
    if "self_attn/q_proj" in names:
        values |= {arch + ".attention.head_count_kv": kv, arch + ".attention.layer_norm_rms_epsilon": c["rms_norm_eps"],
                   arch + ".attention.key_length": head, arch + ".attention.value_length": head, arch + ".rope.dimension_count": head}
        if arch == "phi3":
            part = c.get("partial_rotary_factor", (c.get("rope_parameters") or {}).get("partial_rotary_factor", 1))
            values[arch + ".rope.dimension_count"] = int(head * part)
    else:
        values[arch + ".attention.layer_norm_epsilon"] = get("layer_norm_eps", "layer_norm_epsilon")
    if arch == "gptneox":
        part = c.get("rotary_pct", (c.get("rope_parameters") or {}).get("partial_rotary_factor"))
        values |= {arch + ".rope.dimension_count": int(head * part), arch + ".use_parallel_residual": c["use_parallel_residual"]}
    tensors = {}
    if arch != "gpt2":
        rope(c, values, tensors, arch, head)
    for p, a in tree.items():
        group, member = p.rsplit("/", 1)
        if TOPS.get(group) == "output" and c.get("tie_word_embeddings", arch == "gpt2"):
            continue
        name = TOPS.get(group)
        if not name:
            block, below = group[len(above) + 1:].split("/", 1)
            if arch in ("gptneox", "phi3"):
                if any(below.endswith("/" + n) and below.split("/")[0] == k.split("/")[0] for k, v in FUSED.items() for n in v):
                    continue
                if below in FUSED:
                    a = np.concatenate([a] + [tree[p.replace(below.split("/")[1], n)] for n in FUSED[below]])
            if "/experts/" in below:
                if "/0/" not in below:
                    continue
                a = np.stack([tree[p.replace("/experts/0/", f"/experts/{e}/")] for e in range(get("num_experts", "num_local_experts"))])
            name = f"blk.{block}." + names.get(below, "attn_qkv")
            if name.endswith("inp_shexp"):
                a = a[0]
            if arch == "llama" and name[-6:] in ("attn_q", "attn_k"):
                a = permute(a, heads if name.endswith("q") else kv)
        if arch[:5] == "gemma" and name.endswith("norm"):
            a = a + np.float32(1)
        t = kind(name, a)
        tensors[f"{name}.{member}"] = (a.shape, t, data(a, t))
    return values, tensors
