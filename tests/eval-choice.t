#!/bin/sh
# eval-choice.t -- multiple choice: likelihoods, results and records; bad input
# Likelihoods are compared with those of each context and choice alone, results with their definitions.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
tiny=$top/tests/tiny
model-import -q "$tiny" -o tiny.h5
model-import -q "$top/data/prose" -o prose.h5

py make "$top/tests/ref"
run() { eval-choice --questions q.jsonl "$@"; }

for m in llama-gqa mistral-window gpt2; do
	run $m.h5 -o $m-r.h5 >$m.tsv
	ok "$m: likelihoods equal those of each choice alone" py alone $m-r.h5 $m.h5 q.jsonl 1 bytes
done
m=llama-gqa.h5
mv llama-gqa-r.h5 r.h5; mv llama-gqa.tsv a
grep -v '"context": "[ \\n]*"' q.jsonl >context.jsonl
eval-choice --bos no --questions context.jsonl $m -o x.h5 >/dev/null
ok 'likelihoods without a BOS' py alone x.h5 $m context.jsonl 0 bytes
cat >words.jsonl <<'J'
{"task": "t", "context": "once on", "choices": [" no", "ne", " one on"], "gold": 0}
{"task": "t", "context": "once on ", "choices": ["no", "one"], "gold": 1}
{"task": "t", "context": "", "choices": ["once", "no one"], "gold": 1}
{"task": "t", "context": " \n", "choices": ["on"], "gold": 0}
J
eval-choice -q --questions words.jsonl tiny.h5 -o x.h5 >/dev/null
ok 'a tokenizer: context and choice are tokenized together and split after the context' \
	py alone x.h5 tiny.h5 words.jsonl 1 tiny.h5
run --greedy $m -o g.h5 >x
ok 'the printed table and the record' py printed
run --json $m >j; ok 'JSON' py as_json
for how in '-j 1' '-j 3' '--memory 0'; do
	# shellcheck disable=SC2086
	run $how $m >x; ok "the same with $how" cmp x a
done
cat $m | run >x; ok 'the model from a pipe' cmp x a
eval-choice --questions - $m <q.jsonl >x; ok 'questions from standard input' cmp x a
eval-choice --questions blank.jsonl $m >x; ok 'blank lines are ignored' cmp x a
printf '\357\273\277' | cat - q.jsonl >marked.jsonl
eval-choice --questions marked.jsonl $m >x; ok 'a byte order mark at the start is ignored' cmp x a
run --limit 20 $m >x; eval-choice --questions half.jsonl $m >y; ok '--limit 20: the first 20 questions' cmp x y
eval-choice --questions end.jsonl $m >x
is 'no newline at the end; one question has no standard error' "$(sed 1d x | cut -f2,4 | xargs)" '1 - 1 -'

# --- greedy decoding: character by character, each the most probable of all ---
py greedy
ok 'greedy decoding, with and without an end' test -s greedy

# --- against a record, and against a model ---
dpq-run -q --compensate none --storage uint2 --group 8 $m -o rtn.h5
run rtn.h5 --paired r.h5 -o s.h5 >p
ok 'paired differences' py paired
msq-calib -q --kv-format int2 rtn.h5 -o kv.h5
run rtn.h5 --kv-format int2 >x; run kv.h5 >y; ok 'keys and values are rounded as the model specifies' cmp x y
run rtn.h5 >x; run kv.h5 --kv-format none >z; ok '... --kv-format none overrides it' cmp x z
no '... with another result' 1 differ sh -c 'cmp x y >&2'
run rtn.h5 --reference $m --greedy -o k.h5 >k
ok 'a reference model' py reference
py older
no 'a record from before acc_bytes, with single choices' 1 'old.h5: is of version 1.0, in which answers to ' \
	run rtn.h5 --paired old.h5
grep -v '"choices": \["[^"]*"\]' q.jsonl >multi.jsonl
eval-choice -q --questions multi.jsonl $m -o r2.h5 >x
py older r2.h5
for r in r2 old; do eval-choice --questions multi.jsonl rtn.h5 --paired $r.h5 >$r; done
ok '... without single choices: the same differences' cmp r2 old
# contexts: with and without an end of greedy decoding
py contexts
for until in '' X; do
	eval-choice --questions several.jsonl $m --greedy ${until:+--until "$until"} -o several.h5 >/dev/null
	eval-choice --questions single.jsonl $m --greedy ${until:+--until "$until"} -o each.h5 >/dev/null
	ok "a context for each choice: the likelihoods of each alone ($until)" py same_contexts
