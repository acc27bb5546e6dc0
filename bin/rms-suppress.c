/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rms-suppress -- store outlier columns of Hadamard-rotated weights separately
 *
 *	max_o |(W H)_oi| > max |W|	(MQuant eq. 13, measured for each channel i)
 *
 * Rotation magnitude suppression: these channels are stored apart in 16 or 8 bits, and solvers do not
 * change them.
 */
#include <math.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "forward/check.h"
#include "num/linalg.h"
#include "transform/suppress.h"

static const struct tool tool = {
	.name = "rms-suppress",
	.brief = "store outlier columns of Hadamard-rotated weights separately",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "In each layer with an online Hadamard (hadamard-rotate), splits the input channels "
		"whose largest weight exceeds the largest weight before the rotation. Split columns "
		"are stored next to the weight in 16 or 8 bits. Prints for each layer the largest "
		"weight before and after the rotation, the left side of MQuant's eq. 13, and the "
		"number of split columns.",
	.examples = "  hadamard-rotate -q model.h5 | rms-suppress --check -o split.h5",
};

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct selection layers;
	struct suppress suppress = { .layers = &layers };
	bool check;
	const struct option_row rows[] = {
		{ 0, "bits", OPTION_ENUM(enum suppress_bits, &suppress.bits, suppress_bits), NULL,
			"bits of split columns", .default_value = "16" },
		OPTION_CHECK(&check),
		OPTION_LAYERS(&layers),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	report_open(&report);
	linalg_init();

	struct filter f = filter_open(c.operand[0], "model", c.output, "model");

	f.report = &report;
	filter_config(&f);
	if (check && !f.config)
		die("%s: /config: is missing; --check runs the model", input_name(f.in));
	check_filter(&f, suppress_part, &suppress, check, suppress.bits || !f.config ? INFINITY :
		SUPPRESS_MAX * (double)f.config->blocks);
	if (!suppress.done)
		die("%s: holds no layer with an online Hadamard%s; hadamard-rotate makes them",
			input_name(f.in), selection_text(&layers));
	filter_close(&f);
	selection_free(&layers);
	return 0;
}
