#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference tensors for tests/forward.c: small random models run by transformers.

Models run in float32 with eager attention and fixed seeds. Each file is a model
(config, weights as an HDF5 tree) and the datasets /test/tokens [n, t] and
/test/logits [n, t, vocab]. A mixture of experts also has
/test/router/<block>/input [n t, hidden] and choice [n t, k].

hessians.h5 is for tests/hessian-models.t: summaries of the inputs of each linear
layer of these models, by hessians.py. checkpoints.h5 is for tests/model-import.t:
likelihoods of the rows of checkpoints.py. conventions.h5 is for
tests/conventions.t: a text as bytes and its likelihoods by data/prose, window by
window. Usage: make.py [FOLDER], default the folder of this file.
"""
import json
import pathlib
import sys
import tempfile

import h5py
import numpy as np
import torch
import transformers

import checkpoints
import hessians

SMALL = dict(hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, bos_token_id=1,
             eos_token_id=2, rms_norm_eps=1e-5, attn_implementation="eager", initializer_range=0.25)

ROWS = {
    "llama-gqa": ("Llama", dict(tie_word_embeddings=False)),
    "llama-rope": ("Llama", dict(tie_word_embeddings=False, num_hidden_layers=1, head_dim=12,
                                 rope_theta=500000.0,
                                 rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                                   high_freq_factor=4.0, original_max_position_embeddings=64))),
    "llama-linear": ("Llama", dict(tie_word_embeddings=False, num_hidden_layers=1, attention_bias=True,
                                   mlp_bias=True, rope_scaling=dict(rope_type="linear", factor=2.5))),
    "llama-tied": ("Llama", dict(tie_word_embeddings=True, num_key_value_heads=4)),
    "qwen2-bias": ("Qwen2", dict(tie_word_embeddings=False)),
    "qwen2-window": ("Qwen2", dict(tie_word_embeddings=False, use_sliding_window=True, sliding_window=5,
                                   max_window_layers=1)),
    "gpt2": ("GPT2", dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=61, bos_token_id=1, eos_token_id=2,
                          initializer_range=0.25, attn_implementation="eager")),
    "mistral-window": ("Mistral", dict(tie_word_embeddings=False, sliding_window=7, num_key_value_heads=1)),
    "qwen3-window": ("Qwen3", dict(tie_word_embeddings=False, hidden_size=20, head_dim=10, use_sliding_window=True,
                                   sliding_window=5, max_window_layers=1)),
    "neox-parallel": ("GPTNeoX", dict(hidden_size=24, num_attention_heads=3)),
    "neox-serial": ("GPTNeoX", dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=1,
                                    use_parallel_residual=False, tie_word_embeddings=True,
                                    rope_parameters=dict(rope_theta=500.0, partial_rotary_factor=0.5))),
    "mixtral": ("Mixtral", dict(tie_word_embeddings=False, num_hidden_layers=1, num_local_experts=4, intermediate_size=20,
                                sliding_window=9)),
    "qwen2-moe": ("Qwen2Moe", dict(tie_word_embeddings=False, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12,
                                   shared_expert_intermediate_size=20, mlp_only_layers=[0])),
    "qwen3-moe": ("Qwen3Moe", dict(tie_word_embeddings=False, head_dim=10, num_experts=6, num_experts_per_tok=3,
                                   moe_intermediate_size=12, norm_topk_prob=True, decoder_sparse_step=2)),
    "phi3-window": ("Phi3", dict(hidden_size=24, num_attention_heads=3, num_key_value_heads=1, sliding_window=6, pad_token_id=0,
                                 rope_parameters=dict(rope_theta=500.0, rope_type="default", partial_rotary_factor=0.75))),
    "phi3-long": ("Phi3", dict(hidden_size=24, num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=1, pad_token_id=0,
                               original_max_position_embeddings=20,
                               rope_parameters=dict(rope_type="longrope", rope_theta=500.0, partial_rotary_factor=0.5,
                                                    short_factor=[1.0, 1.5], long_factor=[1.25, 3.0]))),
    "gemma": ("Gemma", dict(hidden_size=20, num_hidden_layers=1, num_key_value_heads=1, head_dim=6, pad_token_id=0)),
    "gemma2": ("Gemma2", dict(hidden_size=24, head_dim=10, sliding_window=5, query_pre_attn_scalar=7, attn_logit_softcapping=6.0,
                              final_logit_softcapping=9.0, pad_token_id=0)),
    "gemma3": ("Gemma3Text", dict(hidden_size=24, num_key_value_heads=1, head_dim=10, sliding_window=6, query_pre_attn_scalar=14,
                                  final_logit_softcapping=20.0, num_hidden_layers=3, sliding_window_pattern=2, pad_token_id=0,
                                  rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=5000.0),
                                                       sliding_attention=dict(rope_type="default", rope_theta=100.0)))),
    "opt": ("OPT", dict(ffn_dim=28, max_position_embeddings=40, init_std=0.25)),
    "opt-post": ("OPT", dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=1, ffn_dim=36, max_position_embeddings=37,
                             init_std=0.25, do_layer_norm_before=False, activation_function="gelu", tie_word_embeddings=False)),
}


FUSED = dict(query_key_value=("q_proj", "k_proj", "v_proj"), qkv_proj=("q_proj", "k_proj", "v_proj"), gate_up_proj=("gate_proj", "up_proj"))


def experts_of(model):
    return getattr(model.config, "num_local_experts", None) or model.config.num_experts


def names(model, name):
    """Of the tensors or layers of the tree that one of the model becomes."""
    if model.config.model_type == "gpt_neox":       # embed_out on disk
        name = name.replace("lm_head", "embed_out")
    if model.config.model_type == "mixtral":
        name = name.replace(".mlp.", ".block_sparse_moe.")
    if ".experts." in name:                         # in memory all experts of a block are two tensors
        stem = name.rsplit(".", 1)[0]
        each = ("gate_proj", "up_proj") if name.endswith("gate_up_proj") else ("down_proj",)
        if model.config.model_type == "mixtral":
            each = [dict(gate_proj="w1", up_proj="w3", down_proj="w2")[part] for part in each]
        return [f"{stem}.{e}.{part}.weight" for e in range(experts_of(model)) for part in each]
    for fused, parts in FUSED.items():
        if "." + fused in name:
            return [name.replace(fused, part) for part in parts]
    return [name]


def parts(model, name, t):
    """The rows of each."""
    c = model.config
    if "query_key_value" in name:                   # rows of a head: query, key, value
        t = t.reshape(c.num_attention_heads, 3, -1, *t.shape[1:])
        return [t[:, i].reshape(-1, *t.shape[3:]) for i in range(3)]
    if ".experts." in name:
        return [part for e in t for part in np.split(e, len(names(model, name)) // len(t))]
    if ".qkv_proj" in name:
        q, k = c.hidden_size, c.hidden_size * c.num_key_value_heads // c.num_attention_heads
        return np.split(t, [q, q + k])
    return np.split(t, len(names(model, name)))


def tree(model):
    """Names and tensors as model-import writes them."""
    whole = {n: t.detach().numpy() for n, t in model.state_dict().items()}
    whole["lm_head.weight"] = model.lm_head.weight.detach().numpy()
    state = {}
    for name, t in whole.items():
        state |= zip(names(model, name), parts(model, name, t))
    for name in state:
        if ".attn.c_" in name or ".mlp.c_" in name:     # Conv1D: stored [out, in] here
            state[name] = state[name].T
    return sorted(state.items())


def watch(model, seen):
    """The routers' inputs, and the experts they choose: by block, of the tokens in their order."""
    for block, layer in enumerate(getattr(getattr(model, "model", None), "layers", ())):
        router = getattr(layer.mlp, "gate", None)
        if router is not None:
            router.register_forward_hook(lambda module, x, y, block=block: seen.update({block: (x[0], y[2])}))


