/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * aifs-order -- move visual tokens before text tokens (AIFS of MQuant)
 *
 * Attention-invariant flexible switching (MQuant section 4.1): the tokens of each sequence are put into two
 * stretches, and /index keeps the place that each had, from which the attention mask and the targets follow.
 * What a model computes of each token stays the same; static scales of two modalities (msq-calib) then need
 * no work for single tokens.
 */
#include "base/option.h"
#include "vision/aifs.h"

static const struct tool tool = {
	.name = "aifs-order",
	.brief = "move visual tokens before text tokens (AIFS of MQuant)",
	.operands = "[TOKENS]",
	.max_operands = 1,
	.about = "Within each sequence puts the tokens that /modality calls visual before those of text, "
		"each in their order, whatever spans of both follow each other. Positions, bytes and "
		"image spans go with their tokens; /index keeps the place that each had, and the forward "
		"pass masks by it, so that logits and likelihoods of all tokens stay what they were.",
	.examples = "  aifs-order test.h5 -o ordered.h5",
};

int main(int argc, char *argv[])
{
	const struct option_row rows[] = { { .type = OPTION_END } };
	struct command c = option_parse(argc, argv, &tool, rows);

	aifs_file(c.operand[0], c.output);
	return 0;
}
