#!/usr/bin/env python3
"""Train the small byte-level English language model that ptqtools uses as test material.

The model has the Llama architecture: 8 layers, width 256, 8 query heads and 4 key/value heads of 32,
MLP width 768.  It has 256 tokens, one for each byte value.  Byte 0 is the BOS.  The output is a
Hugging Face folder: config.json and model.safetensors in bfloat16.

Data.  English novels from two Debian 12 packages, read with Rscript:
  r-cran-janeaustenr 1.0.0-1  Jane Austen: Sense and Sensibility, Pride and
                              Prejudice, Mansfield Park, Emma, Northanger
                              Abbey, Persuasion
  r-cran-tokenizers 0.3.0-1   Herman Melville: Moby Dick
The texts (1811 to 1851) are in the public domain.  The packages around them are under the MIT
licence.  The following text is left out: headings, the transcribers' notes, the Project Gutenberg
header and footer of Moby Dick, and an editor's note after Northanger Abbey.  Paragraphs are unwrapped
to one line each.  About 2% of the text is held out, in contiguous chunks spread over all the novels.

Usage:
  apt-get install r-cran-janeaustenr r-cran-tokenizers
  pip install torch safetensors numpy
  python3 train.py --steps N            train N steps; cosine over the steps
  python3 train.py --minutes M          train M minutes; cosine over the clock
  python3 train.py --minutes 86 --replay losses.tsv --out again
                                        repeat the run of the delivered model: the same number
                                        of steps, with the clock of that run from its log

All files are written to the folder --out (default: the folder of this script), but the text and the
checkpoints to the folder --work (default: the folder "work" next to this script).  The default seed is
1811 (--seed).  It fixes the held-out chunks, the initial weights and the order of the data.  The
device is --device (cpu by default), any device of torch.  The last digits of the numbers in losses.tsv
differ between machines, because the order of floating-point sums differs.
"""
import argparse
import json
import math
import os
import re
import subprocess
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "intermediate_size": 768,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "hidden_act": "silu",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "initializer_range": 0.02,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "use_cache": True,
    "torch_dtype": "bfloat16",
}

# ---------------------------------------------------------------- the text

NOVELS = [  # package, data object, first line, first line after the text
    ("janeaustenr", "sensesensibility", None, None),
    ("janeaustenr", "prideprejudice", None, None),
    ("janeaustenr", "mansfieldpark", None, None),
    ("janeaustenr", "emma", None, None),
    ("janeaustenr", "northangerabbey", None, "A NOTE ON THE TEXT"),
    ("janeaustenr", "persuasion", None, None),
    ("tokenizers", "mobydick", "CHAPTER 1. Loomings.", "End of Project Gutenberg"),
]
R_EXPORT = """
for (p in c("janeaustenr", "tokenizers")) {
  e <- new.env()
  lazyLoad(file.path(find.package(p), "data", "Rdata"), envir = e)
  for (n in ls(e)) writeLines(get(n, e), file.path(Sys.getenv("RAW_DIR"), paste0(n, ".txt")), useBytes = TRUE)
}
"""
HEADING = re.compile(r"^(chapter|volume|finis\b|the end$|epilogue|by$|by jane austen|jane austen|\(1\d\d\d\)"
                     r"|\[at this point|\[end volume|end of vol)", re.I)
SIMPLE = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "--",
          "\u00a3": "L", "\u00e9": "e", "\u00e8": "e", "\u00e6": "ae", "\ufeff": ""}


def clean(text, begin, end):
    """Return one novel as plain ASCII, one paragraph per line."""
    lines = text.replace("\r", "").split("\n")
    if begin:
        lines = lines[next(i for i, s in enumerate(lines) if s.strip().startswith(begin)):]
    if end:
        lines = lines[:next(i for i, s in enumerate(lines) if s.strip().startswith(end))]
    text = "\n".join(s.rstrip() for s in lines)
    for a, b in SIMPLE.items():
        text = text.replace(a, b)
    text = text.replace("_", "").encode("ascii", "ignore").decode()
    out = []
    for par in re.split(r"\n\s*\n", text):
        par = re.sub(r"\s+", " ", par).strip()
        letters = re.sub(r"[^A-Za-z]", "", par)
        if not letters or HEADING.match(par) or (letters.isupper() and len(par) < 80):
            continue
        out.append(par)
    return "\n".join(out) + "\n"


