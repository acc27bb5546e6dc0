/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq-scale -- scale and clip weights for round-to-nearest (AWQ)
 *
 *	s_j = mean|X_j|^r,	X ← X / s, W ← W diag(s),	W ← max(-c, min(c, W))
 *
 * with r of each input and c of each group of a row searched for (Lin et al. 2024, section 3). Scaled, the
 * model computes what it did.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "forward/check.h"
#include "model/basis.h"
#include "num/linalg.h"
#include "transform/awq.h"
#include "transform/method.h"

static const struct tool tool = {
	.name = "awq-scale",
	.brief = "scale and clip weights for round-to-nearest (AWQ)",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Divides the channels of what norms, values and up projections put out, and multiplies the "
		"columns of the layers that read them, so that rounding the weights to nearest under "
		"--storage and --group changes their outputs least; then clips each group of weights to the "
		"range that does so. What it leaves is a plain model, for any solver. Hessians of the model "
		"as it was do not fit the result.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  awq-scale --hessian hess.h5 model.h5 |\n"
		"    dpq-run --compensate none --scale-search minmax -o awq.h5",
};

/* The format of the layers, with the group that goes with it. */
static struct awq_format format_of(const struct method_options *o)
{
	const struct method m = method_make(o, method_storage_given, NULL);

	if (m.solver.group < 0)
		misuse("--group: tensor has no groups to search by, expected a number or channel");
	option_idle(1, &(struct option_idle){ o->method.solver.storage.scales, "scale-dtype",
		"a storage with its own" });
	return (struct awq_format){ m.solver.storage, m.solver.group };
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	const char *hessian;
	struct method_options options = { 0 };
	struct awq awq = { .report = &report };
	struct rewrite rewrite = { .norm = awq_norm, .source = awq_source, .wants = awq_wants,
		.arg = &awq, .second_name = "hessian" };
	bool check, force;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "of the layers' inputs, from hessian-accum" },
		{ 0, "storage", OPTION_FORMAT(&options.method.solver.storage), "FORMAT",
			"what weights are to be rounded to", .otherwise = "uint4" },
		OPTION_GROUP(&options.method.solver.group),
		{ 0, "scale-dtype", OPTION_CHOICE(&options.scales, scale_types), NULL,
			"what scales of groups are rounded to (default: f32; mxfp4: e8m0; nvfp4: e4m3fn)" },
		{ 0, "clip", OPTION_EITHER(&awq.clip, method_yes_no), NULL, "clip weights, too",
			.otherwise = "yes" },
		OPTION_FORCE_BASIS(&force),
		OPTION_CHECK(&check),
		OPTION_DTYPE(&rewrite.dtype),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	report_open(&report);
	linalg_init();
	if (!hessian)
		misuse("--hessian FILE is expected");
	awq.format = format_of(&options);
	rewrite.finish = awq.clip ? awq_finish : NULL;

	struct filter f = rewrite_open(c.operand[0], c.output);
	struct part *part = part_open(hessian, "hessian");
	char *settings = xformat("storage=%s group=%ld scale-dtype=%s", awq.format.storage.name,
		awq.format.group, scale_types[awq.format.storage.scales]);

	option_idle(1, &(struct option_idle)BASIS_IDLE(basis_match(2,
		(const struct part *[]){ part, f.part }, force)));
	rewrite.settings = settings;
	f.report = &report;
	awq.hessian = rewrite.second = part;
	rewrite_filter(&rewrite, &f, check);
	if (!awq.done)
		die("%s: holds no Hessian of a layer of %s", hessian, input_name(f.in));
	filter_close(&f);
	part_close(part);
	free(awq.note);
	free(settings);
	return 0;
}
