"""eval-generate.py -- Python of tests/eval-generate.t and tests/doors/eval-generate.t"""

import json
import re
import subprocess

import h5py
import numpy as np

from lib.h5 import copied, create, set_config, with_rows

EOS = 4  # of a speaker


def put(path, lines):
    with open(path, "w") as f:
        f.writelines(json.dumps(q) + "\n" for q in lines)


def generate(questions, model, record, *more):
    run = ["eval-generate", "-q", "--questions", questions, model, "-o", record, *more]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    return h5py.File(record)


def texts(f):
    return list(f["question/text"].asstr()[...])


def answers(f):
    """The ids of each answer."""
    return np.split(f["token/id"][...], np.cumsum(f["question/tokens"][...])[:-1])


# --- a model that says given texts: the next byte depends on the position only ---
def speaker(path, says, **config):
    """Says each text, ended by EOS, after a context of as many bytes as starts[i], which are returned."""
    script, starts = b"?", []
    for t in says:
        starts.append(len(script))
        script += t.encode() + bytes([EOS])
    n = len(script) - 1
    bits = 2.0 * np.unpackbits(np.arange(256, dtype="u1")[:, None], axis=1) - 1
    code = np.hstack([bits, -bits]).astype("f4")  # mean 0, square mean 1: the norm keeps it
    with create(path, "model") as f:
        f["config"] = json.dumps(
            dict(
                model_type="gpt2",
                architectures=["GPT2LMHeadModel"],
                vocab_size=256,
                n_embd=16,
                n_head=2,
                n_layer=1,
                n_positions=n,
                bos_token_id=0,
                eos_token_id=EOS,
                tie_word_embeddings=False,
                **config,
            )
        )
        f["lm_head/weight"] = code
        f["transformer/wte/weight"] = np.zeros((256, 16), "f4")
        f["transformer/wpe/weight"] = code[np.frombuffer(script[1:], "u1")]
        h = f.create_group("transformer/h/0")
        for name, out, n in ("attn/c_attn", 48, 16), ("attn/c_proj", 16, 16), ("mlp/c_fc", 64, 16), (
            "mlp/c_proj",
            16,
            64,
        ):
            h[name + "/weight"], h[name + "/bias"] = np.zeros((out, n), "f4"), np.zeros(out, "f4")
        for g in h.require_group("ln_1"), h.require_group("ln_2"), f.create_group("transformer/ln_f"):
            g["weight"], g["bias"] = np.ones(16, "f4"), np.zeros(16, "f4")
    return starts


GSM, COT = ["Question:", "</s>", "<|im_end|>"], ["Q:", "</s>", "<|im_end|>"]
# match, generated text, until, right answer; text of the record, taken by strict and flexible, right by each
CASES = [
    ("gsm8k", " 3 + 4 = 7\n#### 7\n\nQuestion: 8", GSM, "a\n#### 7", " 3 + 4 = 7\n#### 7\n\n", "7", "7", 1, 1),
    ("gsm8k", " #### 5 and #### 6", GSM, "#### 5", None, "5", "6", 1, 0),
    ("gsm8k", " It is $1,234.50.", GSM, "x #### 1234.50", None, "[invalid]", "1234.50", 0, 1),
    ("gsm8k", " #### -12.", GSM, "#### -12", None, "-12", "-12", 1, 1),
    ("gsm8k", " ####12", GSM, "#### 12", None, "[invalid]", "12", 0, 1),
    ("gsm8k", " #### $12", GSM, "#### 12", None, "[invalid]", "12", 0, 1),
    ("gsm8k", " #### 1,000", GSM, "#### 1000", None, "1000", "1000", 1, 1),
    ("gsm8k", " #### 18..", GSM, "#### 18", None, "18.", "18.", 0, 0),
    ("gsm8k", " none", GSM, "[INVALID]", None, "[invalid]", "[invalid]", 1, 1),
    ("gsm8k", "#### 1</s>2", GSM, "1", "#### 1", "1", "1", 1, 1),
    ("gsm8k", "1<|im_end|></s> 2", GSM, "1", "1", "[invalid]", "1", 0, 1),
    ("gsm8k", "so 7, then 8.", GSM, "8", None, "[invalid]", "8", 0, 1),
    ("gsm8k", "so 7 ...", GSM, "7", None, "[invalid]", "..", 0, 0),
    ("gsm8k", "\u0663 #### 4\u00e9", GSM, "\u00e9#### 4", None, "4", "4", 1, 1),
    ("gsm8k", "Question: 1", GSM, "1", "", "[invalid]", "[invalid]", 0, 0),
    ("gsm8k", "", GSM, "1", None, "[invalid]", "[invalid]", 0, 0),
    ("gsm8k-cot", " So 4. The answer is 18.", COT, "a #### 18", None, "18", "18", 1, 1),
    ("gsm8k-cot", " The answer is 18", COT, "1", None, "1", "18", 1, 0),
    ("gsm8k-cot", " The answer is 18. ", COT, "18", None, "18", "18", 1, 1),
    ("gsm8k-cot", " The answer is 18.\nQ: 5", COT, "18", " The answer is 18.\n", "18", "18", 1, 1),
    ("gsm8k-cot", " The answer is 1.\nThe answer is 2.", COT, "2", None, "1", "2", 0, 1),
    ("gsm8k-cot", " The answer is $18.", COT, "18", None, "[invalid]", "18", 0, 1),
    ("exact", " Paris", None, "Paris", None, "Paris", "Paris", 1, 1),
    ("exact", " Paris.", None, "Paris", None, "Paris.", "Paris.", 0, 1),
    ("exact", " Paris.", ["."], " Paris ", " Paris", "Paris", "Paris", 1, 1),
    ("exact", " Paris\u00a0", None, "\u2003Paris", None, "Paris", "Paris", 1, 1),
    ("exact", " paris", None, "Paris", None, "paris", "paris", 0, 0),
    ("exact", "Par", None, "Paris", None, "Par", "Par", 0, 0),
    ("exact", " a b c", [" b"], "a b", " a", "a", "a", 0, 0),
]


