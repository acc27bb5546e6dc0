/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenize -- convert text into token ids, or ids into text
 *
 * /tokens stores the ids, /bytes the number of bytes of the text that each id covers. With --bytes every
 * byte is an id, and NUL is BOS, as in byte-level models.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "import/tokenize.h"

static const struct tool tool = {
	.name = "tokenize",
	.brief = "convert text into token ids, or ids into text",
	.operands = "[TEXT|CONVERSATIONS|TOKENS]",
	.max_operands = 1,
	.about = "Ids are those of the model's tokenizer.json, or bytes for a model with 256 ids and no "
		"tokenizer. No BOS is added: evaluation and calibration add it, by --convention. "
		"Bytes that are not valid UTF-8 count as U+FFFD. Exactly one of --model and --bytes is "
		"required. With --decode the operand is a tokens file, and the result is its text. "
		"With --chat it has conversations, one per line in JSON: a list of messages "
		"{\"role\": ..., \"content\": ...}, or an object with such a list as messages, and "
		"optionally tools. Each becomes a sequence: the text that the model's chat template "
		"makes of it (add_generation_prompt is false), with special tokens.",
	.examples = "  tokenize --bytes README.md -o text.h5\n"
		"  tokenize --bytes README.md | tokenize --bytes --decode -o text.md\n"
		"  echo '[{\"role\": \"user\", \"content\": \"once\"}]' > conversations.jsonl\n"
		"  tokenize --chat --model instruct conversations.jsonl -o calib.h5",
};

/* Whether a text is a date YYYY-MM-DD. */
static bool is_date(const char *s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, m, d, n = 0;

	if (strspn(s, "0123456789-") != 10 || sscanf(s, "%4d-%2d-%2d%n", &y, &m, &d, &n) != 3 || n != 10 ||
	    s[10] || s[4] != '-' || s[7] != '-' || y < 1000 || m < 1 || m > 12)
		return false;
	return d >= 1 && d <= days[m - 1] + (m == 2 && !(y % 4) && (y % 100 || !(y % 400)));
}

int main(int argc, char *argv[])
{
	const char *model, *template, *date;
	bool bytes, special, null, decoded, chat;
	const struct option_row rows[] = {
		{ 0, "model", OPTION_FILE(&model), "MODEL",
			"model or checkpoint with the tokenizer" },
		{ 0, "bytes", OPTION_BOOL(&bytes), NULL, "one id per byte, 0 to 255" },
		{ 0, "special", OPTION_BOOL(&special), NULL, "read special tokens (<s>, ...) in the text" },
		{ '0', "null", OPTION_BOOL(&null), NULL, "split the input into texts at NUL bytes" },
		{ 0, "chat", OPTION_BOOL(&chat), NULL, "read conversations, and apply the chat template" },
		{ 0, "template", OPTION_TEXT(&template), "NAME", "name of the chat template",
			.default_value = "default" },
		{ 0, "date", OPTION_TEXT(&date), "YYYY-MM-DD", "date for chat templates that ask for one" },
		{ 0, "decode", OPTION_BOOL(&decoded), NULL, "convert a tokens file into text" },
		{ .type = OPTION_END }
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct vocabulary v;

	if (!model == !bytes)
		misuse("exactly one of --model and --bytes is expected");
	if (chat && (bytes || decoded || null))
		misuse("--chat is given with %s, expected --model alone",
			bytes ? "--bytes" : decoded ? "--decode" : "--null");
	if (date && !is_date(date))
		misuse("--date: '%s' is not a date, expected YYYY-MM-DD", date);
	option_without_effect(4, (const struct option_without_effect[]){
		{ decoded, "special null", "--decode" },
		{ bytes && !decoded, "special", "--bytes" },
		{ chat, "special", "--chat" },
		{ !chat, "template date", "no --chat" } });
	v = vocabulary_open(model);
	option_without_effect(1, &(struct option_without_effect){
		model && !v.t, "special", "ids are bytes" });
	if (chat)
		vocabulary_encode_chat(&v, c.operand[0], c.output, template, date);
	else if (decoded)
		vocabulary_decode(&v, c.operand[0], c.output);
	else
		vocabulary_encode(&v, c.operand[0], c.output, special, null);
	vocabulary_close(&v);
	return 0;
}
