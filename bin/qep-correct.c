/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * qep-correct -- correct weights for the quantization error of their inputs (QEP)
 *
 *	W ← W + α W C (H + λ I)⁻¹,	C = Σ (z - x) xᵀ,	H = Σ x xᵀ
 *
 * x is the input of a layer in a quantized model, z that in the unquantized one (Arai and Ichikawa, arXiv
 * 2504.09629). The result is a plain model, which any solver quantizes, with the same Hessians.
 */
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "calib/hessian.h"
#include "model/basis.h"
#include "num/linalg.h"
#include "transform/qep.h"
#include "transform/rewrite.h"

static const struct tool tool = {
	.name = "qep-correct",
	.brief = "correct weights for the quantization error of their inputs (QEP)",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Changes the weights of an unquantized model so that the outputs of its layers, with "
		"the inputs that they have in a quantized model, are nearer to those of the "
		"unquantized one. The result is a plain model for any solver, with the same "
		"Hessians.",
	.examples = "  dpq-run --hessian hess.h5 model.h5 -o first.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --pair model.h5 first.h5 -o pair.h5\n"
		"  qep-correct --hessian pair.h5 model.h5 | dpq-run --hessian pair.h5 -o qep.h5",
};

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct selection layers, skip;
	struct qep qep = { .layers = &layers, .skip = &skip };
	const char *hessian;
	bool force;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE",
			"cross moments, from hessian-accum --pair" },
		{ 0, "alpha", OPTION_REAL(&qep.share), "ALPHA", "share of the correction",
			.default_value = "0.5", .max = 1 },
		{ 0, "damp", OPTION_REAL(&qep.damp), "LAMBDA", "damping, times mean diagonal",
			.default_value = "1", .max = 1e6 },
		{ 0, "skip", OPTION_SELECTION(&skip), "GLOB",
			"leave out these layers (default: down projections)" },
		OPTION_LAYERS(&layers),
		OPTION_DTYPE(&qep.dtype),
		OPTION_FORCE_BASIS(&force),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct filter f;
	struct part *part;

	report_open(&report);
	linalg_init();
	if (!hessian)
		misuse("--hessian FILE with cross moments is needed (hessian-accum --pair makes it)");
	part = hessian_open(hessian);
	f = filter_open(c.operand[0], "model", c.output, "model");
	f.report = &report;
	filter_config(&f);
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(2,
		(const struct part *[]){ part, f.part }, force)));
	qep.hessian = part;
	qep_check(&qep, &f);
	model_filter(&f, qep_part, &qep);
	qep_end(&qep, input_name(f.in));
	filter_close(&f);
	part_close(part);
	selection_free(&layers), selection_free(&skip);
	return 0;
}
