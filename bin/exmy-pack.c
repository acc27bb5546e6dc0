/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * exmy-pack -- pack the codes of a quantized model into words, or unpack them
 *
 * 32 codes of b bits take b words of 32 bits; five bits in FPE2M2's layout
 * (section 4.3). Codes, scales and numbers stay what they are.
 */
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "io/image.h"
#include "model/layer.h"
#include "transform/repack.h"

static const struct tool tool = {
	.name = "exmy-pack",
	.brief = "pack the codes of a quantized model into words, or unpack them",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the codes of every quantized layer, a byte each, by words that hold them without gaps: a 5-bit\n"
		"model takes five eighths of the room. Tools that read models read packed ones, too.",
	.examples = "  dpq-run -q --compensate none --storage e2m2 --group channel model.h5 | exmy-pack -o packed.h5\n"
		"  exmy-pack --unpack packed.h5 -o codes.h5",
};

int main(int argc, char *argv[])
{
	struct selection layers = { 0 };
	bool unpack = false;
	const struct option_row rows[] = {
		{ 0, "unpack", OPTION_BOOL, &unpack, NULL, .help = "make codes of a packed model" },
		OPTION_LAYERS(&layers),
		{ .type = OPTION_END },
	};
	size_t n, done = 0;
	const char **operand = option_parse(argc, argv, &tool, rows, &n);
	struct input *in = input_open(operand[0], model_layout, "model");
	struct output *out = output_open(output_path, "model");
	struct image *image;

	while ((image = input_next(in)))
		done += pack_part(out, image, &layers, unpack);
	if (!done)
		die("%s: holds no layer %s%s", input_name(in), unpack ? "that is packed" : "with codes",
			layers.n ? " among those that --layers selects" : unpack ? "" : "; dpq-run makes them");
	progress_clear();
	output_close(out);
	input_close(in);
	return 0;
}
