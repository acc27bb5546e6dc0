/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * model-import -- read a Hugging Face folder or a GGUF file
 *
 * config.json and tokenizer.json are kept verbatim. Dots in tensor names become slashes: model.norm.weight
 * is /model/norm/weight. A GGUF file is converted into the contents of such a folder.
 */
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "import/import.h"
#include "io/part.h"

static const struct tool tool = {
	.name = "model-import",
	.brief = "read a Hugging Face folder or a GGUF file",
	.operands = "FOLDER|FILE.gguf",
	.max_operands = 1,
	.about = "Reads safetensors (F32, F16, BF16; one file or shards with an index) and stores "
		"each tensor under its name, with slashes for dots. Shapes are checked against "
		"config.json. NaN and infinite weights are refused. Quantized weights "
		"(compressed-tensors, GPTQ, AWQ, FP8) become codes and scales, bit for bit. "
		"Quantized tensors of a GGUF file become F32; its metadata become config.json and "
		"tokenizer.json.",
	.examples = "  model-import data/prose -o model.h5\n"
		"  model-import data/prose | dpq-run -q --compensate none -o rtn.h5",
};

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	const char *basis;
	const struct option_row rows[] = {
		{ 0, "basis", OPTION_FILE(&basis), "MODEL",
			"original of a quantized checkpoint" },
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct output *out;

	report_open(&report);
	if (!strcmp(c.operand[0], "-"))
		misuse("standard input is not a folder, expected a folder or a GGUF file");
	out = output_open(c.output, "model");
	import_model(out, c.operand[0], basis, &report);
	report_close(&report);
	output_close(out);
	return 0;
}
