"""eval-choice.py -- Python of tests/eval-choice.t"""

import json
import shutil
import subprocess

import h5py
import numpy as np

from lib.h5 import copied, create, read, with_rows


def question(task, context, choices, gold, **more):
    return dict(task=task, context=context, choices=choices, gold=gold, **more)


def put(path, lines):
    open(path, "w").write("".join(l if isinstance(l, str) else json.dumps(l) + "\n" for l in lines))


def make(ref):
    r = np.random.default_rng(5)

    def change(path, source, edit=None, **config):  # a model with byte tokens
        with copied(source, path) as f:
            c = json.loads(f["config"][()])
            old = c["vocab_size"]
            c.update({"vocab_size": 256, **config})
            del f["config"]
            f.create_dataset("config", data=json.dumps(c), dtype=h5py.string_dtype())
            for n in with_rows(f, old):
                shape = (256,) + f[n].shape[1:]
                del f[n]
                f[n] = r.standard_normal(shape).astype("f4")
            if edit:
                edit(f)

    for name in "llama-gqa", "mistral-window", "gpt2":
        change(name + ".h5", f"{ref}/{name}.h5", bos_token_id=1)
    shutil.copy(f"{ref}/llama-gqa.h5", "few.h5")
    change("nan.h5", "llama-gqa.h5", lambda f: f["model/norm/weight"].__setitem__(Ellipsis, 3e38))
    words = ["cat", "the dog", "\u00e9t\u00e9", "a", " b ", "zebra crossing", "x" * 9, "\n", "it is"]

    q = []
    for i in range(40):
        n = int(r.integers(1, 6))
        context = " ".join(r.choice(words, int(r.integers(0, 4)))) + ("", " ", "  \n")[i % 3]
        q.append(
            question(
                ("b", "a", "c")[i % 3],
                context,
                [str(w) for w in r.choice(words, n, replace=False)],
                int(r.integers(0, n)),
            )
        )
    put("q.jsonl", q)
    put("half.jsonl", q[:20])
    put("blank.jsonl", ["\n"] + q[:7] + ["  \n\n"] + q[7:] + ["\n"])
    put("other.jsonl", q[1:] + q[:1])
    open("end.jsonl", "w").write(json.dumps(q[0]))
    put("single.jsonl", [question("s", "ab", ["c", "d"], 0)])


