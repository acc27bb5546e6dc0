/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * smooth-scale -- move outliers of activations into weights (SmoothQuant)
 *
 *	s_j = max|X_j|^α / max|W_j|^(1-α),	X ← X / s, W ← W diag(s)
 *
 * for the outputs of norms and the layers that read them (Xiao et al. 2023, eq. 4). The outputs of the
 * model stay equal. With --random, s is random: it takes the weights off the grid of an earlier quantization.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "forward/check.h"
#include "model/basis.h"
#include "num/linalg.h"
#include "transform/random_scale.h"
#include "transform/rewrite.h"
#include "transform/smooth.h"

static const struct tool tool = {
	.name = "smooth-scale",
	.brief = "move outliers of activations into weights (SmoothQuant)",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Divides the channels of the output of each norm, through its gain and shift, and "
		"multiplies the columns of the layers that read it. The outputs of the model stay "
		"equal; its activations are easier to round, its weights harder. Hessians of the "
		"input model do not fit the result. --random: factors that only move the weights off "
		"the grid of an earlier quantization.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  smooth-scale --hessian hess.h5 --check model.h5 -o smooth.h5\n"
		"  smooth-scale --random 1 --check model.h5 -o scaled.h5",
};

/* The factors of SmoothQuant, from Hessians. */
static void smooth_model(struct filter *f, struct rewrite *rewrite, struct smooth *smooth,
	const char *hessian, bool force, bool check)
{
	struct part *part = part_open(hessian, "hessian");
	char *settings = xformat("alpha=%.17g", smooth->alpha);

	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(2,
		(const struct part *[]){ part, f->part }, force)));
	rewrite->settings = settings;
	rewrite->second_name = "hessian";
	rewrite->norm = smooth_norm;
	rewrite->arg = smooth;
	smooth->hessian = rewrite->second = part;
	rewrite_filter(rewrite, f, check);
	if (!smooth->done)
		die("%s: holds no Hessian of a layer that reads a norm of %s", hessian, input_name(f->in));
	filter_close(f);
	part_close(part);
	free(settings);
}

static void scale_model(struct filter *f, struct rewrite *rewrite, struct random_scale *scale, bool check)
{
	char *settings = xformat("random=%zu", scale->seed);

	rewrite->settings = settings;
	rewrite->norm = random_scale_norm;
	rewrite->source = random_scale_source;
	rewrite->arg = scale;
	rewrite_filter(rewrite, f, check);
	filter_close(f);
	free(settings);
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	const char *hessian;
	struct smooth smooth = { .report = &report };
	struct random_scale scale = { .report = &report };
	struct rewrite rewrite = { 0 };
	bool check, force;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "Hessians of the layers, from hessian-accum" },
		{ 0, "alpha", OPTION_REAL(&smooth.alpha), "A", "migration strength",
			.default_value = "0.5", .min = 0, .max = 1 },
		{ 0, "random", OPTION_SIZE(&scale.seed), "SEED",
			"random factors of 1 to 2^0.5 instead" },
		OPTION_FORCE_BASIS(&force),
		OPTION_CHECK(&check),
		OPTION_DTYPE(&rewrite.dtype),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	const bool random = option_given("random");

	report_open(&report);
	linalg_init();
	if (!hessian && !random)
		misuse("--hessian FILE or --random SEED is expected");
	if (random)
		option_refuse("hessian alpha force-basis", "--random");

	struct filter f = rewrite_open(c.operand[0], c.output);

	f.report = &report;
	if (random)
		scale_model(&f, &rewrite, &scale, check);
	else
		smooth_model(&f, &rewrite, &smooth, hessian, force, check);
	return 0;
}
