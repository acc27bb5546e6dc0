#!/bin/sh
# questions-import.t -- prompts and choices of each task, written out in tests/tasks; bad items, broken files
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
tasks=$top/tests/tasks
# made NAME QUESTIONS TASK [OPTION...]: items.jsonl becomes tests/tasks/QUESTIONS-questions.jsonl
made() {
	name=$1 questions=$2 task=$3; shift 3
	ok "$name" questions-import --task "$task" "$@" items.jsonl -o got
	ok '... as written out' diff got "$tasks/$questions-questions.jsonl"
}

# --- the tasks ---
cp "$tasks/arc.jsonl" items.jsonl
made 'ARC: 3 and 5 choices, labels that are digits, the form of the authors' arc arc_easy
made '--limit' limit arc_challenge --limit 1
cp "$tasks/openbookqa.jsonl" items.jsonl
made 'OpenBookQA' openbookqa openbookqa
cp "$tasks/hellaswag.jsonl" items.jsonl
made 'HellaSwag: clean-up and capitalization' hellaswag hellaswag
cp "$tasks/piqa.jsonl" items.jsonl
made 'PIQA' piqa piqa
cp "$tasks/winogrande.jsonl" items.jsonl
made 'WinoGrande: a context for each option' winogrande winogrande
cp "$tasks/boolq.jsonl" items.jsonl
made 'BoolQ' boolq boolq
cp "$tasks/lambada.jsonl" items.jsonl
made 'LAMBADA' lambada lambada
made '... with the word as an answer' lambada_generated lambada_generated
cp got words.jsonl
cp "$tasks/mmlu.jsonl" items.jsonl
cp "$tasks/mmlu-examples.jsonl" examples.jsonl
made 'MMLU: the first examples of the subject' mmlu mmlu -n 2 --examples examples.jsonl
cp got mmlu.jsonl
no '... five by default' 1 'examples.jsonl has 3 examples of the subject school_math, expected 5' \
	questions-import --task mmlu --examples examples.jsonl items.jsonl -o bad
no '... which are needed' 2 '--task mmlu has 5 examples: --examples FILE is expected, or -n 0' \
	questions-import --task mmlu items.jsonl
warns 'an item that is also an example' 'items.jsonl:1: is also example 1 of items.jsonl: its answer is in its prompt' \
	questions-import --task mmlu -n 1 --examples items.jsonl --limit 1 items.jsonl -o got
# MMLU's own files: CSV without names, one subject
printf '\357\273\277"A ""q"", two\nlines",1,"2, 3",x,é,B\r\nplain,a,b,c,d,D' >items.jsonl
printf 'E,1,2,3,4,A\n' >e.csv
made 'MMLU from CSV' mmlu-csv mmlu -n 1 --examples e.csv --subject 'school math'
printf 'id,question,A,B,C,D,answer\n0,水____。,一,二,三,四,C\n' >items.jsonl
cp "$tasks/ceval-examples.jsonl" examples.jsonl
made 'C-Eval, from CSV with names' ceval ceval -n 1 --examples examples.jsonl --subject 法学
made '... without examples the description stays' ceval-0 ceval -n 0 --subject 法学
cp "$tasks/gsm8k.jsonl" items.jsonl
cp "$tasks/gsm8k-examples.jsonl" examples.jsonl
made 'GSM8K' gsm8k gsm8k -n 2 --examples examples.jsonl
cp "$tasks/gsm8k_cot-examples.jsonl" examples.jsonl
made 'GSM8K with written thoughts' gsm8k_cot gsm8k_cot -n 1 --examples examples.jsonl
cp got gsm8k.jsonl
made '... with the answer of the set in place of a target' gsm8k_cot-answer gsm8k_cot -n 1 --examples items.jsonl

# --- the evaluations read the questions ---
model-import -q "$top/data/prose" -o prose.h5
ok 'eval-choice reads them' eval-choice --questions mmlu.jsonl prose.h5
ok 'eval-generate reads them' eval-generate -q --max 4 --questions gsm8k.jsonl prose.h5
ok '... and words' eval-generate -q --max 4 --bos yes --questions words.jsonl prose.h5
ok 'from standard input to standard output' \
	sh -c 'questions-import --task gsm8k_cot -n 1 --examples examples.jsonl <items.jsonl | cmp - gsm8k.jsonl'

