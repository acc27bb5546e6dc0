/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ln2rms -- convert LayerNorms into RMS norms
 *
 *	LayerNorm(x) = RMSNorm(M x) diag(α) + β,	M = I - 11ᵀ/D
 *
 * M is folded into all layers that add to the residual stream, α and β into the layers that read it
 * (MQuant section 4.2, eq. 10, appendix A.14; SliceGPT). The outputs of the model stay equal, and it can
 * be rotated.
 */
#include "base/error.h"
#include "base/option.h"
#include "forward/check.h"
#include "num/linalg.h"
#include "transform/rewrite.h"

static const struct tool tool = {
	.name = "ln2rms",
	.brief = "convert LayerNorms into RMS norms",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Subtracts the mean from embeddings, positions, output and down projections, and "
		"folds gains and shifts of norms into the layers after them. The final gain and "
		"shift become an untied head with a bias. In a vision-language model this applies to "
		"the vision encoder, the language model, or both. The outputs of the model stay "
		"equal, and hadamard-rotate can rotate it.",
	.examples = "  ln2rms --check gpt2.h5 -o rms.h5",
};

/* If only one of two streams has LayerNorms, the other is left. language: the encoder is left anyway. */
static void leave_rms(struct invariant *change, const struct config *c, bool language)
{
	const struct stack *encoder = config_encoder(c), *last = config_last(c);
	const bool mixed = encoder && !language && encoder->arch->norm_kind != last->arch->norm_kind;

	change->unchanged[0] = mixed && encoder->arch->norm_kind == NORM_RMS;
	change->unchanged[last - c->stack] = mixed && last->arch->norm_kind == NORM_RMS;
}

int main(int argc, char *argv[])
{
	struct rewrite rewrite = { .change = { .fold = true, .centre = true }, .settings = "" };
	bool check, language;
	const struct option_row rows[] = {
		OPTION_LANGUAGE(&language),
		OPTION_CHECK(&check),
		OPTION_DTYPE(&rewrite.dtype),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();

	struct filter f = rewrite_open(c.operand[0], c.output);

	leave_rms(&rewrite.change, f.config, language);
	rewrite_exclude_encoder(&rewrite, &f, language);
	rewrite_filter(&rewrite, &f, check);
	filter_close(&f);
	return 0;
}