def prepare(work, seed):
    """Write train.bin and val.bin: bytes of text, with a NUL byte between documents."""
    raw = os.path.join(work, "raw")
    os.makedirs(raw, exist_ok=True)
    subprocess.run(["Rscript", "-e", R_EXPORT], check=True, env=dict(os.environ, RAW_DIR=raw))
    rng = np.random.default_rng(seed)
    train, val = [], []
    for _, name, begin, end in NOVELS:
        with open(os.path.join(raw, name + ".txt"), encoding="utf-8") as f:
            text = clean(f.read(), begin, end)
        # chunks of about 5,000 bytes, each up to the end of a paragraph; one of every 50 is held out
        pieces, at = [], 0
        while at < len(text):
            stop = text.find("\n", min(at + 5000, len(text) - 1)) + 1
            pieces.append(text[at:stop])
            at = stop
        held = {min(i + int(rng.integers(50)), len(pieces) - 1) for i in range(0, len(pieces), 50)}
        val += [pieces[i] for i in sorted(held)]
        run = ""
        for i, piece in enumerate(pieces):
            if i in held:
                train.append(run)
                run = ""
            else:
                run += piece
        train.append(run)
        print(f"{name}: {len(text)} bytes, {len(held)} of {len(pieces)} pieces held out", flush=True)
    for kind, parts in ("train", train), ("val", val):
        with open(os.path.join(work, kind + ".bin"), "wb") as f:
            f.write("\0".join(p for p in parts if p).encode("ascii"))


class Windows:
    """Training windows.  Each pass cuts the whole text into windows at a new random phase and shuffles
    them.  Every second sequence starts with the BOS.  Half of these windows are moved to the
    beginning of the next sentence, if one begins within the window."""

    def __init__(self, path, seed):
        data = np.fromfile(path, dtype=np.uint8)
        self.docs = [d for d in np.split(data, np.flatnonzero(data == 0))]
        self.docs = [d[1:] if len(d) and d[0] == 0 else d for d in self.docs]
        self.docs = [d for d in self.docs if len(d) > 1100]
        self.bytes = sum(len(d) for d in self.docs)
        self.rng = np.random.default_rng(seed + 1)
        self.starts = []
        for d in self.docs:  # after a newline, or after '. ' (or '! ', '? ') before a capital or a quote
            s = d.tobytes()
            self.starts.append(np.array([m.end() for m in re.finditer(rb"\n|[.!?]\"? (?=[A-Z\"])", s)]))
        self.queue, self.length, self.flip = [], None, 0

    def refill(self, length):
        self.length, self.queue = length, []
        for k, d in enumerate(self.docs):
            self.queue += [(k, a) for a in range(int(self.rng.integers(length)), len(d) - length - 1, length)]
        self.rng.shuffle(self.queue)

    def batch(self, count, length):
        out = np.zeros((count, length + 1), dtype=np.int64)
        for row in out:
            if self.length != length or len(self.queue) == 0:
                self.refill(length)
            k, at = self.queue.pop()
            d = self.docs[k]
            kind, self.flip = self.flip % 4, self.flip + 1
            if kind == 1:
                later = self.starts[k][np.searchsorted(self.starts[k], at):]
                if len(later) and later[0] < min(at + length, len(d) - length):
                    at = int(later[0])
            if kind % 2:
                row[1:] = d[at:at + length]
            else:
                row[:] = d[at:at + length + 1]
        return torch.from_numpy(out)


def val_windows(path, length, bos):
    """Return the held-out text in adjacent windows.  Each predicted byte is counted once."""
    data = np.fromfile(path, dtype=np.uint8)
    data = data[data != 0].astype(np.int64)
    if bos:
        n = len(data) // length
        rows = data[:n * length].reshape(n, length)
        rows = np.concatenate([np.zeros((n, 1), np.int64), rows], 1)
    else:
        n = (len(data) - 1) // length
        rows = np.stack([data[i * length:(i + 1) * length + 1] for i in range(n)])
    return torch.from_numpy(rows)


# --------------------------------------------------------------- the model

