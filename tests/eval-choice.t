#!/bin/sh
# Multiple choice: likelihoods against those of each context and choice alone, numbers by their definitions, what is refused.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
tiny=$top/tests/tiny
model-import -q "$tiny" -o tiny.h5
model-import -q "$top/data/prose" -o prose.h5

py - "$top/tests/ref" <<'PY'
import h5py, json, numpy as np, shutil, sys
r = np.random.default_rng(5)
def change(path, source, edit=None, **config):      # a model of bytes
    shutil.copy(source, path)
    with h5py.File(path, "r+") as f:
        c = json.loads(f["config"][()]); old = c["vocab_size"]; c.update({"vocab_size": 256, **config}); del f["config"]
        f.create_dataset("config", data=json.dumps(c), dtype=h5py.string_dtype())
        names = []; f.visititems(lambda n, d: names.append(n) if isinstance(d, h5py.Dataset) and d.ndim and d.shape[0] == old and "test" not in n else None)
        for n in names:
            shape = (256,) + f[n].shape[1:]; del f[n]; f[n] = r.standard_normal(shape).astype("f4")
        if edit: edit(f)
for name in "llama-gqa", "mistral-window", "gpt2": change(name + ".h5", f"{sys.argv[1]}/{name}.h5", bos_token_id=1)
shutil.copy(f"{sys.argv[1]}/llama-gqa.h5", "few.h5")
change("nan.h5", "llama-gqa.h5", lambda f: f["model/norm/weight"].__setitem__(Ellipsis, 3e38))
words = ["cat", "the dog", "\u00e9t\u00e9", "a", " b ", "zebra crossing", "x" * 9, "\n", "it is"]
def question(task, context, choices, gold, **more): return dict(task=task, context=context, choices=choices, gold=gold, **more)
def put(path, lines): open(path, "w").write("".join(l if isinstance(l, str) else json.dumps(l) + "\n" for l in lines))
q = []
for i in range(40):
    n = int(r.integers(1, 6)); context = " ".join(r.choice(words, int(r.integers(0, 4)))) + ("", " ", "  \n")[i % 3]
    q.append(question(("b", "a", "c")[i % 3], context, [str(w) for w in r.choice(words, n, replace=False)], int(r.integers(0, n))))
put("q.jsonl", q); put("half.jsonl", q[:20]); put("blank.jsonl", ["\n"] + q[:7] + ["  \n\n"] + q[7:] + ["\n"])
put("other.jsonl", q[1:] + q[:1]); open("end.jsonl", "w").write(json.dumps(q[0])); put("single.jsonl", [question("s", "ab", ["c", "d"], 0)])
PY
cat >alone.py <<'PY'
# the likelihoods of a record against those that eval-ppl gives each context and choice as a text of its own
import h5py, json, numpy as np, subprocess, sys
record, model, questions, add, encode = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
def ids(text):
    if encode == "bytes": return list(text.encode())
    if not text: return []
    open("text", "w").write(text); subprocess.run(["tokenize", "-q", "--model", encode, "text", "-o", "ids.h5"], check=True)
    return list(h5py.File("ids.h5")["tokens"][...])
text, sequence, count = [], [0], []
for line in open(questions):
    if not line.strip(): continue
    q = json.loads(line); context = q["context"].rstrip(" \t\n\v\f\r"); n = len(ids(context))
    for c in q["choices"]:
        whole = ids(context + q["context"][len(context):] + c)
        text += ids(context) + whole[n:]; sequence.append(len(text)); count.append(len(whole) - n)
