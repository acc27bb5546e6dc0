#!/usr/bin/awk -f
# prompts.awk -- texts and images of eval-choice's questions (JSON lines), each with its right answer
#
#	awk -v what=texts -f prompts.awk FILE.jsonl | tr '\036' '\000' | tokenize --null --special --model MODEL
#	awk -v what=images -f prompts.awk FILE.jsonl
#	awk -v what=texts|images -f prompts.awk draw=K FILE.jsonl
#
# texts: for each question its context, followed by the gold choice and byte 036, which no text contains.
# images: the names of its images, one per line, in the order of the questions. Locale C: texts are bytes. draw=K: as
# many questions at random, with repetition. K, from 0 on, determines which: texts and images belong to each other.
function fail(what) {
	what = "prompts.awk: " FILENAME ":" FNR ": " what
	gsub(/[\001-\037\177]/, "?", what)
	print what > "/dev/stderr"
	failed = 1
	exit 1
}
function cut(pattern,  y) {	# the part of `rest` that the pattern matches, without leading white space
	sub(/^[ \t\r]+/, "", rest)
	if (!match(rest, "^" pattern)) fail("'" substr(rest, 1, 20) "' is not what a JSON object has there")
	y = substr(rest, 1, RLENGTH)
	rest = substr(rest, RLENGTH + 1)
	return y
}
function next_is(c) { sub(/^[ \t\r]+/, "", rest); return substr(rest, 1, 1) == c }
function hex(digits,  i, n) {
	for (i = 1; i <= length(digits); i++) n = 16 * n + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
	return n
}
function utf8(n) {
	if (n < 128) return sprintf("%c", n)
	if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
	if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
	return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64,
		128 + n % 64)
}
function text(  raw, y, i, c, n) {	# the string at the start of `rest`
	raw = cut("\"([^\"\\\\]|\\\\.)*\"")
	raw = substr(raw, 2, length(raw) - 2)
	while ((i = index(raw, "\\"))) {
		y = y substr(raw, 1, i - 1)
		c = substr(raw, i + 1, 1)
		raw = substr(raw, i + 2)
		if (c != "u") { y = y (c in plain ? plain[c] : c); continue }
		n = hex(substr(raw, 1, 4))
		raw = substr(raw, 5)
		if (n >= 55296 && n < 56320 && substr(raw, 1, 2) == "\\u") {	# the first of a surrogate pair
			n = 65536 + (n - 55296) * 1024 + hex(substr(raw, 3, 4)) - 56320
			raw = substr(raw, 7)
		}
		if (n == 0 || n == 30) fail("a text has a control character that ends texts")
		y = y utf8(n)
	}
	return y raw
}
# an array: its texts go to list[to, 1 ...], their number to list[to]; a text or number goes to list[to]
function value(to,  n) {
	if (next_is("\"")) { list[to] = text(); return }
	if (!next_is("[")) { list[to] = cut("(-?[0-9][0-9.eE+-]*|true|false|null)"); return }
	cut("\\[")
	is_array[to] = 1
	while (!next_is("]")) { list[to, ++n] = text(); if (!next_is("]")) cut(",") }
	cut("\\]")
	list[to] = n + 0
}
BEGIN {
	plain["n"] = "\n"; plain["t"] = "\t"; plain["r"] = "\r"; plain["b"] = "\b"; plain["f"] = "\f"
	if (what != "texts" && what != "images") {
		print "prompts.awk: -v what=texts or images is expected" > "/dev/stderr"
		failed = 1
		exit 2
	}
}
/[^ \t\r]/ {
	rest = $0
	split("", list)
	split("", is_array)
	cut("{")
	while (!next_is("}")) { name = text(); cut(":"); value(name); if (!next_is("}")) cut(",") }
	if (!(("choices", list["gold"] + 1) in list) || !("context" in list))
		fail("is not a question with a context and a gold choice")
	if ("images" in list && !is_array["images"]) fail("'images' is not an array, expected the names of files")
	y = what == "texts" ? list["context"] list["choices", list["gold"] + 1] "\036" : ""
	for (i = 1; what == "images" && i <= list["images"]; i++) y = y list["images", i] "\n"
	question[++questions] = y
}
# a number from 0 to n - 1, by the generator of Lewis, Goodman and Miller
function random(n) { state = 16807 * state % 2147483647; return int(n * state / 2147483647) }
END {
	if (!failed && !questions) fail("holds no question")
	state = 1
	for (i = draw * questions; i >= 0; i--) random(questions)
	for (i = 1; !failed && i <= questions; i++) {
		y = question[draw == "" ? i : 1 + random(questions)]
		printf "%s", y
		images += what == "images" && y != ""
	}
	if (!failed && what == "images" && draw != "" && !images)
		fail("draw " draw " has no image, expected more questions with images")
}
