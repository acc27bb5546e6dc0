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
# An item of the first form has the members of ARC and OpenBookQA. Escapes in texts are unchanged.
function fail(what) { print "questions.awk: " FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }
function cut(mark,  i, before) {	# the part of `rest` before the mark; `rest` becomes the part after it
	i = index(rest, mark)
	if (!i) fail("'" mark "' is missing, expected a question with its choices")
	before = substr(rest, 1, i - 1)
	rest = substr(rest, i + length(mark))
	return before
}
/^[ \t]*"instruction": "/ {
	if (answers) fail("a question before it has no answer")
	rest = $0
	options = rest ~ /Answer format: option1\/option2"/
	name = options ? "Option" : "Answer"
	cut(options ? "sentence: " : "question: ")
	question = cut("\\n\\n" name "1: ")
	all = cut(options ? " Answer format: " : "\\n\\nAnswer format: ")
	answers = split(rest, names, "/")
	rest = all
	for (k = 1; k < answers; k++) text[k] = cut(" " name k + 1 ": ")
	text[answers] = rest
	for (k = 1; k <= answers; k++)
		if (match(" " text[k] " ", "(\\\\n| )" name "[0-9]+: "))
			fail("'" substr(" " text[k] " ", RSTART, RLENGTH) "' is in choice " k)
}
/^[ \t]*"answer": "/ {
	if (!answers) fail("an answer without a question")
	if ($0 !~ (options ? "\"option[12]\"" : "\"answer[0-9]+\"")) fail("is no answer of its question")
	match($0, /[0-9]+/)
	answer = substr($0, RSTART, RLENGTH) + 0
	if (answer < 1 || answer > answers) fail("answer " answer " is none of its " answers " choices")
	if (options) {
		printf "{\"sentence\": \"%s\", \"option1\": \"%s\", \"option2\": \"%s\", ", question, text[1], text[2]
		printf "\"answer\": \"%s\"}\n", answer
	} else {
		texts = labels = ""
		for (k = 1; k <= answers; k++) {
			texts = texts (k > 1 ? ", " : "") "\"" text[k] "\""
			labels = labels (k > 1 ? ", " : "") "\"" k "\""
		}
		printf "{\"question\": \"%s\", \"question_stem\": \"%s\", ", question, question
		printf "\"choices\": {\"label\": [%s], \"text\": [%s]}, \"answerKey\": \"%s\"}\n", labels, texts, answer
	}
	answers = 0
	written++
}
END {
	if (failed) exit 1
	if (answers) fail("its last question has no answer")
	if (!written) fail("holds no question")
}
