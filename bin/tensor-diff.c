/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tensor-diff -- compare the weights of two models, layer by layer
 *
 * For every linear layer, of effective weights, with E = W - Ŵ, W the reference's:
 *	mse		mean E²
 *	weight_error	‖E‖²/‖W‖²
 *	sqnr		-10 log₁₀ ‖E‖²/‖W‖², dB
 *	largest		max |E|
 *	output_error	tr(E H Eᵀ)/tr(W H Wᵀ), as dpq-run reports it
 * Every other weight and bias has a row if it differs.
 */
#include <stdio.h>
#include "base/error.h"
#include "base/option.h"
#include "calib/hessian.h"
#include "eval/diff_table.h"
#include "eval/record.h"
#include "model/basis.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "tensor-diff",
	.brief = "compare the weights of two models, layer by layer",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Prints, for each linear layer, the error of its effective weight against that of "
		"the reference: mean squared error, ‖E‖²/‖W‖², the same in dB, the largest "
		"difference, and with --hessian the relative output error. Norms, embeddings and "
		"biases have a row if they differ. The status is 0 whether models differ or not.",
	.examples = "  tensor-diff --reference model.h5 rtn.h5\n"
		"  dpq-run -q --hessian hess.h5 model.h5 |\n"
		"    tensor-diff --reference model.h5 --hessian hess.h5",
};

int main(int argc, char *argv[])
{
	const char *reference, *hessian;
	struct selection layers;
	bool json, force;
	const struct option_row rows[] = {
		{ 'r', "reference", OPTION_FILE(&reference), "MODEL", "reference model" },
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "Hessians of the layers, from hessian-accum" },
		OPTION_LAYERS(&layers),
		OPTION_FORCE_BASIS(&force),
		{ 0, "json", OPTION_BOOL(&json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();
	if (!reference)
		misuse("--reference MODEL is expected");

	struct diff_table diff = diff_table_begin(part_open(reference, "model"),
		hessian ? hessian_open(hessian) : NULL, &layers);
	struct filter f = filter_open(c.operand[0], "model", NULL, NULL);

	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(
		hessian ? 3 : 0, (const struct part *[]){ diff.hessian, diff.reference, f.part }, force)));

	struct output *out = record_open(c.output, f.part);

	if (out) {
		output_history(out, "reference", diff.reference);
		if (hessian)
			output_history(out, "hessian", diff.hessian);
	}
	filter_config(&f);
	model_filter(&f, diff_table_part, &diff);
	diff_table_end(&diff, input_name(f.in));
	table_print(&diff.table, json);
	if (!quiet)
		fprintf(stderr, "%s: %zu of %zu other weights and biases differ\n", program,
			diff.differ, diff.others);
	table_write(&diff.table, out);

	part_close(diff.reference);
	if (diff.hessian)
		part_close(diff.hessian);
	diff_table_free(&diff);
	filter_close(&f);
	selection_free(&layers);
	return 0;
}
