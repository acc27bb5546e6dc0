/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenize -- convert text into token ids, or ids into text
 *
 * /tokens stores the ids, /bytes the number of bytes of the text that each id covers. With --bytes every
 * byte is an id, and NUL is BOS, as in byte-level models.
 */
#include "base/error.h"
#include "base/option.h"
#include "import/tokenize.h"

static const struct tool tool = {
	.name = "tokenize",
	.brief = "convert text into token ids, or ids into text",
	.operands = "[TEXT|TOKENS]",
	.max_operands = 1,
	.about = "Ids are those of the model's tokenizer.json. No BOS is added: evaluation and "
		"calibration add it, by --convention. Bytes that are not valid UTF-8 count as "
		"U+FFFD. Exactly one of --model and --bytes is required. With --decode the operand "
		"is a tokens file, and the result is its text.",
	.examples = "  tokenize --bytes README.md -o text.h5\n"
		"  tokenize --bytes README.md | tokenize --bytes --decode -o text.md",
};

int main(int argc, char *argv[])
{
	const char *model;
	bool bytes, special, null, decoded;
	const struct option_row rows[] = {
		{ 0, "model", OPTION_FILE(&model), "MODEL",
			"model or checkpoint with the tokenizer" },
		{ 0, "bytes", OPTION_BOOL(&bytes), NULL, "one id per byte, 0 to 255" },
		{ 0, "special", OPTION_BOOL(&special), NULL, "read special tokens (<s>, ...) in the text" },
		{ '0', "null", OPTION_BOOL(&null), NULL, "split the input into texts at NUL bytes" },
		{ 0, "decode", OPTION_BOOL(&decoded), NULL, "convert a tokens file into text" },
		{ .type = OPTION_END }
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct vocabulary v;

	if (!model == !bytes)
		misuse("exactly one of --model and --bytes is expected");
	option_without_effect(2, (const struct option_without_effect[]){
		{ decoded, "special null", "--decode" },
		{ bytes && !decoded, "special", "--bytes" } });
	v = vocabulary_open(model);
	if (decoded)
		vocabulary_decode(&v, c.operand[0], c.output);
	else
		vocabulary_encode(&v, c.operand[0], c.output, special, null);
	vocabulary_close(&v);
	return 0;
}