def alone(record, model, questions, add, encode):
    """Compares the likelihoods of a record with eval-ppl on each context and choice as a separate text."""
    add = int(add)

    def ids(text):
        if encode == "bytes":
            return list(text.encode())
        if not text:
            return []
        open("text", "w").write(text)
        subprocess.run(["tokenize", "-q", "--model", encode, "text", "-o", "ids.h5"], check=True)
        return list(read("ids.h5", "tokens"))

    text, sequence, count = [], [0], []
    for line in open(questions):
        if not line.strip():
            continue
        q = json.loads(line)
        context = q["context"].rstrip(" \t\n\v\f\r")
        n = len(ids(context))
        for c in q["choices"]:
            whole = ids(context + q["context"][len(context) :] + c)
            text += ids(context) + whole[n:]
            sequence.append(len(text))
            count.append(len(whole) - n)
    config = json.loads(h5py.File(model)["config"][()])
    with create("t.h5", "tokens") as f:
        f["tokens"] = np.array(text, "i4")
        f["sequence"] = np.array(sequence)
        f["tokens"].attrs.update(bos_id=config["bos_token_id"], add_bos=add, vocab=config["vocab_size"])
    subprocess.run(
        ["eval-ppl", "-q", "--tokens", "t.h5", "--ctx", "64", model, "-o", "p.h5"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    p, r = h5py.File("p.h5"), h5py.File(record)
    ends = np.cumsum(np.diff(sequence) - 1 + add)
    assert ends[-1] == len(p["target"])
    want = np.array([-p["nll_of_target"][e - n : e].sum() for e, n in zip(ends, count)])
    worst = (np.abs(want - r["choice/log_likelihood"][...]) / np.maximum(1, -want)).max()
    assert (r["choice/tokens"][...] == count).all() and worst < 1e-5, worst


def printed():
    q = [json.loads(l) for l in open("q.jsonl")]
    f = h5py.File("r.h5")
    p, exact = f["choice/log_likelihood"][...], read("g.h5", "question/exact")
    at, acc, norm, by_bytes, other = 0, [], [], [], False
    for i, x in enumerate(q):
        n = len(x["choices"])
        v = p[at : at + n]
        words = [c[1:] if len(c) > 1 and c[0] == " " else c for c in x["choices"]]
        size = np.array([len(c) for c in words]), np.array([len(c.encode()) for c in words])
        assert (f["choice/question"][at : at + n] == i).all()
        assert (f["choice/characters"][at : at + n] == size[0]).all()
        assert (f["choice/bytes"][at : at + n] == size[1]).all()
        assert (
            f["question/answer"][i] == v.argmax()
            and f["question/answer_norm"][i] == (v / size[0]).argmax()
            and f["question/answer_bytes"][i] == (v / size[1]).argmax()
            and f["question/gold"][i] == x["gold"]
        )
        right = n > 1 or exact[i]
        acc.append(right and v.argmax() == x["gold"])
        norm.append(right and (v / size[0]).argmax() == x["gold"])
        by_bytes.append(right and (v / size[1]).argmax() == x["gold"])
        other |= norm[-1] != by_bytes[-1]
        at += n
    assert at == len(p) and (f["question/acc"][...] == acc).all() and (f["question/acc_norm"][...] == norm).all()
    assert (f["question/acc_bytes"][...] == by_bytes).all() and other
    rows = [l.rstrip("\n").split("\t") for l in open("a")]
    assert rows[0] == ["task", "questions"] + [
        m + e for m in ("acc", "acc_norm", "acc_bytes") for e in ("", "_se")
    ]
    assert [r[0] for r in rows[1:]] == ["b", "a", "c", "all"]
    task = np.array([x["task"] for x in q])
    assert list(f["question/task"].asstr()[...]) == list(task)
    for k, r in enumerate(rows[1:]):
        at = np.ones(40, bool) if r[0] == "all" else task == r[0]
        n = at.sum()
        assert int(r[1]) == n
        for c, x in ((2, np.array(acc)[at]), (4, np.array(norm)[at]), (6, np.array(by_bytes)[at])):
            se = (x.mean() * (1 - x.mean()) / (n - 1)) ** 0.5
            assert abs(float(r[c]) - x.mean()) < 1e-5 and abs(float(r[c + 1]) - se) < 1e-5
            if r[0] == "all":
                assert abs(f.attrs[rows[0][c]] - x.mean()) < 1e-12
            else:
                assert abs(f[rows[0][c]][k] - x.mean()) < 1e-12
    assert 0 < np.mean(acc) < 1 and f.attrs["ptq_kind"] == "result" and f.attrs["history"].startswith("eval-choice ")


def measure(questions, *more):
    with open("g.jsonl", "w") as f:
        f.writelines(json.dumps(q) + "\n" for q in questions)
    subprocess.run(
        ["eval-choice", "-q", "--questions", "g.jsonl", "prose.h5", "-o", "g.h5", *more],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return h5py.File("g.h5")["question"]


def greedy():
    letters = ["\n"] + [chr(i) for i in range(32, 127)]
    contexts = ["The door was", "He said that", "\"I am sorry,\" she"]
    texts = [""] * 3
    for _ in range(3):
        a = measure([dict(task="t", context=c + t, choices=letters, gold=0) for c, t in zip(contexts, texts)])[
            "answer"
        ][...]
        texts = [t + letters[i] for t, i in zip(texts, a)]
    assert not any(t != t.rstrip() for t in texts), texts
    q = [
        dict(task="t", context=c, choices=[t, t[:2], t[:2] + "~", t[:2] + "~" + t[2:]], gold=g)
        for c, t in zip(contexts, texts)
        for g in range(4)
    ]
    exact = list(measure(q, "--greedy")["exact"][...])
    assert exact == [1, 1, 0, 0] * 3, exact
    one = [dict(x, choices=[x["choices"][x["gold"]]], gold=0) for x in q]
    for mark in "acc", "acc_norm", "acc_bytes":
        assert list(measure(one)[mark][...]) == exact, mark
    q = [dict(x, choices=[t[:2] for t in x["choices"]], gold=0) for x in q[::4]]
    for until, want in zip((texts[0][2], texts[1][2]), (0, 1)):
        exact = list(measure(q, "--greedy", "--until", until)["exact"][...])
        assert exact == [t[2] == until for t in texts], exact
        assert exact[want] == 1
    open("greedy", "w").write("yes")


def paired():
    a, b = h5py.File("s.h5"), h5py.File("r.h5")
    rows = [l.rstrip("\n").split("\t") for l in open("p")]
    v = dict(zip(rows[0], rows[-1]))
    assert rows[0][8:] == [
        "paired_" + s + e for s in ("acc_delta", "acc_norm_delta", "acc_bytes_delta", "same") for e in ("", "_se")
    ]
    any_other = False
    for n in "acc", "acc_norm", "acc_bytes":
        d = a["question/" + n][...] - b["question/" + n][...]
        assert (
            abs(float(v["paired_" + n + "_delta"]) - d.mean()) < 1e-6
            and abs(float(v["paired_" + n + "_delta_se"]) - (d.var() / 39) ** 0.5) < 1e-6
        )
        any_other |= (d != 0).any()
    same = a["question/answer"][...] == b["question/answer"][...]
    assert (
        any_other
        and 0 < same.mean() < 1
        and abs(float(v["paired_same"]) - same.mean()) < 1e-6
        and abs(float(v["paired_same_se"]) - (same.var() / 39) ** 0.5) < 1e-6
    )


def reference():
    k, s, r = h5py.File("k.h5"), h5py.File("s.h5"), h5py.File("r.h5")
    n = "choice/log_likelihood"
    assert (k[n][...] == s[n][...]).all() and (k[n + "_of_reference"][...] == r[n][...]).all()
    assert (
        k["question/agreement"][...] == (s["question/answer"][...] == r["question/answer"][...])
    ).all() and 0 < k.attrs["agreement"] < 1
    assert k["question/kl"][...].min() > 0 and abs(k.attrs["kl"] - k["question/kl"][...].mean()) < 1e-12
    rows = [l.rstrip("\n").split("\t") for l in open("k")]
    marks = "acc", "acc_norm", "acc_bytes", "exact", "kl", "agreement"
    assert rows[0][2:] == [m + e for m in marks for e in ("", "_se")]


def older(record="r.h5"):
    """The record as before acc_norm was by characters."""
    shutil.copy(record, "old.h5")
    with h5py.File("old.h5", "r+") as f:
        f["question/acc_norm"][...] = f["question/acc_bytes"][...]
        f["question/answer_norm"][...] = f["question/answer_bytes"][...]
        for n in "question/acc_bytes", "question/answer_bytes", "choice/characters":
            del f[n]


def contexts():
    """several.jsonl: a context for each choice; single.jsonl: a question for each choice of it."""
    q = [
        dict(task="w", contexts=["the dog saw a", "the cat saw a"], choices=[" ball"], gold=1),
        dict(task="w", context="it is", choices=[" one", " two", " three"], gold=0),
        dict(task="w", contexts=["one ", "two\u3000\u00a0", "x"], choices=["ab", "\u00e9", "c"], gold=2),
        dict(task="w", contexts=["a"], choices=["b"], gold=0),
    ]
    put("several.jsonl", q)
    each = []
    for x in q:
        pairs = [(c, t) for c in x.get("contexts", [x.get("context")]) for t in x["choices"]]
        if len(x["choices"]) > 1 and "contexts" in x:
            pairs = list(zip(x["contexts"], x["choices"]))
        each += [question("w", c, [t], 0) for c, t in pairs]
    put("single.jsonl", each)


def same_contexts():
    a, b = h5py.File("several.h5"), h5py.File("each.h5")
    n = "choice/log_likelihood"
    assert (np.abs(a[n][...] - b[n][...]) <= 1e-5 * np.abs(b[n][...])).all() and len(a[n]) == 9
    assert (a["choice/question"][...] == [0, 0, 1, 1, 1, 2, 2, 2, 3]).all()
    assert (a["choice/tokens"][...] == b["choice/tokens"][...]).all()
    first, gold = [0, 2, 5, 8], [1, 0, 2, 0]
    assert (a["question/exact"][...] == [b["question/exact"][f + g] for f, g in zip(first, gold)]).all()


def one_token():
    json.dump(dict(task="t", context="ab", choices=[chr(i) for i in range(1, 128)], gold=0), open("one.jsonl", "w"))


def divergence():
    f = h5py.File("o.h5")
    with create("t.h5", "tokens") as t:
        t["tokens"] = np.array([97, 98, 99], "i4")
        t["tokens"].attrs.update(bos_id=1, add_bos=1, vocab=256)
    subprocess.run(
        "eval-ppl -q --tokens t.h5 --ctx 4 rtn.h5 --reference llama-gqa.h5 -o p.h5",
        shell=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    x, y = h5py.File("p.h5")["kl"][2], f["question/kl"][0]
    assert abs(x - y) < 1e-5 * max(1, x) and x > 0.01, (x, y)


def as_json():
    v = json.load(open("j"))
    assert [r["task"] for r in v["rows"]] == ["b", "a", "c"] and v["all"]["questions"] == 40


def alike(a, b):
    a, b = (read(path, "choice/log_likelihood") for path in (a, b))
    assert np.allclose(a, b, rtol=1e-5), (a, b)
    print("alike")


def nan(record, path, to):
    """The record with a NaN; without acc_bytes, as version 1.0 wrote it, if it is a likelihood."""
    with copied(record, to) as f:
        f[path][1] = np.nan
        if path.startswith("choice"):
            del f["question/acc_bytes"]


def equal():
    """Questions whose first choices are equal, more than the rows that are multiplied at once."""
    put("equal.jsonl", [question("t", "Once upon", n * [" a"], n - 1) for n in (2, 3, 20, 600)])


def options():
    """A sentence with two contexts: up to the blank, with either option."""
    x, = (json.loads(line) for line in open("winogrande.jsonl"))
    expected = dict(task="winogrande", contexts=["An Option2", "An b c"], choices=[" is\n it."], gold=1)
    assert {k: x[k] for k in expected} == expected, x


def items(task):
    prompt = dict(arc_easy="Question: %s\nAnswer:", openbookqa="%s")[task]
    texts = [' a 5 \u00e9', ' it is Answer 3'], [' w', ' x', ' y']
    a, b = (json.loads(line) for line in open(task + ".jsonl"))
    for x, question, choices, gold in (a, 'Is it "a" or b?', texts[0], 1), (b, "Which", texts[1], 0):
        expected = dict(task=task, context=prompt % question, choices=choices, gold=gold)
        assert {k: x[k] for k in expected} == expected, x
