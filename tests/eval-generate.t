#!/bin/sh
# eval-generate.t -- generated answers: ids, where texts end, filters, results and records; bad input
# Ids are compared with those that eval-choice finds most likely, texts with what a model was made to say.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# --- filters, on the texts of a model that says them ---
py cases
run() { eval-generate --bos no --questions cases.jsonl "$@"; }
run speaker.h5 -o cases.h5 >cases.tsv
ok 'both filters of each kind of match, and the results' py cases_are_right
run --json speaker.h5 >j; ok 'JSON' py as_json
run --until 2 speaker.h5 -o s.h5 --paired cases.h5 >p
ok '--until, and paired differences from a record without it' py paired
run speaker.h5 --paired cases.h5 >x
is 'paired with a record of the same run: no difference' "$(tail -n 1 x | cut -f7- | xargs)" '0 0 0 0'
cat speaker.h5 | run >x; ok 'the model from a pipe' cmp x cases.tsv
eval-generate --bos no --questions - speaker.h5 <cases.jsonl >x; ok 'questions from standard input' cmp x cases.tsv
run --limit 5 speaker.h5 >x; is '--limit' "$(tail -n 1 x | cut -f2)" 5

# --- where texts end: 0 an id, 1 a text, 2 --max, 3 the last position ---
ends() { eval-generate -q --bos no --questions ends.jsonl "$@" -o e.h5 >x; }
ends ends.h5; ok 'an end of the model, or a text: the first place of any' py ends e.h5 abcd:0 b:1 ':1'
ends --max 2 ends.h5; ok '--max' py ends e.h5 ab:2 bc:2 ':1'
ends --until c ends.h5; ok '--until besides the texts of the question' py ends e.h5 ab:1 b:1 ':1'
py generation other.h5 '{"eos_token_id": [99, 5]}'
ends other.h5; ok 'ends of generation_config.json' py ends e.h5 ab:0 b:0 ':1'
py generation other.h5 '{"eos_token_id": 100}'
ends other.h5; ok '... one id' py ends e.h5 abc:0 bc:0 ':1'
py generation other.h5 '{"do_sample": true}'
ends other.h5; ok '... without one: those of config.json' py ends e.h5 abcd:0 b:1 ':1'
eval-generate -q --bos no --questions short.jsonl short.h5 -o e.h5 >x
ok 'the last position of the model' py ends e.h5 abcdefgh:3 efgh:3 gh:3

# --- greedy decoding of all kinds of blocks ---
py make "$top/tests/ref"
for m in llama-gqa mistral-window gpt2 mixtral gemma2 neox-parallel opt qwen3-window; do
	eval-generate -q --max 6 --questions q.jsonl $m.h5 -o $m-r.h5 >x
	ok "$m: each id is the most likely one of a pass over the whole text" py greedy $m-r.h5 $m.h5
done
for m in llama-gqa mixtral; do
	for how in '--batch 1' '--batch 7' '--batch 40 -j 3' '-j 2' '--memory 0 -j 3'; do
		# shellcheck disable=SC2086
		eval-generate -q --max 6 --questions q.jsonl $how $m.h5 -o x.h5 >x
		ok "$m $how: the same bytes" cmp x.h5 $m-r.h5
	done
done
eval-generate -q --max 6 --kv-format int2 --questions q.jsonl llama-gqa.h5 -o x.h5 >x
msq-calib -q --kv-format int2 llama-gqa.h5 -o kv.h5
eval-generate -q --max 6 --questions q.jsonl kv.h5 -o y.h5 >x
ok 'keys and values are rounded as the model specifies' py same_ids x.h5 y.h5 yes
ok '... to other texts' py same_ids x.h5 llama-gqa-r.h5 no
model-import -q "$top/data/prose" -o prose.h5
py prose
eval-generate -q --max 24 --questions shots.jsonl prose.h5 -o shots.h5 >x
ok 'a common beginning, which is read once' py greedy shots.h5 prose.h5 shots.jsonl
for how in '--batch 5' '-j 3'; do
	# shellcheck disable=SC2086
	eval-generate -q --max 24 --questions shots.jsonl $how prose.h5 -o x.h5 >x
	ok "... $how: the same bytes" cmp x.h5 shots.h5
done
dpq-run -q --storage int4 --group 8 --compensate none llama-gqa.h5 -o int4.h5
for type in f32 bf16 int16; do
	eval-generate -q --max 6 --compute-type $type --questions q.jsonl int4.h5 -o w.h5 >x
	eval-generate -q --max 6 --compute-type $type --batch 3 -j 2 --questions q.jsonl int4.h5 -o x.h5 >x
	ok "packed words, --compute-type $type: the same bytes in other batches" cmp x.h5 w.h5
