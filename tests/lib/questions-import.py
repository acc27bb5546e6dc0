"""questions-import.py -- Python of tests/questions-import.t and tests/doors/questions-import.t"""

import json
import math
import os
import random
import re

WORDS = (
    "A man the Roof it's water [step] [substeps] [title] [header] [an open\nbracket] [] ] [ Wash your hands. two  "
    "blanks three   blanks  Élan ΟΔΟΣ straße ﬁn ǆ 水 光合作用 50% 3,000 $5 \"quoted\" \\n {braces} {{ {% x %} é\u0301 "
    "\u00a0 \u3000 _ ? ! . :"
).split(" ")


def put(path, rows):
    with open(path, "w") as f:
        f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)


def lines(path):
    return [json.loads(l) for l in open(path)]


def texts(r, n=1, least=1):
    """n different texts of words."""
    y = []
    while len(y) < n:
        t = " ".join(r.choice(WORDS) for _ in range(r.randint(least, 9)))
        if t.strip() and t not in y:
            y.append(t)
    return y if n > 1 else y[0]


def labelled(r):
    n = r.randint(3, 5)
    label = r.choice(("ABCDE", "12345"))[:n]
    return dict(text=texts(r, n), label=list(label)), r.choice(label)


def arc(r, question="question"):
    choices, key = labelled(r)
    return {question: texts(r), "choices": choices, "answerKey": key}


def hellaswag(r):
    while True:
        doc = dict(activity_label=texts(r), ctx_a=texts(r), ctx_b=texts(r), endings=texts(r, 4))
        doc["label"] = str(r.randrange(4))
        clean = [re.sub(r"\[.*?\]", "", t.strip().replace(" [title]", ". ")).strip() for t in doc["endings"]]
        if all(clean) and len({c.replace("  ", " ") for c in clean}) == 4:
            return doc


def winogrande(r):
    a, b = texts(r, 2)
    sentence = f"{r.choice(WORDS)} {r.choice(WORDS).replace('_', '')} _ {texts(r)} end"
    return dict(sentence=sentence, option1=a, option2=b, answer=r.choice("12"))


def letters(r, subject=None):
    doc = dict(question=f"{r.choice(('', ' ', chr(10), chr(0x3000)))}{texts(r)} ", answer=r.randrange(4))
    doc["choices"] = texts(r, 4)
    return dict(doc, subject=subject)


def ceval(r, subject=None):
    doc = dict(question=f" {texts(r)}\n", answer=r.choice("ABCD"), **dict(zip("ABCD", texts(r, 4))))
    return dict(doc, subject=subject)


def gsm8k(r):
    return dict(question=texts(r), answer=f"{texts(r)}\n#### {r.randint(0, 9999):,}")


# name: file of the harness, split of the items, items, examples in a prompt
TASKS = {
    "arc_easy": ("arc/arc_easy", "test", arc, 0),
    "arc_challenge": ("arc/arc_challenge", "test", arc, 0),
    "hellaswag": ("hellaswag/hellaswag", "validation", hellaswag, 0),
    "piqa": (
        "piqa/piqa",
        "validation",
        lambda r: dict(zip(("sol1", "sol2"), texts(r, 2)), goal=texts(r), label=r.randrange(2)),
        0,
    ),
    "winogrande": ("winogrande/default", "validation", winogrande, 0),
    "boolq": (
        "super_glue/boolq/default",
        "validation",
        lambda r: dict(passage=texts(r), question=texts(r), label=r.randrange(2)),
        0,
    ),
    "openbookqa": ("openbookqa/openbookqa", "test", lambda r: arc(r, "question_stem"), 0),
    "lambada": ("lambada/lambada_openai", "test", lambda r: dict(text=texts(r, 1, 2) + " last"), 0),
    "mmlu": ("mmlu/default", "test", letters, 5),
    "ceval": ("ceval", "val", ceval, 5),
    "gsm8k": ("gsm8k/gsm8k", "test", gsm8k, 5),
    "gsm8k_cot": ("gsm8k/gsm8k-cot", "test", gsm8k, 8),
}


def harness_task(path, splits):
    """A task of the harness with the items in place of its data set."""
    import logging

    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks._yaml_loader import load_yaml

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    config = load_yaml(path)
    if config.get("fewshot_split") and "fewshot_config" not in config:
        config["fewshot_config"] = {"sampler": "first_n"}
    config["custom_dataset"] = lambda **_: {k: Dataset.from_list(v) for k, v in splits.items()}
    config.setdefault("metadata", {})
    return ConfigurableTask(config=config)


