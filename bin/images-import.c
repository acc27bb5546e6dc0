/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * images-import -- insert images into a tokens file
 *
 * Each id that stands for an image becomes as many as the model has tokens for it; the images are kept as
 * decoded, since the processor that scales them travels with the model.
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
	.about = "An IMAGE is a PNG, JPEG, PPM or PGM file. TOKENS has the model's placeholder once for "
		"each, in their order, over all of its sequences; it becomes as many ids as the picture has "
		"tokens, by the size that the model's processor gives it.",
	.examples = "  printf 'Which one is this? \\1' | tokenize --bytes -o text.h5\n"
		"  images-import --model llava.h5 --tokens text.h5 picture.png -o prompt.h5",
};

int main(int argc, char *argv[])
{
	const char *model, *tokens;
	bool force;
	const struct option_row rows[] = {
		{ 0, "model", OPTION_FILE(&model), "MODEL",
			"the model that is to see the pictures, with its processor" },
		{ 0, "tokens", OPTION_FILE(&tokens), "TOKENS",
			"the text's ids, with a placeholder for each picture" },
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