def expert_inputs(model, seen):
    """What each expert's layers are fed, which no module of transformers is: its tokens, and what gate and up make of them."""
    y = {}
    for block, (x, choice) in seen.items():
        x, fused = x.reshape(-1, x.shape[-1]), model.model.layers[block].mlp.experts
        stem = f"model.layers.{block}.mlp.experts."
        y[names(model, f"model.layers.{block}.mlp.gate")[0]] = x
        gate_up, down = names(model, stem + "gate_up_proj"), names(model, stem + "down_proj")
        for e in range(experts_of(model)):
            rows = x[(choice == e).any(-1)]
            gate, up = (rows @ fused.gate_up_proj[e].T).chunk(2, -1)
            inner = torch.nn.functional.silu(gate) * up
            y |= {n.removesuffix(".weight"): t for n, t in ((gate_up[2 * e], rows), (gate_up[2 * e + 1], rows), (down[e], inner))}
    return {n: t for n, t in y.items() if len(t)}


def write(path, model, tokens, logits, seen, old_rope):
    config = json.loads(model.config.to_json_string())
    config["architectures"] = [type(model).__name__]
    if old_rope and "rope_theta" in config.get("rope_parameters", {}):  # as transformers 4 wrote it
        rope = config.pop("rope_parameters")
        neox = config["model_type"] == "gpt_neox"
        config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta", 10000.0)
        if "partial_rotary_factor" in rope:
            config["rotary_pct" if neox else "partial_rotary_factor"] = rope.pop("partial_rotary_factor")
        config["rope_scaling"] = rope if rope.get("rope_type", "default") != "default" else None
    with h5py.File(path, "w", track_order=False) as f:
        f.attrs["ptq_kind"] = "model"
        f.attrs["ptq_version"] = "1"
        f.attrs["history"] = "tests/ref/make.py"
        f.create_dataset("config", data=json.dumps(config, indent=1), dtype=h5py.string_dtype())
        for name, t in tree(model):
            f.create_dataset(name.replace(".", "/"), data=np.ascontiguousarray(t, "f4"), track_times=False)
        f.create_dataset("test/tokens", data=tokens.numpy().astype("i4"), track_times=False)
        f.create_dataset("test/logits", data=logits.numpy().astype("f4"), track_times=False)
        for block, (x, choice) in seen.items():
            f.create_dataset(f"test/router/{block}/input", data=x.reshape(-1, x.shape[-1]).numpy(), track_times=False)
            f.create_dataset(f"test/router/{block}/choice", data=np.sort(choice.numpy().astype("i4")), track_times=False)


