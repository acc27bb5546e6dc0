/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * aifs-order -- move visual tokens before text tokens (AIFS of MQuant)
 *
 * Attention-invariant flexible switching (MQuant section 4.1). Visual tokens of a sequence come first,
 * text tokens follow. /index stores the original position of each token; attention mask and targets follow
 * from it, so the outputs for each token stay equal. Static scales of two modalities (msq-calib) then need
 * no work for single tokens.
 */
#include "base/option.h"
#include "vision/aifs.h"

static const struct tool tool = {
	.name = "aifs-order",
	.brief = "move visual tokens before text tokens (AIFS of MQuant)",
	.operands = "[TOKENS]",
	.max_operands = 1,
	.about = "Within each sequence, moves visual tokens before text tokens; both keep their "
		"order. Positions, bytes and image spans are moved with their tokens. /index stores "
		"the original position of each token. The forward pass masks by it, so the logits "
		"and likelihoods of all tokens stay equal.",
	.examples = "  aifs-order test.h5 -o ordered.h5",
};

int main(int argc, char *argv[])
{
	const struct option_row rows[] = { { .type = OPTION_END } };
	struct command c = option_parse(argc, argv, &tool, rows);

	aifs_file(c.operand[0], c.output);
	return 0;
}