done
# the divergence of a choice of one token
py one_token
eval-choice --questions one.jsonl rtn.h5 --reference $m -o o.h5 >/dev/null
ok 'the divergence of a choice is that of its tokens' py divergence
run $m --reference $m >x; is 'a model against itself' "$(tail -n 1 x | cut -f9-)" "$(printf '0\t0\t1\t0')"
run rtn.h5 --reference $m --paired k.h5 >x
is 'paired with a record of the same run: no difference' "$(tail -n 1 x | cut -f13- | xargs)" '0 0 0 0 0 0 0 0 0 0 1 0'
cat $m | run rtn.h5 --reference - --greedy >x; ok 'the reference from a pipe' cmp x k

# --- bad input ---
refused() {	# refused NAME PATTERN LINE
	printf '%s\n' "$3" >bad.jsonl; no "$1" 1 "bad.jsonl:1: $2" eval-choice --questions bad.jsonl $m -o bad.h5
}
refused 'no JSON' 'is not valid JSON' '{"task": '
refused 'two objects' 'is not valid JSON' '{} {}'
refused 'a member twice' 'is not valid JSON' '{"task": "a", "task": "b"}'
refused 'an array' "is not a JSON object, expected one per line; jq -c '.\[\]' divides an array" '[1]'
refused 'a NUL' 'is not valid JSON' '{"task": "a\u0000"}'
refused 'no task' "'task' is missing" '{}'
refused 'an empty name of a task' "'task' is ''" '{"task": ""}'
refused 'a task called all' "'task' is 'all', expected a name" '{"task": "all"}'
refused 'no context' "'context' is a number, expected a text" '{"task": "a", "context": 5}'
refused 'no choices' "'choices' is missing" '{"task": "a", "context": "c", "gold": 0}'
refused 'an empty list of choices' "'choices' is not an array, or empty" \
	'{"task": "a", "context": "c", "choices": [], "gold": 0}'
refused 'a choice that is not a text' "'choices': number 1 is not a text" \
	'{"task": "a", "context": "c", "choices": ["a", 1], "gold": 0}'
refused 'an empty choice' "'choices': number 0 is empty" '{"task": "a", "context": "c", "choices": [""], "gold": 0}'
for g in -1 1 0.5 '"a"' true 99999999999999; do
	refused "gold $g" "'gold' is not a choice, expected the number of a choice, 0 to 0" \
		'{"task": "a", "context": "c", "choices": ["a"], "gold": '"$g}"
done
refused 'no gold' "'gold' is missing" '{"task": "a", "context": "c", "choices": ["a"]}'
refused 'images that are not an array' "'images' is not an array" \
	'{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": "a.png"}'
refused 'an image that is not a text' "'images': number 1 is not a text" \
	'{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": ["a.png", 3]}'
refused 'an image without a name' "'images': number 0 is empty, expected the name of a file" \
	'{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": [""]}'
for also in '"context": ""' '"images": []'; do
	refused "'contexts' and $also" "'contexts' is given with '(context|images)', expected one of them" \
		'{"task": "a", "contexts": ["a"], "choices": ["a"], "gold": 0, '"$also}"
done
refused 'more choices than contexts' "'contexts' has 1 texts, 'choices' has 2: expected as many, or one choice" \
	'{"task": "a", "contexts": ["a"], "choices": ["a", "b"], "gold": 0}'
refused 'an empty context among several' "'contexts': number 1 is empty" \
	'{"task": "a", "contexts": ["a", ""], "choices": ["a"], "gold": 0}'
refused 'gold beyond the contexts' "'gold' is not a choice, expected the number of a choice, 0 to 1" \
	'{"task": "a", "contexts": ["a", "b"], "choices": ["a"], "gold": 2}'
for k in image Images choice golds; do
	refused "'$k'" "'$k' is not a member of a question, expected '(images|choices|gold)'" \
		'{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "'$k'": []}'
done
{
	printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "id": 1}\n'
	printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "id": 2, "source": ""}\n'
} >more.jsonl
warns 'ignored members are named' "more.jsonl: ignored members: 'id', 'source'\$" \
	eval-choice --questions more.jsonl $m
printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1}\n' \
	>more.jsonl
