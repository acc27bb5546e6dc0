/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * images-import -- insert images into a tokens file
 *
 * Each placeholder id becomes as many ids as the model has tokens for the image. Images are stored as
 * decoded: the processor that scales them is stored with the model.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/option.h"
#include "model/tokens.h"
#include "vision/images_import.h"

static const struct tool tool = {
	.name = "images-import",
	.brief = "insert images into a tokens file",
	.operands = "[IMAGE]...",
	.max_operands = SIZE_MAX,
	.about = "An IMAGE is a PNG, JPEG, PPM or PGM file. TOKENS has one placeholder of the model "
		"for each IMAGE, in their order, over all sequences. Each placeholder becomes as "
		"many ids as the model has tokens for the image.",
	.examples = "  printf 'Which one is this? \\1' | tokenize --bytes -o text.h5\n"
		"  images-import --model llava.h5 --tokens text.h5 picture.png -o prompt.h5",
};

int main(int argc, char *argv[])
{
	const char *model, *tokens;
	bool force;
	const struct option_row rows[] = {
		{ 0, "model", OPTION_FILE(&model), "MODEL",
			"model, with its image processor" },
		{ 0, "tokens", OPTION_FILE(&tokens), "TOKENS",
			"token ids, with a placeholder per image" },
		OPTION_FORCE_TOKENS(&force),
		{ .type = OPTION_END }
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	if (!model)
		misuse("--model FILE is expected");
	if (!tokens)
		misuse("--tokens FILE is expected");
	images_import(c.output, model, tokens, force, c.operands, c.operand);
	return 0;
}
