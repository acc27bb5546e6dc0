/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenize -- convert text into token ids, or ids into text
 *
 * /tokens holds the ids, /bytes how many bytes of the text each stands for. With --bytes every byte is its
 * own id, and NUL stands as BOS, as byte-level models have it.
 */
#include "base/error.h"
#include "base/option.h"
#include "import/tokenize.h"

static const struct tool tool = {
	.name = "tokenize",
	.brief = "convert text into token ids, or ids into text",
	.operands = "[TEXT|TOKENS]",
	.max_operands = 1,
	.about = "Ids are those of the model's tokenizer.json; no BOS is added (evaluation and calibration "
		"do, by their --convention). Text need not be valid UTF-8: what is not counts as U+FFFD. "
		"Give one of --model and --bytes. With --decode the operand is a tokens file, and the result "
		"its text.",
	.examples = "  tokenize --bytes README.md -o text.h5\n"
		"  tokenize --bytes README.md | tokenize --bytes --decode -o text.md",
};

int main(int argc, char *argv[])
{
	const char *model;
	bool bytes, special, null, decoded;
	const struct option_row rows[] = {
		{ 0, "model", OPTION_FILE(&model), "MODEL",
			"use its tokenizer: a model file, or what model-import takes" },
		{ 0, "bytes", OPTION_BOOL(&bytes), NULL, "ids are bytes, 0 to 255" },
		{ 0, "special", OPTION_BOOL(&special), NULL, "read special tokens (<s>, ...) in the text" },
		{ '0', "null", OPTION_BOOL(&null), NULL, "NUL ends a text, each a sequence of its own" },
		{ 0, "decode", OPTION_BOOL(&decoded), NULL, "make a text of a tokens file" },
		{ .type = OPTION_END }
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct vocabulary v;

	if (!model == !bytes)
		misuse("exactly one of --model and --bytes is expected");
	option_idle(2, (const struct option_idle[]){ { decoded, "special null", "--decode" },
		{ bytes && !decoded, "special", "--bytes" } });
	v = vocabulary_open(model);
	if (decoded)
		vocabulary_decode(&v, c.operand[0], c.output);
	else
		vocabulary_encode(&v, c.operand[0], c.output, special, null);
	vocabulary_close(&v);
	return 0;
}
