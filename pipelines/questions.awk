#!/usr/bin/awk -f
# questions.awk -- items for questions-import, of questions with the choices in the text of an instruction
#
#	awk -f questions.awk FILE.json | questions-import --task arc_easy >questions.jsonl
#
# FILE.json: an array of objects with "instruction" and "answer" ("answer2", "option2"), one member per line, as ARC,
# OpenBookQA and WinoGrande are published for instruction tuning:
#
#	"...question: Q\n\nAnswer1: A Answer2: B ...\n\nAnswer format: answer1/answer2/..."
#	"...sentence: S\n\nOption1: A Option2: B Answer format: option1/option2"
#
# An item has the members of all these sets. Escapes in texts are unchanged.
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
	name = rest ~ /\\n\\nOption1: / ? "Option" : "Answer"
	cut(name == "Option" ? "sentence: " : "question: ")
	question = cut("\\n\\n" name "1: ")
	all = cut((name == "Option" ? "" : "\\n\\n") "Answer format: ")
	sub(/ $/, "", all)
	n = split(rest, names, "/")
	rest = all
	texts = labels = options = ""
	for (k = 1; k <= n; k++) {
		text = k < n ? cut(" " name k + 1 ": ") : rest
		texts = texts (k > 1 ? ", " : "") "\"" text "\""
		labels = labels (k > 1 ? ", " : "") "\"" k "\""
		options = options "\"option" k "\": \"" text "\", "
	}
}
/^[ \t]*"answer": "(answer|option)[0-9]+"/ {
	if (texts == "") fail("an answer without a question")
	match($0, /[0-9]+/)
	answer = substr($0, RSTART, RLENGTH)
	printf "{\"question\": \"%s\", \"question_stem\": \"%s\", \"choices\": {\"label\": [%s], \"text\": [%s]}, ",
		question, question, labels, texts
	printf "\"answerKey\": \"%s\", \"sentence\": \"%s\", %s\"answer\": \"%s\"}\n", answer, question, options, answer
	texts = ""
	written++
}
END { if (!failed && !written) fail("holds no question") }