# --- capitalization and white space of Python, on all characters ---
ok 'capitalized and stripped as by Python, in prompts' py characters

# --- bad items ---
refused() {	# refused NAME TASK PATTERN LINE [OPTION...]
	name=$1 task=$2 pattern=$3; printf '\n%s\n' "$4" >bad.jsonl; shift 4
	no "$name" 1 "bad.jsonl:2: $pattern" questions-import --task "$task" "$@" bad.jsonl -o bad
}
refused 'a broken line' piqa 'is not valid JSON' '{"goal": "a", "sol'
refused 'no object' piqa 'is not a JSON object' '[1]'
refused 'a member twice' piqa 'is not valid JSON: duplicate' '{"goal": "a", "goal": "b"}'
refused 'no question' arc_easy "'question' is missing, expected a text" \
	'{"choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "A"}'
refused 'no choices' arc_easy "'choices' has no texts with a label each" '{"question": "q", "answerKey": "A"}'
refused 'a single choice' arc_easy "'choices' has one choice, expected two or more" \
	'{"question": "q", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "A"}'
refused 'a single ending' hellaswag "'endings' has one choice, expected two or more" \
	'{"activity_label": "A", "ctx_a": "B", "ctx_b": "c", "endings": ["a"], "label": 0}'
refused 'fewer labels than choices' arc_easy "'choices' has no texts with a label each" \
	'{"question": "q", "choices": {"text": ["a", "b"], "label": ["A"]}, "answerKey": "A"}'
refused 'no answer' arc_easy "'answerKey' is missing" \
	'{"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}}'
refused 'an empty answer' arc_easy "'answerKey' has no answer" \
	'{"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": ""}'
refused 'an answer that is no label' arc_easy "'answerKey' is 'C', expected the label of a choice" \
	'{"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"}'
refused 'an answer with two labels' arc_easy "'answerKey' is 'A', expected the label of one choice only" \
	'{"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "A"]}, "answerKey": "A"}'
refused 'an empty choice' arc_easy 'choice 1 is empty' \
	'{"question": "q", "choices": {"text": ["a", " "], "label": ["A", "B"]}, "answerKey": "A"}'
refused 'a choice that is not a text' arc_easy 'choice 1 is not a text' \
	'{"question": "q", "choices": {"text": ["a", 5], "label": ["A", "B"]}, "answerKey": "A"}'
equal='{"goal": "g", "sol1": "a", "sol2": "a", "label": 0}'
refused 'equal choices' piqa "choices 0 and 1 are equal, 'a'" "$equal"
ok '... --equal accepts them' questions-import --task piqa --equal bad.jsonl -o equal
refused 'choices that the clean-up makes equal' hellaswag 'choices 1 and 2 are equal' \
	'{"activity_label": "A", "ctx_a": "B", "ctx_b": "c", "endings": ["a", "b", "[x]b"], "label": 0}'
refused 'a choice that the clean-up makes empty' hellaswag 'choice 2 is empty' \
	'{"activity_label": "A", "ctx_a": "B", "ctx_b": "c", "endings": ["a", "b", "[x]"], "label": 0}'
for label in 2 '"2"' -2 99999999999999999999; do
	refused "label $label" piqa \
		"'label' is [-0-9]+, expected the number of a choice, 0 to 1|not valid JSON: too big" \
		'{"goal": "g", "sol1": "a", "sol2": "b", "label": '"$label}"
done
for label in 0.5 '"x"' '"1 "' '"+1"' '[]'; do
	refused "label $label" piqa "'label' is not the number of a choice" \
		'{"goal": "g", "sol1": "a", "sol2": "b", "label": '"$label}"
done
for label in -1 '""'; do
	refused "label $label, no answer" piqa "'label' has no answer, as in a set whose answers are not public" \
		'{"goal": "g", "sol1": "a", "sol2": "b", "label": '"$label}"
