#!/usr/bin/awk -f
# questions.awk -- converts questions with the choices in the text of an instruction to JSON lines for eval-choice
#
#	awk -v task=NAME -f questions.awk FILE.json >FILE.jsonl
#
# FILE.json: an array of objects with "instruction" ("...question: Q\n\nAnswer1: A Answer2: B ...\n\nAnswer format:
# answer1/answer2/...") and "answer" ("answer2"), one member per line, as ARC and OpenBookQA are published for
# instruction tuning. A context becomes "Question: Q\nAnswer: ". Escapes in texts are unchanged.
function fail(what) { print "questions.awk: " FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }
function cut(mark,  i, before) {	# the part of `rest` before the mark; `rest` becomes the part after it
	i = index(rest, mark)
	if (!i) fail("'" mark "' is missing, expected a question with its choices")
	before = substr(rest, 1, i - 1)
	rest = substr(rest, i + length(mark))
	return before
}
BEGIN { if (task == "") { print "questions.awk: -v task=NAME is expected" > "/dev/stderr"; failed = 1; exit 2 } }
/^[ \t]*"instruction": "/ {
	rest = $0
	cut("question: ")
	question = cut("\\n\\nAnswer1: ")
	all = cut("\\n\\nAnswer format: ")
	n = split(rest, names, "/")
	rest = all
	choices = ""
	for (k = 2; k <= n; k++) choices = choices "\"" cut(" Answer" k ": ") "\", "
	choices = choices "\"" rest "\""
}
/^[ \t]*"answer": "answer[0-9]+"/ {
	if (choices == "") fail("an answer without a question")
	match($0, /[0-9]+/)
	printf "{\"task\": \"%s\", \"context\": \"Question: %s\\nAnswer: \", \"choices\": [%s], \"gold\": %d}\n",
		task, question, choices, substr($0, RSTART, RLENGTH) - 1
	choices = ""
	written++
}
END { if (!failed && !written) fail("holds no question") }
