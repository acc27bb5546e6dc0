/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq-scale -- scale and clip weights for round-to-nearest (AWQ)
 *
 *	s_j = mean|X_j|^r,	X ← X / s, W ← W diag(s),	W ← max(-c, min(c, W))
 *
 * r is searched for each input, c for each group of a row (Lin et al. 2024, section 3). Scaling alone does
 * not change the outputs of the model.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "calib/hessian.h"
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
	.about = "Divides channels of the outputs of norms, values and up projections, and multiplies "
		"the columns of the layers that read them, so that the output error of "
		"round-to-nearest with --storage and --group is smallest. Then clips the weights of "
		"each group. The result is a plain model for any solver. Hessians of the input model "
		"do not fit the result.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  awq-scale --hessian hess.h5 model.h5 |\n"
		"    dpq-run --compensate none --scale-search minmax -o awq.h5",
};

/* The format of the layers, with its group. */
static struct awq_format format_of(const struct method_options *o)
{
	const struct method m = method_make(o, method_storage_given, NULL);

	if (m.solver.group < 0)
		misuse("--group: is tensor, expected a number or channel");
	option_without_effect(1, &(struct option_without_effect){ o->method.solver.storage.scales,
		"scale-dtype", "a storage with its own" });
	return (struct awq_format){ m.solver.storage, m.solver.group };
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	const char *hessian;
	struct method_options options = { 0 };
	struct awq awq = { .report = &report };
	struct rewrite rewrite = { .norm = awq_norm, .source = awq_source, .needs_finish = awq_clips,
		.arg = &awq, .second_name = "hessian" };
	bool check, force;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "Hessians of the layers, from hessian-accum" },
		{ 0, "storage", OPTION_FORMAT(&options.method.solver.storage), "FORMAT",
			"format to which weights will be rounded", .default_value = "uint4" },
		OPTION_GROUP(&options.method.solver.group),
		{ 0, "scale-dtype", OPTION_CHOICE(&options.scales, scale_types_single), NULL,
			"type of scales (default: that of the format)" },
		{ 0, "clip", OPTION_EITHER(&awq.clip, method_yes_no), NULL, "also clip weights",
			.default_value = "yes" },
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
		misuse("--hessian FILE is needed (hessian-accum makes it)");
	awq.format = format_of(&options);
	rewrite.finish = awq.clip ? awq_finish : NULL;

	struct filter f = rewrite_open(c.operand[0], c.output);
	struct part *part = hessian_open(hessian);
	char *settings = xformat("storage=%s group=%ld scale-dtype=%s", awq.format.storage.name,
		awq.format.group, scale_types[awq.format.storage.scales]);

	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(2,
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
