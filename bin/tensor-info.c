/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tensor-info -- print what a file is
 *
 * Kind, model class and shapes, formats and bits per weight, tokens, root attributes, calibration and history
 * (docs/format.md). Attributes and extents are read, and weights are not. The time depends on the
 * number of objects, not on their size; a stream is read to its end.
 */
#include <stdlib.h>
#include <string.h>
#include "base/option.h"
#include "eval/info.h"
#include "import/source.h"
#include "io/contents.h"
#include "model/config.h"

static const struct tool tool = {
	.name = "tensor-info",
	.brief = "print what a file is",
	.operands = "[FILE]",
	.max_operands = 1,
	.about = "Prints the kind of a file, the class and sizes of a model, the formats of its layers and "
		"their bits per weight, tokens and their tokenizer, root attributes, the calibration, and "
		"the commands that made the file, oldest first. Weights are not read. Every HDF5 file is "
		"accepted, also a stream, and a stream that is stored in a file.",
	.examples = "  tensor-info model.h5\n  tensor-info --json test.h5\n"
		"  dpq-run -q --compensate none model.h5 | tensor-info",
};

int main(int argc, char *argv[])
{
	bool json;
	const struct option_row rows[] = {
		{ 0, "json", OPTION_BOOL(&json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct contents_output out = contents_create(c.output);
	/* The message about a checkpoint says what makes a model of it. */
	const bool checkpoint = c.operand[0] && source_fits(c.operand[0]);
	struct input *in = input_open(c.operand[0], model_layout, checkpoint ? "model" : NULL);
	char *text = info_text(in, json);

	contents_write(&out, strlen(text), text);
	input_close(in);
	free(text);
	return 0;
}
