/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * smooth-scale -- move outliers of activations into weights (SmoothQuant), or those of keys into queries
 *
 *	s_j = max|X_j|^α / max|W_j|^(1-α),	X ← X / s, W ← W diag(s)
 *
 * for the outputs of norms and the layers that read them (Xiao et al. 2023, eq. 4). With --random, s is
 * random: it takes the weights off the grid of an earlier quantization. With --attention
 *
 *	λ_i = max|K_i|^α of a pair of channels,	K ← K / λ, Q ← Q diag(λ)
 *
 * for the keys and queries of each head (SmoothAttention; QServe section 4.2). The outputs of the model stay
 * equal.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "calib/hessian.h"
#include "forward/check.h"
#include "model/basis.h"
#include "num/linalg.h"
#include "transform/random_scale.h"
#include "transform/rewrite.h"
#include "transform/smooth.h"
#include "transform/smooth_attention.h"

static const struct tool tool = {
	.name = "smooth-scale",
	.brief = "move outliers of activations into weights (SmoothQuant)",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Divides the channels of the output of each norm, through its gain and shift, and "
		"multiplies the columns of the layers that read it. The outputs of the model stay "
		"equal; its activations are easier to round, its weights harder. Hessians of the "
		"input model do not fit the result. --random: factors that only move the weights off "
		"the grid of an earlier quantization. --attention: divides the channels of keys, and "
		"multiplies those of queries, so that keys are easier to round (SmoothAttention); "
		"Hessians of the input model still fit.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  smooth-scale --hessian hess.h5 --check model.h5 -o smooth.h5\n"
		"  smooth-scale --random 1 --check model.h5 -o scaled.h5\n"
		"  smooth-scale --attention --tokens calib.h5 --ctx 256 model.h5 -o keys.h5",
};

/* Moves outliers of the outputs of norms. */
static void smooth_norms(struct filter *f, struct rewrite *rewrite, struct smooth *smooth,
	const char *hessian, bool force, bool check)
{
	struct part *part = hessian_open(hessian);
	char *settings = xformat("alpha=%.17g", smooth->alpha);

	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(2,
		(const struct part *[]){ part, f->part }, force)));
	rewrite->settings = settings;
	rewrite->norm = smooth_norm, rewrite->arg = smooth;
	rewrite->second_name = "hessian";
	smooth->hessian = rewrite->second = part;
	rewrite_filter(rewrite, f, check);
	if (!smooth->done)
		die("%s: holds no Hessian of a layer that reads a norm of %s", hessian, input_name(f->in));
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
	free(settings);
}

/* Moves outliers of keys. */
static void smooth_keys(struct filter *f, struct rewrite *rewrite, struct smooth_attention *smooth,
	const struct calibrate_text *text, bool check)
{
	smooth_attention_check(f->config, input_name(f->in));
	smooth->config = f->config;
	smooth->run = calibrate_open(text, f->config, f->part);
	rewrite->begin = smooth_attention_begin, rewrite->outputs = smooth_attention_outputs;
	rewrite->arg = smooth;
	rewrite->second = smooth->run->tokens, rewrite->second_name = "tokens";
	rewrite->calibration = smooth->run->calibration;
	rewrite_filter(rewrite, f, check);
	smooth_attention_free(smooth);
	calibrate_close(smooth->run);
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	const char *hessian;
	struct smooth norms = { .report = &report };
	struct smooth_attention keys = { .report = &report };
	struct random_scale scale = { .report = &report };
	struct calibrate_text text = { .shard = { .i = 1, .n = 1 } };
	struct rewrite rewrite = { 0 };
	bool check, force, attention;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "Hessians of the layers, from hessian-accum" },
		{ 0, "alpha", OPTION_REAL(&norms.alpha), "A", "migration strength",
			.default_value = "0.5", .min = 0, .max = 1 },
		{ 0, "random", OPTION_SIZE(&scale.seed), "SEED",
			"random factors of 1 to 2^0.5 instead" },
		{ 0, "attention", OPTION_BOOL(&attention), NULL, "scale keys and queries instead" },
		{ 't', "tokens", OPTION_FILE(&text.tokens), "FILE", "calibration tokens, for --attention" },
		CALIBRATE_OPTIONS(&text),
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
	option_without_effect(3, (struct option_without_effect[]){
		{ !attention, "tokens " CALIBRATE_NAMES, "no --attention" },
		{ attention, "hessian force-basis", "--attention" },
		STRIDE_WITHOUT_EFFECT(text.windows.convention) });
	if (random)
		option_refuse("hessian alpha force-basis attention", "--random");
	if (attention && !text.tokens)
		misuse("--tokens FILE is expected with --attention");
	if (!attention && !hessian && !random)
		misuse("--hessian FILE, --random SEED or --attention is expected");

	struct filter f = rewrite_open(c.operand[0], c.output);

	f.report = &report;
	keys.alpha = norms.alpha;
	if (random)
		scale_model(&f, &rewrite, &scale, check);
	else if (attention)
		smooth_keys(&f, &rewrite, &keys, &text, check);
	else
		smooth_norms(&f, &rewrite, &norms, hessian, force, check);
	filter_close(&f);
	return 0;
}