warns '... the first five of many' "'1', '2', '3', '4', '5' and 1 more\$" eval-choice --questions more.jsonl $m
model-import -q "$top/data/vlm-pre" -o eyes.h5
for images in '' ', "images": []'; do
	printf '%s\n' '{"task": "a", "context": "See <image>\nQ:", "choices": ["a"], "gold": 0'"$images}" >blind.jsonl
	for special in '' --special; do
		# shellcheck disable=SC2086
		no "a placeholder without an image ($images $special)" 1 \
			"blind.jsonl:1: 'context' has a placeholder of an image .id 256., 'images' has none" \
			eval-choice --questions blind.jsonl $special eyes.h5
	done
done
head -c -20 "$top/tests/fuzz/seeds/image/rgb8.png" >cut.png	# after its header, which has the extents
printf '%s\n' '{"task": "a", "context": "See <image>", "choices": ["a"], "gold": 0, "images": ["cut.png"]}' >cut.jsonl
no 'an image that is damaged' 1 'cut.jsonl:1: cut.png: is a damaged PNG' eval-choice --questions cut.jsonl eyes.h5
cp "$top/tests/fuzz/seeds/image/rgb8.png" a.png
refused 'images of a model without an encoder' 'has images, expected none: the model has no encoder' \
	'{"task": "a", "context": "c", "choices": ["a"], "gold": 0, "images": ["a.png"]}'
: >none.jsonl; no 'no question' 1 'none.jsonl: holds no question' eval-choice --questions none.jsonl $m
printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0}\n{"task": 1}\n' >second.jsonl
no 'the second line' 1 "second.jsonl:2: 'task' is a number, expected a text" eval-choice --questions second.jsonl $m
ok '... is not read under --limit 1' eval-choice --questions second.jsonl --limit 1 $m
no 'a model without a tokenizer' 1 \
	'few.h5: /tokenizer: is missing; without a tokenizer the vocabulary must be 256 bytes, not 61 ids' run few.h5
no 'no --questions' 2 '--questions FILE is expected' eval-choice $m
no 'a file of questions that does not exist' 1 'nothing.jsonl: cannot open' eval-choice --questions nothing.jsonl $m
no 'log-likelihoods that overflow' 1 'nan.h5: has .*log-likelihood|not finite|overflow' run nan.h5
no 'a record of other questions' 1 'r.h5: has other questions than other.jsonl' \
	eval-choice --questions other.jsonl --paired r.h5 $m
no 'a record of fewer questions' 1 'r.h5: /question/gold: has 40 questions, expected 20: use the same --limit' \
	run --limit 20 --paired r.h5 $m
eval-ppl -q --tokens t.h5 --ctx 4 $m -o ppl.h5 >/dev/null
for x in acc:question/acc acc_norm:choice/log_likelihood; do
	py nan r2.h5 "${x#*:}" nan.h5
	no "a record whose ${x#*:} is not finite" 1 "nan.h5: /${x#*:}: number 1 is nan, expected a finite one" \
		eval-choice --questions multi.jsonl --paired nan.h5 $m
done
no 'a record of another tool' 1 'ppl.h5: is not a record of eval-choice' run --paired ppl.h5 $m
no 'a record of another reference' 1 \
	'k.h5: /choice/log_likelihood_of_reference: is of another reference: choice 0 has' \
	run rtn.h5 --reference rtn.h5 --paired k.h5
no 'a reference of another vocabulary' 1 'tiny.h5: /config: has a vocabulary of 24' run $m --reference tiny.h5
py equal
for how in default Haswell; do
	[ $how = default ] || export OPENBLAS_CORETYPE=$how
	eval-choice --questions equal.jsonl prose.h5 >x
	unset OPENBLAS_CORETYPE
	is "of equal choices the first counts, kernels of $how" "$(sed -n '$p' x | cut -f 2,3,5,7 | xargs)" '4 0 0 0'
done
no 'an empty --until' 2 '--until is empty' run --greedy --until '' $m
no 'an --until that is not UTF-8' 2 '--until is not valid UTF-8' run --greedy --until "$(printf 'a\377')" $m
grep -v '"choices": \["[^"]*"\]' q.jsonl >several.jsonl
warns '--until without --greedy' '--until .no --greedy.' eval-choice --questions several.jsonl --until x $m
warns '--special without a tokenizer' '--special .ids are bytes.' eval-choice --questions several.jsonl --special $m
many='once on once on once on once on once on once on'
printf '{"task": "a", "context": "%s", "choices": ["no one", "no one on on"], "gold": 0}\n' "$many" >long.jsonl
printf '{"task": "a", "context": "%s", "choices": ["%s"], "gold": 0}\n' 'once on once on once on' 'no one' \
	'once on once on' 'no one on on' >short.jsonl