def harness_question(task, name, doc, examples):
    """The question that the harness makes of an item, in the form of questions-import."""
    context = task.fewshot_context(doc, examples)
    requests = task.construct_requests(doc, context)
    if task.OUTPUT_TYPE == "generate_until":
        context, how = requests.args
        match = name.replace("_", "-")
        return dict(task=name, context=context, answer=task.doc_to_target(doc), match=match, until=how["until"])
    if task.OUTPUT_TYPE == "loglikelihood":
        return dict(task=name, context=requests.args[0], choices=[requests.args[1]], gold=0)
    gold = int(task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc))
    if task.multiple_input:
        assert len({q.args[1] for q in requests}) == 1
        return dict(
            task=name, contexts=[q.args[0] for q in requests], choices=[requests[0].args[1]], gold=gold
        )
    assert len({q.args[0] for q in requests}) == 1
    return dict(task=name, context=requests[0].args[0], choices=[q.args[1] for q in requests], gold=gold)


def docs_of(task):
    return list(task.test_docs() or task.validation_docs())


def harness(count):
    """Items of every task, and the harness's questions: NAME.jsonl, NAME-examples.jsonl, NAME-want.jsonl."""
    import lm_eval

    top, r = os.path.dirname(lm_eval.__file__) + "/tasks/", random.Random(1)
    for name, (path, split, make, examples) in TASKS.items():
        items, shots, want = [], [], []
        files = [path + ".yaml"]
        if name in ("mmlu", "ceval"):
            subjects = [f for f in sorted(os.listdir(top + path)) if re.match(r"(mmlu|ceval-valid)_.*\.yaml$", f)]
            files = [f"{path}/{f}" for f in subjects]
        for f in files:
            extra = {}
            text = open(top + f).read()
            if name == "mmlu":
                extra = dict(subject=re.search(r'"dataset_name": "(.*)"', text).group(1))
            if name == "ceval":
                extra = dict(subject=re.search(r"中国关于(.*)的单项选择题", text).group(1))
            mine = [make(r, **extra) for _ in range(2 if extra else int(count))]
            dev = [make(r, **extra) for _ in range(examples + 2)]
            if name == "gsm8k_cot":  # the harness has the examples in its own file
                from lm_eval.tasks._yaml_loader import load_yaml

                dev = load_yaml(top + f)["fewshot_config"]["samples"]
            task = harness_task(top + f, {split: mine, "dev": dev, "train": dev, "validation": mine})
            label = f"{name}_{extra['subject']}" if extra else name
            want += [harness_question(task, label, doc, examples) for doc in docs_of(task)]
            items += mine
            shots += dev
        put(name + ".jsonl", items)
        put(name + "-examples.jsonl", shots)
        put(name + "-want.jsonl", want)
        print(name, examples)


def compare(name):
    """The number of equal questions, or the first difference."""
    ours, want = lines(name + "-ours.jsonl"), lines(name + "-want.jsonl")
    for i, (a, b) in enumerate(zip(ours, want)):
        if a != b:
            return f"question {i}: {a} is not {b}"
    return f"equal {len(want)}" if len(ours) == len(want) else f"{len(ours)} questions, not {len(want)}"


def real(name, path, count):
    """Items of a set whose choices stand in the text of an instruction: NAME-real.jsonl."""
    y = []
    for x in json.load(open(path))[: int(count)]:
        text = x["instruction"].split("question: ", 1)[1].split("\n\nAnswer format")[0]
        question, rest = text.rsplit("\n\nAnswer1: ", 1)
        choices = re.split(r" Answer\d: ", rest)
        key = "ABCDE"[int(x["answer"][-1]) - 1]
        y.append({"question_stem" if name == "openbookqa" else "question": question, "answerKey": key})
        y[-1]["choices"] = dict(text=choices, label=list("ABCDE"[: len(choices)]))
    put(name + "-real.jsonl", y)


def sentences(path, count):
    """Items of winogrande and lambada from the sentences of a text. The harness reads special tokens in texts."""
    text = " ".join(open(path).read().split())
    s = re.split(r"(?<=[.!?]) ", text)
    s = [t for t in s if 8 <= len(t.split()) <= 40 and not re.search("_|<[|]", t)][: int(count)]
    r, w = random.Random(2), []
    for t in s:
        words = t.split()
        i = r.randrange(2, 6)
        other = r.choice([x for x in text.split() if x != words[i]])
        options = [words[i], other] if r.random() < 0.5 else [other, words[i]]
        sentence = " ".join(words[:i] + ["_"] + words[i + 1 :])
        w.append(dict(sentence=sentence, option1=options[0], option2=options[1], answer="12"[options.index(words[i])]))
    put("winogrande-real.jsonl", w)
    put("lambada-real.jsonl", [dict(text=t.rstrip(".!?")) for t in s])


