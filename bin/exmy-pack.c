/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * exmy-pack -- pack the codes of a quantized model into words, or unpack them
 *
 * 32 codes of b bits take b words of 32 bits. Five bits have FPE2M2's layout (section 4.3). Codes and
 * scales do not change.
 */
#include "base/error.h"
#include "base/option.h"
#include "transform/repack.h"

static const struct tool tool = {
	.name = "exmy-pack",
	.brief = "pack the codes of a quantized model into words, or unpack them",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the codes of every quantized layer, one byte each, by words without gaps: "
		"a 5-bit model needs five eighths of the space. All tools read packed models.",
	.examples = "  dpq-run -q --compensate none --storage e2m2 --group channel model.h5 |\n"
		"    exmy-pack -o packed.h5\n"
		"  exmy-pack --unpack packed.h5 -o codes.h5",
};

int main(int argc, char *argv[])
{
	struct selection layers;
	struct repack repack = { .layers = &layers };
	const struct option_row rows[] = {
		{ 0, "unpack", OPTION_BOOL(&repack.unpack), NULL, "unpack the codes of a packed model" },
		OPTION_LAYERS(&layers),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct filter f = filter_open(c.operand[0], "model", c.output, "model");

	model_filter(&f, repack_part, &repack);
	if (!repack.done)
		die("%s: holds no layer %s%s", input_name(f.in),
			repack.unpack ? "that is packed" : "with codes to pack", layers.n ?
			" among those that --layers selects" : repack.unpack ? "" :
			"; dpq-run makes them (codes of several weights need no packing)");
	filter_close(&f);
	selection_free(&layers);
	return 0;
}