config = json.loads(h5py.File(model)["config"][()])
with h5py.File("t.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
    f["tokens"] = np.array(text, "i4"); f["sequence"] = np.array(sequence)
    f["tokens"].attrs.update(bos_id=config["bos_token_id"], add_bos=add, vocab=config["vocab_size"])
subprocess.run(["eval-ppl", "-q", "--tokens", "t.h5", "--ctx", "64", model, "-o", "p.h5"], check=True, stdout=subprocess.DEVNULL)
p, r = h5py.File("p.h5"), h5py.File(record)
ends = np.cumsum(np.diff(sequence) - 1 + add); assert ends[-1] == len(p["target"])
want = np.array([-p["nll_of_target"][e - n:e].sum() for e, n in zip(ends, count)])
worst = (np.abs(want - r["choice/log_likelihood"][...]) / np.maximum(1, -want)).max()
assert (r["choice/tokens"][...] == count).all() and worst < 1e-5, worst
PY
run() { eval-choice --questions q.jsonl "$@"; }

for m in llama-gqa mistral-window gpt2; do
	run $m.h5 -o $m-r.h5 >$m.tsv
	ok "$m: likelihoods are those alone" py alone.py $m-r.h5 $m.h5 q.jsonl 1 bytes
done
m=llama-gqa.h5
mv llama-gqa-r.h5 r.h5; mv llama-gqa.tsv a
grep -v '"context": "[ \\n]*"' q.jsonl >context.jsonl
eval-choice --bos no --questions context.jsonl $m -o x.h5 >/dev/null
ok 'without a BOS' py alone.py x.h5 $m context.jsonl 0 bytes
cat >words.jsonl <<'J'
{"task": "t", "context": "once on", "choices": [" no", "ne", " one on"], "gold": 0}
{"task": "t", "context": "once on ", "choices": ["no", "one"], "gold": 1}
{"task": "t", "context": "", "choices": ["once", "no one"], "gold": 1}
{"task": "t", "context": " \n", "choices": ["on"], "gold": 0}
J
eval-choice -q --questions words.jsonl tiny.h5 -o x.h5 >/dev/null
ok 'a tokenizer: context and choice together, cut behind the context' py alone.py x.h5 tiny.h5 words.jsonl 1 tiny.h5
ok 'what is printed, and the record' py - <<'PY'
import h5py, json, numpy as np
q = [json.loads(l) for l in open("q.jsonl")]; f = h5py.File("r.h5")
p = f["choice/log_likelihood"][...]; at, acc, norm = 0, [], []
for i, x in enumerate(q):
    n = len(x["choices"]); v = p[at:at + n]; size = np.array([len(c.encode()) for c in x["choices"]])
    assert (f["choice/question"][at:at + n] == i).all() and (f["choice/bytes"][at:at + n] == size).all()
    assert f["question/answer"][i] == v.argmax() and f["question/answer_norm"][i] == (v / size).argmax() and f["question/gold"][i] == x["gold"]
    acc.append(v.argmax() == x["gold"]); norm.append((v / size).argmax() == x["gold"]); at += n
assert at == len(p) and (f["question/acc"][...] == acc).all() and (f["question/acc_norm"][...] == norm).all()
rows = [l.rstrip("\n").split("\t") for l in open("a")]
assert rows[0] == ["task", "questions", "acc", "acc_se", "acc_norm", "acc_norm_se"] and [r[0] for r in rows[1:]] == ["b", "a", "c", "all"]
task = np.array([x["task"] for x in q]); assert list(f["question/task"].asstr()[...]) == list(task)
for k, r in enumerate(rows[1:]):
    at = np.ones(40, bool) if r[0] == "all" else task == r[0]; n = at.sum(); assert int(r[1]) == n
    for c, x in ((2, np.array(acc)[at]), (4, np.array(norm)[at])):
        se = (x.mean() * (1 - x.mean()) / (n - 1)) ** 0.5
        assert abs(float(r[c]) - x.mean()) < 1e-5 and abs(float(r[c + 1]) - se) < 1e-5
        if r[0] == "all": assert abs(f.attrs[rows[0][c]] - x.mean()) < 1e-12
        else: assert abs(f[rows[0][c]][k] - x.mean()) < 1e-12
assert 0 < np.mean(acc) < 1 and f.attrs["ptq_kind"] == "result" and f.attrs["history"].startswith("eval-choice ")
PY
run --json $m >j; ok 'JSON' py -c 'import json; v = json.load(open("j")); assert [r["task"] for r in v["rows"]] == ["b", "a", "c"] and v["all"]["questions"] == 40'
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run $how $m >x; ok "the same with $how" cmp x a
done
cat $m | run >x; ok 'the model from a pipe' cmp x a
eval-choice --questions - $m <q.jsonl >x; ok 'questions from standard input' cmp x a
eval-choice --questions blank.jsonl $m >x; ok 'blank lines' cmp x a
run --limit 20 $m >x; eval-choice --questions half.jsonl $m >y; ok 'the first 20' cmp x y
eval-choice --questions end.jsonl $m >x; is 'no newline at the end; one question has no standard error' "$(sed 1d x | cut -f2,4 | xargs)" '1 - 1 -'

# --- greedy decoding: character by character, each the likeliest of all ---
py - <<'PY'
import h5py, json, subprocess
def measure(questions, *more):
    with open("g.jsonl", "w") as f: f.writelines(json.dumps(q) + "\n" for q in questions)
    subprocess.run(["eval-choice", "-q", "--questions", "g.jsonl", "prose.h5", "-o", "g.h5", *more], check=True, stdout=subprocess.DEVNULL)
    return h5py.File("g.h5")["question"]
letters = ["\n"] + [chr(i) for i in range(32, 127)]
contexts = ["The door was", "He said that", "\"I am sorry,\" she"]; texts = [""] * 3
for _ in range(3):
    a = measure([dict(task="t", context=c + t, choices=letters, gold=0) for c, t in zip(contexts, texts)])["answer"][...]
    texts = [t + letters[i] for t, i in zip(texts, a)]
assert not any(t != t.rstrip() for t in texts), texts
q = [dict(task="t", context=c, choices=[t, t[:2], t[:2] + "~", t[:2] + "~" + t[2:]], gold=g) for c, t in zip(contexts, texts) for g in range(4)]
exact = list(measure(q, "--greedy")["exact"][...]); assert exact == [1, 1, 0, 0] * 3, exact
q = [dict(x, choices=[t[:2] for t in x["choices"]], gold=0) for x in q[::4]]
for until, want in zip((texts[0][2], texts[1][2]), (0, 1)):
    exact = list(measure(q, "--greedy", "--until", until)["exact"][...]); assert exact == [t[2] == until for t in texts], exact
    assert exact[want] == 1
open("greedy", "w").write("yes")
PY
ok 'greedy decoding, with and without an end' test -s greedy

# --- against a record, and against a model ---
dpq-run -q --compensate none --storage uint2 --group 8 $m -o rtn.h5
run rtn.h5 --paired r.h5 -o s.h5 >p
ok 'paired differences' py - <<'PY'
import h5py, numpy as np
a, b = h5py.File("s.h5"), h5py.File("r.h5"); rows = [l.rstrip("\n").split("\t") for l in open("p")]
v = dict(zip(rows[0], rows[-1])); assert rows[0][6:] == ["paired_" + s for s in ("acc_delta", "acc_delta_se", "acc_norm_delta", "acc_norm_delta_se", "same", "same_se")]
any_other = False
for n in "acc", "acc_norm":
    d = a["question/" + n][...] - b["question/" + n][...]
    assert abs(float(v["paired_" + n + "_delta"]) - d.mean()) < 1e-6 and abs(float(v["paired_" + n + "_delta_se"]) - (d.var() / 39) ** 0.5) < 1e-6
    any_other |= (d != 0).any()
same = a["question/answer"][...] == b["question/answer"][...]
assert any_other and 0 < same.mean() < 1 and abs(float(v["paired_same"]) - same.mean()) < 1e-6 and abs(float(v["paired_same_se"]) - (same.var() / 39) ** 0.5) < 1e-6
PY
msq-calib -q --kv-format int2 rtn.h5 -o kv.h5
run rtn.h5 --kv-format int2 >x; run kv.h5 >y; ok 'keys and values as the model says' cmp x y
run rtn.h5 >x; run kv.h5 --kv-format none >z; ok '... but where the option says none' cmp x z
no '... which is not the same' 1 differ sh -c 'cmp x y >&2'
run rtn.h5 --reference $m --greedy -o k.h5 >k
ok 'a reference' py - <<'PY'
import h5py, numpy as np
k, s, r = h5py.File("k.h5"), h5py.File("s.h5"), h5py.File("r.h5"); n = "choice/log_likelihood"
assert (k[n][...] == s[n][...]).all() and (k[n + "_of_reference"][...] == r[n][...]).all()
assert (k["question/agreement"][...] == (s["question/answer"][...] == r["question/answer"][...])).all() and 0 < k.attrs["agreement"] < 1
assert k["question/kl"][...].min() > 0 and abs(k.attrs["kl"] - k["question/kl"][...].mean()) < 1e-12
rows = [l.rstrip("\n").split("\t") for l in open("k")]
assert rows[0][2:] == [m + e for m in ("acc", "acc_norm", "exact", "kl", "agreement") for e in ("", "_se")]
PY
# the divergence of a choice of one token
py - <<'PY'
import json
json.dump(dict(task="t", context="ab", choices=[chr(i) for i in range(1, 128)], gold=0), open("one.jsonl", "w"))
PY
eval-choice --questions one.jsonl rtn.h5 --reference $m -o o.h5 >/dev/null
ok 'the divergence is that of the tokens' py - <<'PY'
import h5py, numpy as np, subprocess
f = h5py.File("o.h5")
with h5py.File("t.h5", "w") as t:
    t.attrs["ptq_kind"], t.attrs["ptq_version"] = "tokens", "1"
    t["tokens"] = np.array([97, 98, 99], "i4"); t["tokens"].attrs.update(bos_id=1, add_bos=1, vocab=256)
subprocess.run("eval-ppl -q --tokens t.h5 --ctx 4 rtn.h5 --reference llama-gqa.h5 -o p.h5", shell=True, check=True, stdout=subprocess.DEVNULL)
x, y = h5py.File("p.h5")["kl"][2], f["question/kl"][0]; assert abs(x - y) < 1e-5 * max(1, x) and x > 0.01, (x, y)
PY
run $m --reference $m >x; is 'a model against itself' "$(tail -n 1 x | cut -f7-)" "$(printf '0\t0\t1\t0')"
run rtn.h5 --reference $m --paired k.h5 >x; is 'a record of the same: no difference' "$(tail -n 1 x | cut -f11- | xargs)" '0 0 0 0 0 0 0 0 1 0'
cat $m | run rtn.h5 --reference - --greedy >x; ok 'the reference from a pipe' cmp x k

# --- what is wrong ---
refused() {	# refused NAME PATTERN LINE
	printf '%s\n' "$3" >bad.jsonl; no "$1" 1 "bad.jsonl:1: $2" eval-choice --questions bad.jsonl $m -o bad.h5
}
refused 'no JSON' 'is not valid JSON' '{"task": '
refused 'two objects' 'is not valid JSON' '{} {}'
refused 'a member twice' 'is not valid JSON' '{"task": "a", "task": "b"}'
refused 'an array' 'is no JSON object' '[1]'
refused 'a NUL' 'is not valid JSON' '{"task": "a\u0000"}'
refused 'no task' "'task' is missing" '{}'
refused 'a task of no name' "'task' is ''" '{"task": ""}'
refused 'a task called all' "'task' is 'all', which names no task" '{"task": "all"}'
refused 'no context' "'context' is no text" '{"task": "a", "context": 5}'
refused 'no choices' "'choices' is missing" '{"task": "a", "context": "c", "gold": 0}'
refused 'choices that are none' "'choices' is no array, or empty" '{"task": "a", "context": "c", "choices": [], "gold": 0}'
refused 'a choice that is no text' "'choices': number 1 is none" '{"task": "a", "context": "c", "choices": ["a", 1], "gold": 0}'
refused 'an empty choice' "'choices': number 0 is empty" '{"task": "a", "context": "c", "choices": [""], "gold": 0}'
for g in -1 1 0.5 '"a"' true 99999999999999; do refused "gold $g" "'gold' is none of them, expected the number of a choice, 0 to 0" '{"task": "a", "context": "c", "choices": ["a"], "gold": '"$g}"; done
refused 'no gold' "'gold' is missing" '{"task": "a", "context": "c", "choices": ["a"]}'
refused 'images that are no array' "'images' is no array" '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": "a.png"}'
refused 'images that are no names' "'images': number 1 is no text" '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": ["a.png", 3]}'
refused 'an image without a name' "'images': number 0 is empty, expected the name of a file" '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": [""]}'
for k in image Images choice golds; do
	refused "'$k'" "'$k' is no member of a question, expected '(images|choices|gold)'" '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "'$k'": []}'
done
printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "id": 1}\n{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "id": 2, "source": ""}\n' >more.jsonl
warns 'members that are not read' "more.jsonl: members that are not read: 'id', 'source'\$" eval-choice --questions more.jsonl $m
printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1}\n' >more.jsonl
warns '... of many some' "'1', '2', '3', '4', '5' and 1 more\$" eval-choice --questions more.jsonl $m
model-import -q "$top/data/vlm-pre" -o eyes.h5
for images in '' ', "images": []'; do
	printf '%s\n' '{"task": "a", "context": "See <image>\nQ:", "choices": ["a"], "gold": 0'"$images}" >blind.jsonl
	for special in '' --special; do
		# shellcheck disable=SC2086
		no "a picture that is forgotten ($images $special)" 1 "blind.jsonl:1: 'context' has a placeholder of an image .id 256., 'images' has none" eval-choice --questions blind.jsonl $special eyes.h5
	done