done

# --- bad input ---
refused() {	# refused NAME PATTERN LINE
	printf '%s\n' "$3" >bad.jsonl
	no "$1" 1 "bad.jsonl:1: $2" eval-generate --questions bad.jsonl llama-gqa.h5 -o bad.h5
}
q='"task": "a", "context": "c"'
refused 'no context' "'context' is missing" '{"task": "a", "answer": "b", "match": "exact"}'
refused 'no answer' "'answer' is missing, expected a text" "{$q, \"match\": \"exact\"}"
refused 'an answer that is not a text' "'answer' is a number, expected a text" \
	"{$q, \"answer\": 5, \"match\": \"exact\"}"
refused 'no match' "'match' is missing" "{$q, \"answer\": \"b\"}"
refused 'an empty answer' "'answer' is empty, expected a text" "{$q, \"answer\": \" \", \"match\": \"exact\"}"
refused 'an unknown match' "'match' is 'gsm', expected one of gsm8k, gsm8k-cot, exact" \
	"{$q, \"answer\": \"b\", \"match\": \"gsm\"}"
is 'every match is in --help and in the page' \
	"$(unnamed eval-generate --questions bad.jsonl llama-gqa.h5)" ''
refused 'until that is no array' "'until' is not an array, or empty, expected an array of texts" \
	"{$q, \"answer\": \"b\", \"match\": \"exact\", \"until\": \"x\"}"
refused 'until without a text' "'until' is not an array, or empty" \
	"{$q, \"answer\": \"b\", \"match\": \"exact\", \"until\": []}"
refused 'an empty text in until' "'until': number 1 is empty" \
	"{$q, \"answer\": \"b\", \"match\": \"exact\", \"until\": [\"x\", \"\"]}"
refused 'a name with an error' "'answers' is not a member of a question, expected 'answer'" "{$q, \"answers\": \"b\"}"
cp "$top/tests/fuzz/seeds/image/rgb8.png" a.png
refused 'images of a model without an encoder' 'has images, expected none: the model has no encoder' \
	"{$q, \"answer\": \"b\", \"match\": \"exact\", \"images\": [\"a.png\"]}"
printf '{"task": "a", "context": "c", "choices": ["a"], "gold": 0}\n' >choices.jsonl
no 'a question with choices' 1 "choices.jsonl:1: 'answer' is missing; a question with 'choices' is for eval-choice" \
	eval-generate --questions choices.jsonl llama-gqa.h5
no 'a question with an answer, in eval-choice' 1 \
	"q.jsonl:1: 'choices' is missing; a question with 'answer' is for eval-generate" \
	eval-choice --questions q.jsonl llama-gqa.h5
printf '{"task": "a", "context": "%09d", "answer": "a", "match": "exact"}\n' 0 >long.jsonl
no 'a context without a position left for an answer' 1 \
	"long.jsonl:1: 'context' has 9 tokens, expected fewer than the 9 positions of the model" \
	eval-generate --bos no --questions long.jsonl short.h5
py nan; no 'logits that are not finite' 1 'nan.h5: logits are not finite' eval-generate --questions q.jsonl nan.h5
no 'no --questions' 2 '--questions FILE is expected' eval-generate speaker.h5
no 'an empty --until' 2 '--until is empty' run --until '' speaker.h5
no 'an --until that is no UTF-8' 2 '--until is not valid UTF-8' run --until "$(printf 'a\377')" speaker.h5
no '--max 0' 2 '--max: ' run --max 0 speaker.h5
no '--batch 0' 2 '--batch: ' run --batch 0 speaker.h5
no 'a record of other questions' 1 'e.h5: has other questions than cases.jsonl' run --paired e.h5 speaker.h5
no 'a record of fewer questions' 1 'cases.h5: /question/tokens: has 29 questions, expected 5: use the same --limit' \
	run --limit 5 --paired cases.h5 speaker.h5
eval-choice -q --questions choices.jsonl llama-gqa.h5 -o choices.h5 >x
no 'a record of another tool' 1 'choices.h5: is not a record of eval-generate: /question/tokens is missing' \
	run --paired choices.h5 speaker.h5
py generation other.h5 '{"eos_token_id": "x"}'
no 'an end that is not an id' 1 "other.h5: /generation_config: 'eos_token_id' is not an id" ends other.h5
py generation other.h5 '{'
no 'a generation_config that is no JSON' 1 'other.h5: /generation_config: is not a JSON object' ends other.h5
warns '--special without a tokenizer' '--special .ids are bytes.' run --special speaker.h5
ok 'no result was written' test ! -e bad.h5
done_testing