warns 'a question longer than the positions of the model' \
	'long.jsonl: 1 of 1 contexts are too long for the 16 positions of the model and lose their first tokens' \
	eval-choice --questions long.jsonl tiny.h5
for f in long short; do eval-choice -q --bos no --questions $f.jsonl tiny.h5 -o $f.h5 >x 2>err; done
is '... which is cut for each choice' "$(grep -c 'lose their' err) $(py alike long.h5 short.h5)" '0 alike'
printf '{"task": "a", "context": "on", "choices": ["%s"], "gold": 0}\n' "$many" >long.jsonl
no 'a choice longer than the positions' 1 'long.jsonl:1: a choice has [0-9]* tokens, expected at most the 16' \
	eval-choice --questions long.jsonl tiny.h5
ok 'no result was written' test ! -e bad.h5

# --- questions inside instructions ---
ask='Please choose the correct answer to the question: Is it \"a\" or b?' format='Answer format: answer1/answer2'
cat >task.json <<J
[
    {
        "instruction": "$ask\n\nAnswer1: a 5 \u00e9 Answer2: it is Answer 3\n\n$format",
        "input": "",
        "output": "the correct answer is answer2",
        "answer": "answer2"
    },
    {
        "instruction": "Which?\n the question: Which\n\nAnswer1: w Answer2: x Answer3: y\n\n$format/answer3",
        "answer": "answer1"
    }
]
J
awk -f "$top/pipelines/questions.awk" task.json >items.jsonl
for task in arc_easy openbookqa; do
	questions-import --task $task items.jsonl -o $task.jsonl
	ok "questions.awk makes items of $task" py items $task
	ok '... eval-choice reads the questions' eval-choice --questions $task.jsonl $m
done
format='Answer format: option1/option2'
cat >options.json <<J
[
    {
        "instruction": "Fill in. The sentence: An _ is\n it.\n\nOption1: Option2 Option2: b c $format",
        "answer": "option2"
    }
]
J
awk -f "$top/pipelines/questions.awk" options.json | questions-import --task winogrande -o winogrande.jsonl
ok 'questions.awk makes items of winogrande' py options
ok '... eval-choice reads the question' eval-choice --questions winogrande.jsonl $m
sed 's/"option2"/"answer2"/' options.json >odd.json
no '... an answer of the other form' 1 'odd.json:4: is no answer of its question' \
	awk -f "$top/pipelines/questions.awk" odd.json
sed 's/Option2: b/Option2: x Option2: b/' options.json >odd.json
no '... an ambiguous option' 1 "odd.json:3: ' Option2: ' is in choice 2" awk -f "$top/pipelines/questions.awk" odd.json
for odd in 's/Answer2: x/Answer2: x Answer2: v/' 's/Answer3: y/Answer2: y Answer3: y/' 's/Answer3: y/& Answer4: z/' \
	's/Answer2: x/Answer2: Answer4: x/' 's/Answer3: y/&\\nAnswer4: z/' 's/Answer3: y/& Answer4:/'; do
	sed "$odd" task.json >odd.json
	no "... an ambiguous choice: $odd" 1 "odd.json:9: '.*Answer[24]: ' is in choice [23]" \
		awk -f "$top/pipelines/questions.awk" odd.json
done
for k in 0 4 10; do
	sed "s/\"answer1\"/\"answer$k\"/" task.json >odd.json
	no "... answer $k of 3" 1 "odd.json:10: answer $k is none of its 3 choices" \
		awk -f "$top/pipelines/questions.awk" odd.json
done
grep -v '"answer": "answer2"' task.json >odd.json
no '... no answer' 1 'odd.json:8: a question before it has no answer' awk -f "$top/pipelines/questions.awk" odd.json
no '... a file of another kind' 1 'questions.awk: words.jsonl:.: holds no question' \
	awk -f "$top/pipelines/questions.awk" words.jsonl
sed 's/Answer2: x/Answer5: x/' task.json >odd.json
no '... a missing choice' 1 "odd.json:9: ' Answer2: ' is missing" awk -f "$top/pipelines/questions.awk" odd.json
done_testing