done
head -c -20 "$top/tests/fuzz/seeds/image/rgb8.png" >cut.png	# after its header, which has the extents
printf '%s\n' '{"task": "a", "context": "See <image>", "choices": ["a"], "gold": 0, "images": ["cut.png"]}' >cut.jsonl
no 'an image that is damaged' 1 'cut.jsonl:1: cut.png: is a damaged PNG' eval-choice --questions cut.jsonl eyes.h5
refused 'images' 'has images: images need a model with an encoder' '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": ["a.png"]}'
: >none.jsonl; no 'no question' 1 'none.jsonl: holds no question' eval-choice --questions none.jsonl $m
printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0}\n{"task": 1}\n' >second.jsonl
no 'the second line' 1 "second.jsonl:2: 'task' is no text" eval-choice --questions second.jsonl $m
ok '... is not read under --limit 1' eval-choice --questions second.jsonl --limit 1 $m
no 'a model without a tokenizer' 1 'few.h5: /tokenizer: is missing; without one a vocabulary of 256, bytes, is expected, not of 61' run few.h5
no 'no questions named' 2 '--questions FILE is expected' eval-choice $m
no 'questions that are not there' 1 'nothing.jsonl: cannot open' eval-choice --questions nothing.jsonl $m
no 'numbers that overflow' 1 'nan.h5: gives .* as the likelihood|not finite|overflow' run nan.h5
no 'a record of other questions' 1 'r.h5: is over other questions than those of other.jsonl' eval-choice --questions other.jsonl --paired r.h5 $m
no 'a record of fewer questions' 1 'r.h5: /question/gold: is over 40 questions, not 20: --limit is expected as it was' run --limit 20 --paired r.h5 $m
eval-ppl -q --tokens t.h5 --ctx 4 $m -o ppl.h5 >/dev/null
no 'a record of another tool' 1 'ppl.h5: is no record of eval-choice' run --paired ppl.h5 $m
no 'another reference' 1 'k.h5: /choice/log_likelihood_of_reference: is of another reference: choice 0 has' run rtn.h5 --reference rtn.h5 --paired k.h5
no 'a reference of another vocabulary' 1 'tiny.h5: /config: has a vocabulary of 24' run $m --reference tiny.h5
warns '--until without --greedy' '--until .no --greedy.' run --until x $m
warns '--special of bytes' '--special .ids are bytes.' run --special $m
printf '{"task": "a", "context": "once on once on once on once on once on once on", "choices": ["no one"], "gold": 0}\n' >long.jsonl
warns 'more than the positions' 'long.jsonl: a question of [0-9]* tokens is longer than the 16 positions' eval-choice --questions long.jsonl tiny.h5
ok 'no result of that' test ! -e bad.h5

