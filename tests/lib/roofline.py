"""roofline.py -- Python of tests/roofline.t"""

import json
import os
import sys

import h5py


def plain():
    M = {
        "llama-2-7b": (32, 4096, 32, 32, 11008, 32000),
        "llama-2-70b": (80, 8192, 64, 8, 28672, 32000),
        "llama-3.1-8b": (32, 4096, 32, 8, 14336, 128256),
        "llama-3.1-70b": (80, 8192, 64, 8, 28672, 128256),
        "qwen2-7b": (28, 3584, 28, 4, 18944, 152064),
        "qwen2-72b": (80, 8192, 64, 8, 29568, 152064),
    }
    H = {
        "gaudi2": (96, 2.45, 432, 865),
        "gaudi3": (128, 3.7, 1835, 1835),
        "h100": (80, 3.35, 989, 1979),
        "h200": (141, 4.8, 989, 1979),
    }

    def project(model, on, f, n, m, group, kv_bits):
        blocks, d, heads, kv_heads, inner, vocab = M[model]
        gb, tb, t16, t8 = H[on]
        b, a = map(int, f.upper()[1:].split("A"))
        hd = 128
        rate = (t8 if a == 8 else t16) * 1e12
        matrices = [
            (heads * hd, d),
            (kv_heads * hd, d),
            (kv_heads * hd, d),
            (d, heads * hd),
            (inner, d),
            (inner, d),
            (d, inner),
        ]
        bits = 0
        for _ in range(blocks):
            for o, i in matrices:
                bits += o * i * b + (o * i / group * (16 + b) if b < 8 else 0)
        once = bits / 8 + 2 * vocab * d
        stored = once + 2 * vocab * d
        token = sum(hd * kv_heads * (kv_bits or a) / 8 * 2 for _ in range(blocks))
        batch = int((gb * 1e9 - stored) // ((n + m) * token)) if stored < gb * 1e9 else 0
        if not batch:
            return 0, stored, 0, 0, 0, 0

        def tokens(
            first, last
        ):  # operations of the tokens of one sequence at these places, from 1; each attends to all up to its place
            return sum(
                sum(2 * o * i for o, i in matrices) * blocks + blocks * heads * 2 * (2 * hd * p)
                for p in range(first, last + 1)
            )

        def head():
            return 2 * vocab * d * batch / (t16 * 1e12)

        pre = max(batch * tokens(1, n) / rate + head(), (once + n * token * batch) / (tb * 1e12))
        dec, bound = 0, 0
        for c in range(n + 1, n + m):
            x, y = batch * tokens(c, c) / rate + head(), (once + c * token * batch) / (tb * 1e12)
            dec += max(x, y)
            bound += y > x
        return batch, stored, pre, dec, bound / (m - 1) if m > 1 else float("nan"), batch * m / (pre + dec)

    rows, first, seen, part = 0, None, set(), 0
    for line in open("table"):
        if line.startswith("model\t"):
            part += 1
            continue
        model, on, f, *v = line.rstrip("\n").split("\t")
        n, m = int(v[0]), int(v[1])
        got = [float("nan" if x == "-" else x) for x in v[2:]]
        want = project(model, on, f, n, m, *((128, 0) if part == 1 else (32, 4)))
        if f == "W4A16":
            first = want[-1]
        want = [want[0], want[1] / 1e9, *want[2:], want[-1] / first if first else float("nan")]
        for x, y in zip(got, want):
            assert abs(x - y) <= 1e-5 * abs(y) or x != x and y != y, (line, want)
        rows += 1
        seen.add(want[0] == 0)
    assert rows == 6 * 4 * 9 * 8 and seen == {True, False}, rows


def make():
    os.mkdir("hf")
    json.dump(
        dict(
            architectures=["LlamaForCausalLM"],
            model_type="llama",
            hidden_size=8192,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=8,
            intermediate_size=28672,
            vocab_size=32000,
            tie_word_embeddings=False,
        ),
        open("hf/config.json", "w"),
    )


def folders():
    text = json.load(open("hf/config.json"))
    os.mkdir("sees")
    vision = dict(
        model_type="clip_vision_model",
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        image_size=336,
        patch_size=14,
    )
    json.dump(
        dict(model_type="llava", image_token_index=1, text_config=text, vision_config=vision),
        open("sees/config.json", "w"),
    )


def file_sizes():
    rows = [l.split("\t") for l in open("own").read().splitlines()[1:]]
    want = [8 * (256 * 256 * 2 + 256 * 128 * 2 + 3 * 256 * 768) + 256 * 256, 2 * (4 * 32 * 32 + 2 * 32 * 128) + 61 * 32]
    batch = [(96e9 - 2 * want[0]) // (128 * 2 * 8 * 128 * 2), (96e9 - 2 * want[1]) // (128 * 2 * 2 * 32 * 2)]
    for r, w, b in zip(rows, want, batch):
        assert abs(float(r[6]) - 2e-9 * w) < 1e-5 * float(r[6]) and float(r[5]) == b, (r, w, b)


def record():
    f = h5py.File("r.h5")
    lines = [l.split("\t") for l in open("text").read().splitlines()]
    assert f.attrs["ptq_kind"] == "result" and sorted(f) == sorted(lines[0]) and f["batch"].dtype.kind == "i"
    for i, c in enumerate(lines[0]):
        got = [x.decode() if isinstance(x, bytes) else x for x in f[c][...]]
        for g, l in zip(got, lines[1:]):
            assert g == l[i] if isinstance(g, str) else abs(g - float(l[i])) <= 1e-5 * abs(g), (c, g, l)


def three_rows():
    rows = json.load(sys.stdin)["rows"]
    assert len(rows) == 3 and rows[0]["batch"] == 88
