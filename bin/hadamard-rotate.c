/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard-rotate -- rotate a model by Hadamard matrices (QuaRot)
 *
 *	residual stream		Q = D H/√n, randomized: x ← x Q (QuaRot; MQuant appendix A.7)
 *	values of each head	H/√n
 *	before down		H/√n, which the forward pass applies (online), W ← W H/√n
 *	queries and keys	H/√n after rotary positions, in the forward pass (--keys)
 *
 * The outputs of the model stay equal.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "forward/check.h"
#include "num/linalg.h"
#include "quant/linear.h"
#include "transform/rewrite.h"
#include "transform/rotation.h"

static const struct tool tool = {
	.name = "hadamard-rotate",
	.brief = "rotate a model by Hadamard matrices (QuaRot)",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Folds the gains of RMS norms into the layers after them. Rotates the residual "
		"stream by a randomized Hadamard matrix, the values of each head by another, and the "
		"inputs of down projections by one that the forward pass applies. The outputs of the "
		"model stay equal; its weights and activations are easier to round. LayerNorms must "
		"be converted by ln2rms first.",
	.examples = "  hadamard-rotate --seed 1 --check model.h5 -o rotated.h5\n"
		"  hadamard-rotate --block 32 model.h5 |\n"
		"    dpq-run -q --compensate none --group 32 -o q.h5",
};

int main(int argc, char *argv[])
{
	struct rotation_options o;
	const char *load;
	struct rewrite rewrite = { .change = { .fold = true } };
	bool check, language;
	const struct option_row rows[] = {
		OPTION_SEED(&o.seed),
		{ 0, "block", OPTION_SIZE(&o.block), "B",
			"rotate blocks of B channels", .min = 2,
			.max = LINEAR_MAX },
		{ 0, "load", OPTION_FILE(&load), "FILE", "rotate the residual stream by this matrix" },
		{ 0, "offline", OPTION_BOOL(&o.offline), NULL, "do not rotate inputs of down projections" },
		{ 0, "keys", OPTION_BOOL(&o.keys), NULL,
			"also rotate queries and keys" },
		OPTION_LANGUAGE(&language),
		OPTION_CHECK(&check),
		OPTION_DTYPE(&rewrite.dtype),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();
	struct filter f = rewrite_open(c.operand[0], c.output);
	struct part *learned = load ? part_open(load, "rotation") : NULL;
	struct rotations rotations;
	char *settings;

	rewrite_exclude_encoder(&rewrite, &f, language);
	option_without_effect(1, &(struct option_without_effect){
		load && (language || !f.config->vision.class), "seed", "--load" });
	rotations = rotations_make(f.config, &o, rewrite.change.unchanged, learned);
	rewrite.change.rotations = &rotations;
	rewrite.settings = settings = rotations_settings(&rotations, o.seed);
	rewrite.second = learned;
	rewrite.second_name = "rotation";
	rewrite.rotated = learned ? "learned" : "hadamard";
	rewrite_filter(&rewrite, &f, check);
	filter_close(&f);
	if (learned)
		part_close(learned);
	rotations_free(&rotations);
	free(settings);
	return 0;
}
