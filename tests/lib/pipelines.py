"""pipelines.py -- Python of tests/pipelines.t"""

import json

import h5py
import numpy as np

from lib.h5 import copied, create


def make():
    for seed, name in enumerate(["test it.h5", "calibrate it.h5"]):
        with create(name, "tokens") as f:
            d = f.create_dataset("tokens", data=np.random.default_rng(seed).integers(3, 60, 1200).astype("i4"))
            d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61


def more_inputs():
    r = np.random.default_rng(1)
    with copied("my model.h5", "wide model.h5") as f:
        c = json.loads(f["config"][()])
        c["intermediate_size"] = 64
        del f["config"]
        f["config"] = json.dumps(c)
        for g in (f["model/layers"][i]["mlp"] for i in f["model/layers"]):
            for name, shape in ("gate_proj", (64, 32)), ("up_proj", (64, 32)), ("down_proj", (32, 64)):
                del g[name]["weight"]
                g[name]["weight"] = r.standard_normal(shape).astype("f4") / 6


def questions(path, seed, n):
    r = np.random.default_rng(seed)
    with open(path, "w") as f:
        for i in range(n):
            shots = [f"shots/a picture, {k}.ppm" for k in r.integers(0, 4, (2, 1, 0)[i % 3])]
            text = "".join("\u00e9: <image>\n" for _ in shots) + 'what "is" it?'
            f.write(
                json.dumps(
                    dict(
                        task=("glyph", "other", "many")[i % 3],
                        context=text,
                        choices=[" " + "abcd"[k] for k in r.permutation(4)],
                        gold=int(r.integers(0, 4)),
                        images=shots,
                    )
                )
                + "\n"
            )


def vision_model(ref):
    r = np.random.default_rng(3)
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte, n = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in byte:
            byte[b], n = chr(256 + n), n + 1
    special = lambda i, t: dict(
        id=i, content=t, special=True, normalized=False, lstrip=False, rstrip=False, single_word=False
    )
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)
    tokenizer = dict(
        version="1.0",
        added_tokens=[special(256, "<image>"), special(257, "<s>")],
        normalizer=None,
        pre_tokenizer=level,
        post_processor=None,
        decoder=level,
        model=dict(type="BPE", vocab={byte[b]: b for b in range(256)}, merges=[], unk_token=None),
    )
    for kind, name in ("post", "llava-postnorm"), ("pre", "vipllava"):
        with h5py.File(f"{ref}/{name}.h5") as f, h5py.File(f"eyes/data/vlm-{kind}", "w") as g:
            for a in "ptq_kind", "ptq_version", "history":
                g.attrs[a] = f.attrs[a]
            c = json.loads(f["config"][()])
            c["text_config"].update(vocab_size=258, bos_token_id=257)
            c["image_token_index"] = 256
            g["config"], g["tokenizer"] = json.dumps(c), json.dumps(tokenizer)
            for m in f:
                if m not in ("config", "test", "tokens") and not m.startswith("image"):
                    f.copy(m, g)
            one = []  # norms of what is added to the stream: a rotation takes one gain for all channels
            g.visititems(
                lambda n, d: (
                    one.append(n)
                    if n.endswith("pre_layrnorm/weight")
                    or kind == "post"
                    and "/layer_norm" in n
                    and n.endswith("/weight")
                    else None
                )
            )
            for n in one:
                g[n][...] = 0.75
            for m in "model/embed_tokens/weight", "lm_head/weight":
                if m in g:
                    shape = (258,) + g[m].shape[1:]
                    del g[m]
                    g[m] = (0.3 * r.standard_normal(shape)).astype("f4")
            images = [f[f"images/{i}"][()] for i in range(4)]
    for i, a in enumerate(images):
        open(f"eyes/data/vlm/shots/a picture, {i}.ppm", "wb").write(b"P6 %d %d 255\n" % a.shape[1::-1] + a.tobytes())

    questions("eyes/data/vlm/questions.jsonl", 1, 6)
    questions("eyes/data/vlm/calibration.jsonl", 2, 3)


def drawn(draw):
    """The questions, or those of a draw by the generator of Lewis, Goodman and Miller."""
    q, state = [json.loads(line) for line in open("eyes/data/vlm/questions.jsonl")], 1
    if draw is None:
        return q
    at = []
    for _ in range((draw + 1) * len(q) + 1):
        state = 16807 * state % (2**31 - 1)
        at.append(state * len(q) // (2**31 - 1))
    return [q[i] for i in at[draw * len(q) + 1 :]]


def right_answers(draw=None):
    want = [(q["context"] + q["choices"][q["gold"]]).encode() + b"\0" for q in drawn(draw and int(draw))]
    assert open("texts", "rb").read() == b"".join(want)
    assert open("names").read().splitlines() == sum((q["images"] for q in drawn(draw and int(draw))), [])


def draws_differ():
    n, draws = len(drawn(None)), [[q["context"] for q in drawn(k)] for k in range(3)]
    assert draws[0] != draws[1] != draws[2] != draws[0] and all(1 < len(set(d)) for d in draws)
    assert all(len(d) == n for d in draws)