def write_checkpoints(path):
    with h5py.File(path, "w", track_order=False) as f, tempfile.TemporaryDirectory() as tmp:
        for name, row in checkpoints.ROWS.items():
            row.write(tmp)
            model = transformers.AutoModelForCausalLM.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager").eval()
            ids = torch.tensor(row.ids).long().view(-1, row.ctx)
            with torch.no_grad():
                p = torch.log_softmax(model(ids, use_cache=False).logits.double(), -1)
            nll = -p[:, :-1].gather(-1, ids[:, 1:, None]).flatten()
            f.create_dataset(name, data=checkpoints.keep(nll.numpy()).astype("f4"), track_times=False)
            print(name, type(model).__name__, float(nll.mean()))


def write_conventions(path):
    """Windows as llama.cpp's perplexity tool and as the guide of transformers to fixed-length models cut them."""
    prose = pathlib.Path(__file__).parents[2] / "data/prose"
    model = transformers.AutoModelForCausalLM.from_pretrained(prose, dtype=torch.float32).eval()
    text, bos = (prose / "README.md").read_bytes(), 0
    text = text[:text.index(b"\n", 250) + 1]

    def losses(ids, first):                             # nll of ids[first:], given those before
        if len(ids) <= first:
            return []
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, :-1].double()
        return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")[first - 1:].tolist()

    def llama_cpp(add_bos, ctx):
        ids, nll = [bos] * add_bos + list(text[:-1]), []
        for i in range(len(ids) // ctx):
            chunk = ids[i * ctx:(i + 1) * ctx]
            nll += losses([bos] + chunk[1:] if add_bos else chunk, ctx // 2 + 1)
        return nll

    def sliding(add_bos, ctx, stride):
        ids, nll, before = [bos] * add_bos + list(text), [], 0
        for begin in range(0, len(ids), stride):
            end = min(begin + ctx, len(ids))
            nll += losses(ids[begin:end], max(1, end - begin - (end - before)))
            before = end
            if end == len(ids):
                break
        return nll

    rows = {"llama.cpp": [("llama.cpp", b, c, 0) for b, c in ((0, 51), (1, 64))],
            "sliding": [("sliding", b, c, s) for b, c, s in ((1, 64, 32), (0, 64, 64), (1, 100, 27))]}
    with h5py.File(path, "w", track_order=False) as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
        t = f.create_dataset("tokens", data=np.frombuffer(text, "u1").astype("i4"), track_times=False)
        t.attrs.update(bos_id=bos, add_bos=1, vocab=256, newline=1)
        f.create_dataset("bytes", data=np.ones(len(text), "u2"), track_times=False)
        for name, add_bos, ctx, stride in sum(rows.values(), []):
            nll = llama_cpp(add_bos, ctx) if name == "llama.cpp" else sliding(add_bos, ctx, stride)
            f.create_dataset(f"test/{name} {add_bos} {ctx} {stride}", data=np.array(nll, "f4"), track_times=False)
            print(name, add_bos, ctx, stride, len(nll), float(np.mean(nll)))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    moments = h5py.File(folder / "hessians.h5", "w", track_order=False)
    for seed, (name, (kind, changes)) in enumerate(ROWS.items()):
        torch.manual_seed(seed)
        config = getattr(transformers, kind + "Config")(**(changes if kind == "GPT2" else {**SMALL, **changes}))
        kind = kind.removesuffix("Text")
        model = getattr(transformers, kind + ("LMHeadModel" if kind == "GPT2" else "ForCausalLM"))(config).float().eval()
        with torch.no_grad():
            for key, p in model.named_parameters():     # gains near 1 and biases near 0 would hide mistakes
                if key.endswith("bias"):
                    p.normal_(0, 0.5)
                elif p.dim() == 1:
                    p.uniform_(0.5, 1.5).sub_(float(kind.startswith("Gemma")))     # there the gain is one more
            seen = {}
            watch(model, seen)
            tokens = torch.randint(0, config.vocab_size, (2, 37))
            with hessians.inputs(model) as x:
                logits = model(tokens, use_cache=False).logits
            experts = expert_inputs(model, seen)
        hessians.write(moments, name, {n: t for layer, t in x.items() for n in names(model, layer)} | experts)
        write(folder / (name + ".h5"), model, tokens, logits, seen, old_rope=seed % 2 == 0)
        print(name, float(np.abs(logits.numpy()).max()), (folder / (name + ".h5")).stat().st_size)
    moments.close()
    write_checkpoints(folder / "checkpoints.h5")
    write_conventions(folder / "conventions.h5")


main()