class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h, self.kv, self.d = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.q_proj = nn.Linear(c["hidden_size"], self.h * self.d, bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], self.kv * self.d, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], self.kv * self.d, bias=False)
        self.o_proj = nn.Linear(self.h * self.d, c["hidden_size"], bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        qkv = F.linear(x, torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight]))
        q, k, v = qkv.view(b, t, self.h + 2 * self.kv, self.d).transpose(1, 2).split([self.h, self.kv, self.kv], 1)

        def rope(z):
            a, e = z.chunk(2, -1)
            return z * cos + torch.cat([-e, a], -1) * sin
        q, k = rope(q), rope(k)
        k = k.repeat_interleave(self.h // self.kv, 1)
        v = v.repeat_interleave(self.h // self.kv, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = MLP(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])


class Llama(nn.Module):
    """Llama with the Hugging Face names, rotate-half rotary embedding and a tied head."""

    def __init__(self, c):
        super().__init__()
        self.model = Body(c)
        freq = c["rope_theta"] ** (-torch.arange(0, c["head_dim"], 2).float() / c["head_dim"])
        angle = torch.outer(torch.arange(c["max_position_embeddings"]).float(), freq)
        angle = torch.cat([angle, angle], -1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if name.endswith("embed_tokens.weight"):
                nn.init.normal_(p, std=c["initializer_range"])
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.5 / math.sqrt(p.shape[1]))
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    p.data /= math.sqrt(2 * c["num_hidden_layers"])

    def forward(self, ids):
        t = ids.shape[1]
        x = self.model.embed_tokens(ids)
        kind = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        cos, sin = self.cos[:t].to(kind), self.sin[:t].to(kind)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight)

    def loss(self, rows):
        logits = self(rows[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


# ------------------------------------------------------- training and export

def export(model, folder):
    from safetensors.torch import save_file
    os.makedirs(folder, exist_ok=True)
    tensors = {k: v.detach().to("cpu", torch.bfloat16).contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, os.path.join(folder, "model.safetensors.new"), metadata={"format": "pt"})
    os.chmod(os.path.join(folder, "model.safetensors.new"), 0o644)
    os.replace(os.path.join(folder, "model.safetensors.new"), os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(CONFIG, f, indent=2)
        f.write("\n")


@torch.no_grad()
def evaluate(loss_fn, rows, device, amp, batch=32):
    """Return the mean loss in nats per byte."""
    total = n = 0
    for i in range(0, len(rows), batch):
        part = rows[i:i + batch].to(device)
        with torch.autocast(device, torch.bfloat16, enabled=amp):
            total += float(loss_fn(part)) * len(part)
        n += len(part)
    return total / n


@torch.no_grad()
def sample(model, count, seed, temperature=0.8, device="cpu"):
    """Return text that the model generates from the BOS alone."""
    gen = torch.Generator().manual_seed(seed)
    ids = [0]
    for _ in range(count):
        logits = model(torch.tensor([ids[-512:]], device=device))[0, -1].float().cpu()
        ids.append(int(torch.multinomial(F.softmax(logits / temperature, -1), 1, generator=gen)))
    return bytes(ids[1:]).decode("ascii", "replace")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description="Train the byte-level model; see the head of the file.")
    ap.add_argument("--out", default=here)
    ap.add_argument("--work", default=None)
    ap.add_argument("--steps", type=int, default=0)
    ap.add_argument("--minutes", type=float, default=0)
    ap.add_argument("--replay", help="losses.tsv of an earlier --minutes run: use its clock instead of this one's")
    ap.add_argument("--batch-tokens", type=int, default=8192)
    ap.add_argument("--long-from", type=float, default=0.6, help="share of the run after which windows are 512 long")
    ap.add_argument("--lr", type=float, default=2.5e-3)
    ap.add_argument("--warmup", type=int, default=100)
    ap.add_argument("--weight-decay", type=float, default=0.1)
    ap.add_argument("--seed", type=int, default=1811)
    ap.add_argument("--threads", type=int, default=0)
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--fp32", action="store_true", help="no bfloat16 autocast")
    ap.add_argument("--compile", action="store_true", help="use torch.compile")
    ap.add_argument("--eval-every", type=int, default=100)
    ap.add_argument("--save-every", type=int, default=200)
    ap.add_argument("--resume", action="store_true", help="go on from the checkpoint in the work folder")
    a = ap.parse_args()
    if not a.steps and not a.minutes:
        ap.error("say --steps or --minutes")
    if a.replay:
        if not a.minutes:
            ap.error("--replay needs the --minutes of the earlier run")
        old = np.loadtxt(a.replay, skiprows=1, usecols=(0, 3), ndmin=2)
        old_steps, old_seconds = np.r_[0, old[:, 0]], np.r_[0, old[:, 1]]
    work = a.work or os.path.join(here, "work")
    os.makedirs(work, exist_ok=True)
    os.makedirs(a.out, exist_ok=True)
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    if not os.path.exists(os.path.join(work, "val.bin")):
        prepare(work, a.seed)
    train = Windows(os.path.join(work, "train.bin"), a.seed)
    val_path = os.path.join(work, "val.bin")
    # 96 windows of 256 for the validation loss during training, half with the BOS and half without
    watch = torch.cat([val_windows(val_path, 256, b)[i::8][:48] for i, b in enumerate((True, False))])

    model = Llama(CONFIG).to(a.device)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {train.bytes} bytes of training text", flush=True)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": matrices, "weight_decay": a.weight_decay},
                             {"params": vectors, "weight_decay": 0.0}],
                            lr=a.lr, betas=(0.9, 0.95), eps=1e-9, fused=True)
    loss_fn = torch.compile(model.loss, dynamic=False) if a.compile else model.loss
    amp = not a.fp32
    step, spent, log, tokens, running = 0, 0.0, [], 0, []
    ckpt = os.path.join(work, "checkpoint.pt")
    if a.resume:
        state = torch.load(ckpt, weights_only=False)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step, spent, log, tokens = state["step"], state["spent"], state["log"], state["tokens"]
        train = state["data"]
    begun = time.time() - spent

    def save_log():
        with open(os.path.join(a.out, "losses.tsv"), "w") as f:
            f.write("step\ttrain_loss\tval_loss\tseconds\tlr\ttokens\n")
            for row in log:
                f.write("{}\t{:.4f}\t{:.4f}\t{:.0f}\t{:.3e}\t{}\n".format(*row))

    while True:
        spent = time.time() - begun
        if a.replay:
            done = 1.0 if step >= old_steps[-1] else \
                min(np.interp(step, old_steps, old_seconds) / (60 * a.minutes), 0.999999)
        else:
            done = step / a.steps if a.steps else spent / (60 * a.minutes)
        if done >= 1:
            break
        length = 512 if done >= a.long_from else 256
        lr = a.lr * min(1.0, (step + 1) / a.warmup) * 0.5 * (1 + math.cos(math.pi * done))
        for g in opt.param_groups:
            g["lr"] = lr
        rows = train.batch(a.batch_tokens // length, length).to(a.device)
        with torch.autocast(a.device, torch.bfloat16, enabled=amp):
            loss = loss_fn(rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        running.append(loss.item())
        step += 1
        tokens += rows.shape[0] * length
        if step % a.eval_every == 0 or step in (1, 20, 50):
            v = evaluate(model.loss, watch, a.device, amp)
            log.append((step, sum(running) / len(running), v, time.time() - begun, lr, tokens))
            running = []
            save_log()
            print("step {} train {:.4f} val {:.4f} {:.0f} s lr {:.2e} tokens {}".format(*log[-1]), flush=True)
        if step % a.save_every == 0:
            state = {"model": model.state_dict(), "opt": opt.state_dict(), "step": step,
                     "spent": time.time() - begun, "log": log, "tokens": tokens, "data": train}
            torch.save(state, ckpt + ".new")
            os.replace(ckpt + ".new", ckpt)
            export(model, os.path.join(work, "latest"))

    export(model, a.out)
    with torch.no_grad():  # evaluate the exported weights: bfloat16, in float32 arithmetic
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16).float())
    if running:
        v = evaluate(model.loss, watch, a.device, False)
        log.append((step, sum(running) / len(running), v, time.time() - begun, lr, tokens))
        save_log()
    print(f"{step} steps, {tokens} tokens, {time.time() - begun:.0f} s", flush=True)
    for length in 256, 512:
        for bos in True, False:
            v = evaluate(model.loss, val_windows(val_path, length, bos), a.device, False)
            print(f"held-out text, windows of {length}, {'with' if bos else 'without'} start mark: "
                  f"{v:.4f} nats/byte, {v / math.log(2):.4f} bits/byte", flush=True)
    for s in 1, 2, 3:
        print(f"--- sample {s}\n" + sample(model, 400, a.seed + s, device=a.device), flush=True)


if __name__ == "__main__":
    main()