def cases():
    starts = speaker("speaker.h5", [c[1] for c in CASES])
    put(
        "cases.jsonl",
        [
            dict(task=c[0], context=" " * s, answer=c[3], match=c[0], **(dict(until=c[2]) if c[2] else {}))
            for c, s in zip(CASES, starts)
        ],
    )
    # EOS, a text, the largest number of ids, the last position
    starts = speaker("ends.h5", ["abcd", "efgh", "i"])
    put(
        "ends.jsonl",
        [
            dict(task="t", context="x" * (s + more), answer="x", match="exact", **until)
            for s, more, until in (
                (starts[0], 0, {}),
                (starts[0], 1, {"until": ["z", "d", "cd"]}),
                (starts[1], 1, {"until": ["fg"]}),
            )
        ],
    )
    speaker("short.h5", ["abcdefgh"])
    put("short.jsonl", [dict(task="t", context="x" * n, answer="h", match="exact") for n in (1, 5, 7)])


def cases_are_right():
    f = h5py.File("cases.h5")
    got = zip(
        texts(f),
        f["question/strict_taken"].asstr()[...],
        f["question/flexible_taken"].asstr()[...],
        f["question/strict"][...],
        f["question/flexible"][...],
    )
    for c, g in zip(CASES, got):
        want = (c[1] if c[4] is None else c[4],) + c[5:]
        assert g == want, (c, g)
    rows = [l.rstrip("\n").split("\t") for l in open("cases.tsv")]
    assert rows[0] == ["task", "questions", "strict", "strict_se", "flexible", "flexible_se"]
    assert [r[0] for r in rows[1:]] == ["gsm8k", "gsm8k-cot", "exact", "all"]
    for r in rows[1:]:
        own = [c for c in CASES if r[0] in (c[0], "all")]
        assert int(r[1]) == len(own)
        for at, k in (2, 7), (4, 8):
            x = np.array([c[k] for c in own])
            se = (x.mean() * (1 - x.mean()) / (len(x) - 1)) ** 0.5
            assert abs(float(r[at]) - x.mean()) < 1e-5 and abs(float(r[at + 1]) - se) < 1e-5, (r, k)
    assert abs(f.attrs["strict"] - np.mean([c[7] for c in CASES])) < 1e-12
    assert f.attrs["ptq_kind"] == "result" and f.attrs["history"].startswith("eval-generate ")
    assert "questions-sha256:" in f.attrs["history"] and "--batch" not in f.attrs["history"]


def ends(path, *want):
    f = h5py.File(path)
    got = [f"{t}:{e}" for t, e in zip(texts(f), f["question/end"][...])]
    assert got == list(want), got


