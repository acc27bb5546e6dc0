/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tensor-stats -- report statistics of weights and Hessians, layer by layer
 *
 * For every linear layer, of its effective weight if it is quantized:
 *	bits		bits per weight, with codes, scales and zero points
 *	sigma		std(w_i)/max|w_i| of an output channel: mean, minimum, maximum
 *			(FPE2M2 figure 9; the sigma of its error curves)
 *	kurtosis	mean (w - μ)⁴ / (mean (w - μ)²)², 3 for a Gaussian
 *	incoherence	max|w| √(mn) / ‖W‖_F (QuIP, definition 1)
 * For the inputs of every layer in a file of Hessians: mean, median and maximum over channels of the mean
 * square over tokens, and the kurtosis mean x⁴ / (mean x²)².
 */
#include "base/option.h"
#include "eval/record.h"
#include "eval/stats_table.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "tensor-stats",
	.brief = "report statistics of weights and Hessians, layer by layer",
	.operands = "[MODEL | HESSIAN]",
	.max_operands = 1,
	.about = "Prints, for each linear layer, its storage, bits per weight, sigma, standard "
		"deviation, kurtosis, largest magnitude and incoherence, of the effective weight if "
		"the layer is quantized; the last row is for all layers. For a file of Hessians: the "
		"magnitudes of the inputs of each layer, by channel, and their kurtosis. --channels: "
		"the root mean square and the largest magnitude of each input channel.",
	.examples = "  tensor-stats model.h5\n  dpq-run -q --compensate none model.h5 "
		"| tensor-stats --layers '*/down_proj'\n"
		"  tensor-stats hess.h5",
};

int main(int argc, char *argv[])
{
	struct selection layers;
	bool channels, json;
	const struct option_row rows[] = {
		OPTION_LAYERS(&layers),
		{ 0, "channels", OPTION_BOOL(&channels), NULL, "a row for each input channel" },
		{ 0, "json", OPTION_BOOL(&json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();

	struct filter f = filter_open(c.operand[0], "model|hessian", NULL, NULL);
	struct output *out = record_open(c.output, f.part);
	struct stats_table stats = stats_table_begin(part_kind(f.part), channels, &layers);

	filter_config(&f);
	model_filter(&f, stats_table_part, &stats);
	stats_table_end(&stats, input_name(f.in));
	table_print(&stats.table, json);
	table_write(&stats.table, out);
	table_free(&stats.table);
	filter_close(&f);
	selection_free(&layers);
	return 0;
}