# --- questions inside instructions ---
cat >task.json <<'J'
[
    {
        "instruction": "Please choose the correct answer to the question: Is it \"a\" or b?\n\nAnswer1: a 5 \u00e9 Answer2: it is Answer 3\n\nAnswer format: answer1/answer2",
        "input": "",
        "output": "the correct answer is answer2",
        "answer": "answer2"
    },
    {
        "instruction": "Which?\n the question: Which\n\nAnswer1: w Answer2: x Answer3: y\n\nAnswer format: answer1/answer2/answer3",
        "answer": "answer1"
    }
]
J
awk -v task=T -f "$top/pipelines/questions.awk" task.json >task.jsonl
ok 'questions.awk' py -c 'import json
a, b = map(json.loads, open("task.jsonl"))
assert a == dict(task="T", context="Question: Is it \"a\" or b?\nAnswer: ", choices=["a 5 \u00e9", "it is Answer 3"], gold=1), a
assert b == dict(task="T", context="Question: Which\nAnswer: ", choices=["w", "x", "y"], gold=0), b'
ok '... as eval-choice reads them' eval-choice --questions task.jsonl $m
no '... of another kind' 1 'questions.awk: words.jsonl:.: holds no question' awk -v task=T -f "$top/pipelines/questions.awk" words.jsonl
no '... without a name' 2 '-v task=NAME is expected' awk -f "$top/pipelines/questions.awk" task.json
sed 's/Answer2: x/Answer5: x/' task.json >odd.json
no '... with a choice that is missing' 1 "odd.json:9: ' Answer2: ' is missing" awk -v task=T -f "$top/pipelines/questions.awk" odd.json
done_testing