done
for label in '' ', "label": null'; do
	refused "no label ($label)" piqa "'label' is missing" '{"goal": "g", "sol1": "a", "sol2": "b"'"$label}"
done
refused 'WinoGrande without an answer' winogrande "'answer' has no answer" \
	'{"sentence": "a _ b", "option1": "x", "option2": "y", "answer": ""}'
refused '... with option 0' winogrande "'answer' is 0, expected the number of a choice, 1 to 2" \
	'{"sentence": "a _ b", "option1": "x", "option2": "y", "answer": "0"}'
refused '... without a gap' winogrande "'sentence' has no gap, expected a '_'" \
	'{"sentence": "a b", "option1": "x", "option2": "y", "answer": "1"}'
refused '... that ends in the gap' winogrande "'sentence' has no text after the gap" \
	'{"sentence": "a _ ", "option1": "x", "option2": "y", "answer": "1"}'
refused '... with equal options' winogrande "choices 0 and 1 are equal" \
	'{"sentence": "a _ b", "option1": "x", "option2": "x", "answer": "1"}'
refused 'LAMBADA whose answer has a line break' lambada_generated "'text' has a line break after its last blank" \
	'{"text": "a b\nc"}'
refused 'LAMBADA that ends in a blank' lambada "'text' has no word after its last blank" '{"text": "a b "}'
refused 'GSM8K without a number' gsm8k "'answer' does not end in '#### ' and a number" \
	'{"question": "q", "answer": "3"}' -n 0
refused '... without one after the mark' gsm8k "'answer' does not end in '#### ' and a number" \
	'{"question": "q", "answer": "#### 3 #### "}' -n 0
refused '... without a blank after the mark' gsm8k "'answer' does not end in '#### ' and a number" \
	'{"question": "q", "answer": "####3"}' -n 0
refused '... with a number in words' gsm8k "'answer' does not end in '#### ' and a number" \
	'{"question": "q", "answer": "x #### two"}' -n 0
refused '... with a line after it' gsm8k_cot "'answer' does not end in '#### ' and a number" \
	'{"question": "q", "answer": "x #### 4\nmore"}' -n 0
refused 'WinoGrande with true for an answer' winogrande "'answer' is not the number of a choice" \
	'{"sentence": "a _ b", "option1": "x", "option2": "y", "answer": true}'
four='"question": "q", "choices": ["a", "b", "c", "d"]'
refused 'MMLU with three choices' mmlu "'choices' is not an array of 4 texts" \
	'{"question": "q", "choices": ["a", "b", "c"], "answer": 0}' -n 0 --subject s
refused '... with equal choices' mmlu "choices 0 and 3 are equal, 'a'" \
	'{"question": "q", "choices": ["a", "b", "c", "a"], "answer": 0}' -n 0 --subject s
refused '... with a choice that is no text' mmlu "'choices' is not an array of 4 texts" \
	'{"question": "q", "choices": ["a", "b", "c", 4], "answer": 0}' -n 0 --subject s
refused '... with a subject that is no text' mmlu "'subject' is not a text" \
	"{$four, \"answer\": 0, \"subject\": 5}" -n 0
refused '... with an empty subject' mmlu "'subject' is empty" "{$four, \"answer\": 0, \"subject\": \"\"}" -n 0
refused '... with an empty --subject' mmlu "--subject is empty" "{$four, \"answer\": 0}" -n 0 --subject ''
refused '... without a subject' mmlu "'subject' is missing, and there is no --subject" "{$four, \"answer\": 0}" -n 0
refused '... of another subject' mmlu "'subject' is 'law', expected 's', that of --subject" \
	"{$four, \"answer\": 0, \"subject\": \"law\"}" -n 0 --subject s
refused '... with the answer E' mmlu "'answer' is 'E', expected the label of a choice" "{$four, \"answer\": \"E\"}" \
	-n 0 --subject s
refused '... with the answer 4' mmlu "'answer' is 4, expected the number of a choice, 0 to 3" "{$four, \"answer\": 4}" \
	-n 0 --subject s
