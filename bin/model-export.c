/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * model-export -- write a model for other programs
 *
 * The inverse of model-import: tensors have the names, fusions and orientations of the class in
 * transformers. Weights are plain, or codes and scales in the layout of another program.
 */
#include "base/error.h"
#include "base/folder.h"
#include "base/option.h"
#include "base/report.h"
#include "export/export.h"
#include "model/filter.h"
#include "transform/rewrite.h"

static const struct tool tool = {
	.name = "model-export",
	.brief = "write a model for other programs",
	.operands = "-o FOLDER|FILE [MODEL]",
	.max_operands = 1,
	.about = "Writes a folder for transformers with effective weights (hf), a folder with codes "
		"and scales, bit for bit (compressed-tensors, gptq), or a GGUF file (gguf). What a "
		"target cannot express is refused by name.",
	.examples = "  model-export --to hf -o folder model.h5\n"
		"  dpq-run -q --compensate none model.h5 |\n"
		"    model-export --to hf --dtype bf16 -o quantized\n"
		"  dpq-run -q --compensate none --storage int4 --scale-dtype bf16 model.h5 |\n"
		"    model-export --to compressed-tensors --dtype bf16 -o packed\n"
		"  dpq-run -q --compensate none --storage int4 --scale-dtype f16 model.h5 |\n"
		"    model-export --to gptq --dtype f16 -o gptq\n"
		"  dpq-run -q --compensate none --storage int4 --group 32 \\\n"
		"    --scale-dtype f16 model.h5 |\n"
		"    model-export -q --to gguf -o model.gguf",
};

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct export_options o = { .report = &report };
	unsigned to;
	const struct option_row rows[] = {
		{ 0, "to", OPTION_CHOICE(&to, target_names()), NULL, "layout of the result",
			.meanings = target_meanings(), .default_value = "hf" },
		{ 0, "dtype", OPTION_ENUM(enum half_type, &o.dtype, rewrite_types), NULL,
			"type of plain weights", .default_value = "f32" },
		{ 0, "weights-only", OPTION_BOOL(&o.weights_only), NULL,
			"drop the rounding of inputs, keys and values" },
		{ 0, "allow-rounding", OPTION_BOOL(&o.allow_rounding), NULL,
			"round scales that the target cannot store" },
		{ 0, "skip-compute", OPTION_BOOL(&o.skip_compute), NULL,
			"drop the FP8 rounding of layers with --compute" },
		{ 0, "blocks", OPTION_ENUM(enum export_blocks, &o.blocks, export_blocks_names), NULL,
			"block types of GGUF",
			.default_value = "auto" },
		{ 0, "unify-scales", OPTION_BOOL(&o.unify_scales), NULL,
			"repeat per-tensor scales for every channel" },
		{ 0, "adapter", OPTION_FILE(&o.adapter), "FOLDER",
			"write low-rank branches as a LoRA adapter" },
		{ 0, "file-size", OPTION_SIZE(&o.shard_bytes), "BYTES",
			"size of a safetensors file",
			.default_value = "4G", .min = 1 },
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	if (!c.output)
		misuse("-o FOLDER|FILE is expected: the result cannot go to a pipe");

	if (o.adapter && folder_same(o.adapter, c.output))
		misuse("--adapter and -o are the same folder");
	if (o.skip_compute && !o.allow_rounding)
		misuse("--skip-compute changes the weights: it requires --allow-rounding");
	option_refuse(target_at(to)->unused_options, xformat("--to %s", target_at(to)->name));
	report_open(&report);

	struct filter f = filter_open(c.operand[0], "model", NULL, NULL);

	export_model(&f, target_at(to), c.output, &o);
	filter_close(&f);
	report_close(&report);
	return 0;
}