def scores(name, model, bound):
    """
    Compares the record NAME.h5 with the harness's own results and likelihoods.

    Both are in float32, whose rounding in a sum of many tokens may exceed the bound, in nats. So a likelihood beyond it
    is computed by the harness's model in double, and ours must be within the bound of that.
    """
    import logging

    import h5py
    import lm_eval
    import numpy as np
    from lm_eval.models.huggingface import HFLM

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    path, split, _, _ = TASKS[name]
    items = lines(name + "-real.jsonl")
    splits = {split: items, "train": items, "validation": items}
    task = harness_task(f"{os.path.dirname(lm_eval.__file__)}/tasks/{path}.yaml", splits)
    lm = HFLM(pretrained=model, dtype="float32", batch_size=1, device="cpu")
    record = h5py.File(name + ".h5")
    requests, owner = [], []
    for i, doc in enumerate(docs_of(task)):
        these = task.construct_requests(doc, task.fewshot_context(doc, 0))
        these = these if isinstance(these, list) else [these]
        requests += these
        owner += [i] * len(these)
    answers = lm.loglikelihood(requests, disable_tqdm=True)
    theirs, ours = np.array([a[0] for a in answers]), record["choice/log_likelihood"][...]
    assert len(theirs) == len(ours) and (record["choice/question"][...] == owner).all()
    worst, far = np.abs(theirs - ours).max(), np.flatnonzero(np.abs(theirs - ours) > float(bound))
    means = {}
    for i, doc in enumerate(docs_of(task)):
        result = task.process_results(doc, [a for a, o in zip(answers, owner) if o == i])
        for metric in {"acc", "acc_norm"} & set(result):
            mine = "exact" if name == "lambada" else metric
            assert result[metric] == record["question/" + mine][i], (name, i, metric, result)
            means.setdefault(metric, []).append(result[metric])
    said = ", ".join(f"{k} {np.mean(v):.4f}" for k, v in sorted(means.items()))
    said = f"{len(items)} items, {len(ours)} likelihoods, largest difference {worst:.2g} nats, {said}"
    if len(far):
        lm.model.double()
        exact = np.array([a[0] for a in lm.loglikelihood([requests[i] for i in far], disable_tqdm=True)])
        error = np.abs(ours[far] - exact).max(), np.abs(theirs[far] - exact).max()
        assert error[0] <= float(bound), (name, error)
        said += f"; beyond {bound}: {len(far)}, from double: ours at most {error[0]:.2g}, theirs {error[1]:.2g}"
    return said


def parquet():
    import pyarrow
    from pyarrow import parquet as p

    rows = [dict(goal='\u6c34 "x"', sol1="a", sol2="b", label=i % 2) for i in range(3)]
    p.write_table(pyarrow.Table.from_pylist(rows), "g.parquet")
    put("g-rows.jsonl", rows)
    p.write_table(pyarrow.Table.from_arrays([[1], [2]], names=["a", "a"]), "twice.parquet")
    pairs = pyarrow.array([[("k", math.nan)]], pyarrow.map_(pyarrow.string(), pyarrow.float64()))
    p.write_table(pyarrow.Table.from_arrays([pairs], names=["m"]), "map.parquet")


def characters():
    """Prompts with every character of this Python's Unicode: HellaSwag's ctx_b, MMLU's question."""
    import subprocess
    import unicodedata

    c = [chr(i) for i in range(1, 0x110000) if not 0xD800 <= i < 0xE000 and unicodedata.category(chr(i)) != "Cn"]
    pool = "aAbBΣσςßİıǅﬁ' .:-·’ʰᾳ\u0308ªⅠ1\u200d\u0345"
    r = random.Random(1)
    # as first character and as a later one, several in a text to have fewer items
    b = [x + "A" + "A".join(c[i : i + 40]) for i in range(0, len(c), 40) for x in c[i : i + 1]]
    b += [x + "A" for x in c if x.title() != x] + ["".join(r.choice(pool) for _ in range(9)) for _ in range(5000)]
    b = [x for x in b if "[" not in x and "  " not in x]
    put("b.jsonl", [dict(activity_label="x", ctx_a="y", ctx_b=x, endings=["a", "b"], label=0) for x in b])
    subprocess.run(["questions-import", "--task", "hellaswag", "b.jsonl", "-o", "b.out"], check=True)
    for x, got in zip(b, lines("b.out"), strict=True):
        assert got["context"] == ("x: y " + x.capitalize()).strip().replace("  ", " "), (x, got)
    s = [x + "a" + x for x in c] + ["\u3000\u00a0 a\u2028\x1c\x85", " \t\n"]
    put("s.jsonl", [dict(question=x, choices=list("abcd"), answer=0, subject="s") for x in s])
    subprocess.run(["questions-import", "--task", "mmlu", "-n", "0", "s.jsonl", "-o", "s.out"], check=True)
    for x, got in zip(s, lines("s.out"), strict=True):
        assert got["context"].split("about s.\n\n", 1)[1].startswith(x.strip() + "\nA. a"), (x, got)