# --- models of the tests, whose ids are bytes ---
MODELS = "llama-gqa mistral-window gpt2 mixtral gemma2 neox-parallel opt qwen3-window".split()


def make(ref):
    r = np.random.default_rng(7)
    for name in MODELS:
        with copied(f"{ref}/{name}.h5", name + ".h5") as f:
            old = json.loads(f["config"][()])["vocab_size"]
            set_config(f, vocab_size=256, bos_token_id=1, eos_token_id=2)
            for n in with_rows(f, old):
                shape = (256,) + f[n].shape[1:]
                del f[n]
                x = r.standard_normal(shape).astype("f4")
                # Texts are ASCII without NUL: logits of the other ids are half as large, or 0. (Equal rows would not
                # do: kernels of BLAS may round columns of a product differently.)
                x[128:] = x[:128] / 2
                x[::128] = 0
                f[n] = x
    words = ["cat", "the dog", "\u00e9t\u00e9", "a", "zebra crossing", "\n", "it is"]
    put(
        "q.jsonl",
        [
            dict(
                task="ba"[i % 2],
                context=" ".join(r.choice(words, int(r.integers(0, 4)))).rstrip(),
                answer="a",
                match="exact",
                until=[str(r.choice(words))],
            )
            for i in range(40)
        ],
    )


