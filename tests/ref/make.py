#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference tensors for tests/forward.c: small random models run by transformers.

Float32, eager attention, fixed seeds. Each file is a model (config, weights as
an HDF5 tree) with the datasets /test/tokens [n, t] and /test/logits [n, t,
vocab] beside it. checkpoints.h5 is for tests/model-import.t: likelihoods of the
rows of checkpoints.py; conventions.h5 for tests/conventions.t: a text as bytes and
what data/prose gives it, window by window. Usage: make.py [FOLDER], default the
folder of this file.
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
}


def tree(model):
    """Names and tensors as model-import writes them."""
    state = {n: t.detach().numpy() for n, t in model.state_dict().items()}
    state["lm_head.weight"] = model.lm_head.weight.detach().numpy()
    if model.config.model_type == "gpt_neox":       # embed_out on disk; rows of a head: query, key, value
        state["embed_out.weight"] = state.pop("lm_head.weight")
        for name in [n for n in state if "query_key_value" in n]:
            t = state.pop(name)
            t = t.reshape(model.config.num_attention_heads, 3, -1, *t.shape[1:])
            for i, part in enumerate(("q_proj", "k_proj", "v_proj")):
                state[name.replace("query_key_value", part)] = t[:, i].reshape(-1, *t.shape[3:])
    for name in state:
        if ".attn.c_" in name or ".mlp.c_" in name:     # Conv1D: stored [out, in] here
            state[name] = state[name].T
    return sorted(state.items())


def write(path, model, tokens, logits, old_rope):
    config = json.loads(model.config.to_json_string())
    config["architectures"] = [type(model).__name__]
    if old_rope and "rope_parameters" in config:        # as transformers 4 wrote it
        rope = config.pop("rope_parameters")
        neox = config["model_type"] == "gpt_neox"
        config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta", 10000.0)
        if neox:
            config["rotary_pct"] = rope.pop("partial_rotary_factor")
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
    for seed, (name, (kind, changes)) in enumerate(ROWS.items()):
        torch.manual_seed(seed)
        config = getattr(transformers, kind + "Config")(**(changes if kind == "GPT2" else {**SMALL, **changes}))
        model = getattr(transformers, kind + ("LMHeadModel" if kind == "GPT2" else "ForCausalLM"))(config).float().eval()
        with torch.no_grad():
            for key, p in model.named_parameters():     # gains near 1 and biases near 0 would hide mistakes
                if key.endswith("bias"):
                    p.normal_(0, 0.5)
                elif p.dim() == 1:
                    p.uniform_(0.5, 1.5)
            tokens = torch.randint(0, config.vocab_size, (2, 37))
            logits = model(tokens, use_cache=False).logits
        write(folder / (name + ".h5"), model, tokens, logits, old_rope=seed % 2 == 0)
        print(name, float(np.abs(logits.numpy()).max()), (folder / (name + ".h5")).stat().st_size)
    write_checkpoints(folder / "checkpoints.h5")
    write_conventions(folder / "conventions.h5")


main()