printf '{"question": "q", "answer": "1"}\n' >e.jsonl
printf '{"question": "q", "answer": "#### 1"}\n' >items.jsonl
no 'an example without an answer' 1 "e.jsonl:1: 'answer' does not end in '#### ' and a number" \
	questions-import --task gsm8k -n 1 --examples e.jsonl items.jsonl
no 'fewer examples than needed' 1 'items.jsonl has 1 examples, expected 5' \
	questions-import --task gsm8k --examples items.jsonl items.jsonl

# --- broken files ---
csv() {	# csv NAME LINE PATTERN TEXT
	printf "$4" >bad.csv
	no "$1" 1 "bad.csv:$2: $3" questions-import --task mmlu -n 0 --subject s bad.csv -o bad
}
csv 'a row that is cut short' 3 'has 3 cells, expected 6' 'q,a,b,c,d,A\n\nq,a,b'
csv 'quotes that do not end' 2 'a cell in quotes does not end' 'q,a,b,c,d,A\n"q,a\n'
csv 'text after quotes' 1 'a cell has text after its quotes' '"q"x,a,b,c,d,A\n'
csv 'names without the answer' 2 "'answer' is missing" 'id,question,A,B,C,D\n0,q,a,b,c,d\n'
csv 'two columns of a name' 1 "has two columns 'A'" 'question,A,A,B,C,D,answer\n'
csv 'a row after blank lines that end in CR' 4 'has 1 cells, expected 6' '\r\nq,a,b,c,d,A\r\n\r\nq\r\n'
csv 'no UTF-8' 1 'cell 2 is not valid UTF-8' 'q,\377,b,c,d,A\n'
csv 'a row after one of several lines' 3 "'answer' is 'X'" '"q\n",a,b,c,d,A\nq,a,b,c,d,X\n'
printf 'q,\0' >bad.csv
no 'a NUL' 1 'bad.csv: is neither JSON lines nor CSV: it has a NUL' \
	questions-import --task mmlu -n 0 --subject s bad.csv
printf 'PAR1\0\0' >x.parquet
no 'Parquet' 1 'x.parquet: is a Parquet file, expected JSON lines: pipelines/lib/parquet.py prints them' \
	questions-import --task piqa x.parquet
printf 'x' | gzip >x.gz
no 'gzip' 1 'x.gz: is compressed by gzip: gzip -dc prints its contents' questions-import --task piqa x.gz
printf '[x],question,answer,c,d,A\n' >x.csv
ok 'CSV with a bracket, and with names as choices' questions-import --task mmlu -n 0 --subject s x.csv -o x
: >empty; no 'no item' 1 'empty: holds no item' questions-import --task piqa empty
printf 'q,a,b,c,d,A\n' >rows.csv
no 'CSV of a task without it' 1 'rows.csv:1: is not valid JSON' questions-import --task piqa rows.csv

# --- the command line ---
no 'no task' 2 '--task NAME is expected' questions-import items.jsonl
no 'an unknown task' 2 "--task is 'arc', expected one of arc_easy, arc_challenge, .*, gsm8k_cot" \
	questions-import --task arc items.jsonl
is 'every task is in --help and in the page' "$(unnamed questions-import --task - items.jsonl)" ''
no 'examples of a task without them' 2 'piqa does not use it' questions-import --task piqa --examples x items.jsonl
no 'a subject of a task without it' 2 'piqa does not use it' questions-import --task piqa --subject x items.jsonl
warns 'examples that are not used' 'without effect here: --examples .-n 0.' \
	questions-import --task gsm8k -n 0 --examples none items.jsonl -o zero
no 'a result over the items' 1 'is an input' sh -c 'questions-import --task gsm8k -n 0 items.jsonl 1<>items.jsonl'

# --- Parquet ---
parquet=$top/pipelines/lib/parquet.py	# tests/doors/questions-import.t has files
no 'Python without pyarrow' 1 'has no pyarrow, which reads Parquet files' python3 -S -E "$parquet" x.parquet
no 'Parquet without a file' 1 'usage: parquet.py FILE' python3 "$parquet"
done_testing