def greedy(record, model, questions="q.jsonl"):
    """Each id is the most likely one by a pass of eval-choice over the whole text."""
    f = h5py.File(record)
    q, lines = [json.loads(l) for l in open(questions)], []
    for x, ids, end in zip(q, answers(f), f["question/end"][...]):
        text = bytes(ids.astype("u1")).decode("ascii") + ("\x02" if end == 0 else "")
        if text:
            more = {"images": x["images"]} if x.get("images") else {}
            lines.append(dict(task="t", context=x["context"], choices=[text], gold=0, **more))
    put("g.jsonl", lines)
    subprocess.run(
        ["eval-choice", "-q", "--greedy", "--questions", "g.jsonl", model, "-o", "g.h5"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    exact = h5py.File("g.h5")["question/exact"][...]
    assert len(exact) >= min(len(q), 2) and exact.min() == 1, exact
    assert len({bytes(i) for i in answers(f)}) > 5  # the texts are not all the same


def same_ids(a, b, want):
    a, b = (answers(h5py.File(p)) for p in (a, b))
    assert len(a) == len(b) and all(list(x) == list(y) for x, y in zip(a, b)) == (want == "yes")


def prose():
    """Questions with common examples before them."""
    shots = "He said that the door was open. She looked at it for a long time, and then went out.\n" * 2
    put(
        "shots.jsonl",
        [
            dict(task="t", context=shots + c, answer="x", match="exact", until=["."])
            for c in ("The door was", "She", "\"I am sorry,\" he", "It was not", "One day the king", "No,", "Then") * 4
        ],
    )


def paired():
    a, b = h5py.File("s.h5"), h5py.File("cases.h5")
    rows = [l.rstrip("\n").split("\t") for l in open("p")]
    v = dict(zip(rows[0], rows[-1]))
    assert rows[0][6:] == [f"paired_{s}" for n in ("strict", "flexible") for s in (f"{n}_delta", f"{n}_delta_se")]
    for n in "strict", "flexible":
        d = a["question/" + n][...] - b["question/" + n][...]
        assert (d != 0).any()
        assert abs(float(v[f"paired_{n}_delta"]) - d.mean()) < 1e-5
        assert abs(float(v[f"paired_{n}_delta_se"]) - (d.var() / (len(d) - 1)) ** 0.5) < 1e-5


def as_json():
    v = json.load(open("j"))
    assert [r["task"] for r in v["rows"]] == ["gsm8k", "gsm8k-cot", "exact"] and v["all"]["questions"] == len(CASES)


def generation(path, text):
    """Adds a generation_config.json to a copy of the model."""
    with copied("ends.h5", path) as f:
        f.create_dataset("generation_config", data=text, dtype=h5py.string_dtype())


def nan():
    with copied("llama-gqa.h5", "nan.h5") as f:
        f["model/norm/weight"][...] = 3e38


# --- other programs: tests/doors/eval-generate.t ---
IGNORED = [",", r"\$", r"(?s).*#### ", r"\.$"]


def without(ignored, text):
    for pattern in ignored:
        text = re.sub(pattern, "", text)
    return text


def made_up():
    """100 answers, as a model might write them."""
    r = np.random.default_rng(11)
    numbers = ["7", "-3", "1,234", "$5", "$1,000.50", "0.5", "12.", "3.14.", "$", "..", "0", "-"]
    pieces = [" so ", "####", ".", "\n", " = ", "\u00e9", "\u0663"] + 3 * ["#### ", "The answer is "]
    says, right = [], []
    for _ in range(100):
        n = int(r.integers(1, 6))
        own = [str(r.choice(numbers)) if r.random() < 0.7 else "" for _ in range(n)]
        says.append("".join(str(r.choice(pieces)) + x for x in own))
        answer = str(r.choice(["a\n#### ", "#### ", ""])) + own[int(r.integers(n))]
        right.append(answer if without(IGNORED, answer) else "7")  # empty ones are refused
    starts = speaker("says.h5", says)
    for match in "gsm8k", "gsm8k-cot":
        put(
            match + ".jsonl",
            [dict(task="t", context=" " * s, answer=a, match=match) for s, a in zip(starts, right)],
        )
    json.dump([says, right], open("says.json", "w"))


def harness(match):
    """Marks of lm-evaluation-harness, by its own code and settings, and ours."""
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters.extraction import RegexFilter

    says, right = json.load(open("says.json"))
    strict = r"#### (\-?[0-9\.\,]+)" if match == "gsm8k" else r"The answer is (\-?[0-9\.\,]+)."
    filters = dict(
        strict=RegexFilter(strict), flexible=RegexFilter(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", group_select=-1)
    )
    f = h5py.File(match + ".h5")
    assert texts(f) == says
    for name, x in filters.items():
        taken = [y[0] for y in x.apply([[s] for s in says], None)]
        want = [
            exact_match_hf_evaluate(
                predictions=[t],
                references=[a],
                regexes_to_ignore=IGNORED,
                ignore_case=True,
            )["exact_match"]
            for t, a in zip(taken, right)
        ]
        got = f["question/" + name][...]
        assert (got == want).all(), [
            (s, a, t, g) for s, a, t, g, w in zip(says, right, taken, got, want) if g != w
        ]
        assert 3 < sum(want) < 80, (match, name, sum(want))
        taken = [without(IGNORED, t).lower() for t in taken]
        assert list(f[f"question/{name}_taken"].asstr()[...]) == taken
    return "yes"


def contexts(text, n, longest):
    """Pieces of a text of various lengths."""
    r, t = np.random.default_rng(3), open(text, encoding="utf-8").read()
    lines = []
    for _ in range(int(n)):
        size = min(int(r.choice([5, 20, 60, 150, 400, 1000, 2500])), len(t) - 1, int(longest))
        at = int(r.integers(0, len(t) - size))
        lines.append(dict(task="t", context=t[at : at + size], answer="x", match="exact"))
    put("contexts.jsonl", lines)


def transformers(folder, record, new, bound):
    """The ids of greedy decoding by transformers, in float32. A difference must be a near tie of two logits."""
    import torch
    import transformers as peer

    peer.logging.set_verbosity_error()
    peer.logging.disable_progress_bar()
    m = peer.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = peer.AutoTokenizer.from_pretrained(folder)
    ties, total, end = [], 0, m.generation_config.eos_token_id
    end = [end] if isinstance(end, int) else end
    for line, own in zip(open("contexts.jsonl"), answers(h5py.File(record))):
        x = tokenizer(json.loads(line)["context"], return_tensors="pt").input_ids
        with torch.no_grad():
            y = m.generate(x, attention_mask=torch.ones_like(x), do_sample=False, max_new_tokens=int(new))[0]
        y = [i for i in y[x.shape[1] :].tolist() if i not in end]
        own = own.tolist()
        total += len(own)
        if own == y:
            continue
        k = next((k for k, (a, b) in enumerate(zip(own, y)) if a != b), min(len(own), len(y)))
        with torch.no_grad():
            logits = m(torch.cat([x, torch.tensor([y[:k]], dtype=x.dtype)], 1)).logits[0, -1]
        two = [a[k] if k < len(a) else end[0] for a in (own, y)]
        ties.append(abs(float(logits[two[0]] - logits[two[1]])))
    assert all(t < float(bound) for t in ties), ties
    return f"{total} ids, {len(ties)} near ties{': gaps of logits ' if ties else ''}" + ", ".join(
        f"{t:.1e}" for t in ties
    )
