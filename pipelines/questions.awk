#!/usr/bin/awk -f
# questions.awk -- items for questions-import, of questions with the choices in the text of an instruction
#
#	awk -f questions.awk FILE.json | questions-import --task arc_easy >questions.jsonl
#
# FILE.json: an array of objects with "instruction" ("...question: Q\n\nAnswer1: A Answer2: B ...\n\nAnswer format:
# answer1/answer2/...") and "answer" ("answer2"), one member per line, as ARC and OpenBookQA are published for
# instruction tuning. An item has the members of both sets. Escapes in texts are unchanged.
function fail(what) { print "questions.awk: " FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }
function cut(mark,  i, before) {	# the part of `rest` before the mark; `rest` becomes the part after it
	i = index(rest, mark)
	if (!i) fail("'" mark "' is missing, expected a question with its choices")
	before = substr(rest, 1, i - 1)
	rest = substr(rest, i + length(mark))
	return before
}
/^[ \t]*"instruction": "/ {
	rest = $0
	cut("question: ")
	question = cut("\\n\\nAnswer1: ")
	all = cut("\\n\\nAnswer format: ")
	n = split(rest, names, "/")
	rest = all
	texts = labels = ""
	for (k = 2; k <= n; k++) { texts = texts "\"" cut(" Answer" k ": ") "\", "; labels = labels "\"" k - 1 "\", " }
	texts = texts "\"" rest "\""
	labels = labels "\"" n "\""
}
/^[ \t]*"answer": "answer[0-9]+"/ {
	if (texts == "") fail("an answer without a question")
	match($0, /[0-9]+/)
	printf "{\"question\": \"%s\", \"question_stem\": \"%s\", \"choices\": {\"label\": [%s], \"text\": [%s]}, ",
		question, question, labels, texts
	printf "\"answerKey\": \"%s\"}\n", substr($0, RSTART, RLENGTH)
	texts = ""
	written++
}
END { if (!failed && !written) fail("holds no question") }
