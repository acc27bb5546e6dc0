/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * roofline -- estimate the throughput of formats on an accelerator
 *
 * Only the shape of the model is used. The batch is limited by the memory that weights and the cache of
 * keys and values leave. A step takes as long as its products at peak rate or its bytes at full bandwidth.
 * DPQ figure 4; the equations are in eval/roofline.h. Also the visual tokens, parameters and operations of
 * vision-language models (MQuant figure 1a, table 9; eval/visual.h).
 */
#include "base/error.h"
#include "base/option.h"
#include "eval/roofline.h"
#include "eval/visual.h"
#include "io/part.h"
#include "io/table.h"

static const struct tool tool = {
	.name = "roofline",
	.brief = "estimate the throughput of formats on an accelerator",
	.operands = "",
	.max_operands = 0,
	.optional = true,
	.about = "Estimates the throughput of a model from its shape. The batch is as large as memory "
		"allows. A prefill is followed by one step per token. Each takes as long as its "
		"products at peak rate or its reads of weights and cache at full bandwidth, "
		"whichever is longer. Linear layers use the format, embeddings and head BF16, and "
		"keys and values the width of activations. This is an upper bound. Prints a table; "
		"-o stores it. --table visual: tokens of an image, parameters and operations of "
		"vision-language models.",
	.examples = "  roofline --models llama-2-70b --hardware gaudi2 --prompt 1024 \\\n"
		"    --generate 128,1024\n"
		"  roofline --models model.h5 --formats W16A16,W4A16,W4A8 --hardware h100,h200\n"
		"  roofline --table visual --image 448,896,1344",
};

static const char *const tables[] = { "rates", "visual", NULL };

/* --table visual: counts, without an accelerator. */
static struct table visual_counts(const struct roofline *r, const char *images)
{
	option_refuse("hardware formats prompt generate group kv-bits", "--table visual");
	return visual_table(option_given("models") ? r->models : NULL, images);
}

int main(int argc, char *argv[])
{
	struct roofline r;
	const char *images;
	bool json, visual;
	const struct option_row rows[] = {
		{ 0, "models", OPTION_TEXT(&r.models), "LIST",
			"names, folders or files of models",
			.default_value = "llama-2-70b" },
		{ 0, "hardware", OPTION_TEXT(&r.accelerators), "LIST",
			"gaudi2, ..., or NAME=GB:TB/S:BF16:FP8",
			.default_value = "gaudi2" },
		{ 0, "formats", OPTION_TEXT(&r.formats), "LIST",
			"W<bits>A<8 or 16>, first: base", .default_value = "W4A16,W8A8,W4A8" },
		{ 0, "prompt", OPTION_TEXT(&r.prompts), "LIST", "input lengths in tokens",
			.default_value = "1024" },
		{ 0, "generate", OPTION_TEXT(&r.generates), "LIST", "output lengths in tokens",
			.default_value = "1024" },
		{ 0, "group", OPTION_SIZE(&r.group), "N", "weights per scale",
			.default_value = "128", .min = 1, .max = 1 << 24 },
		{ 0, "kv-bits", OPTION_SIZE(&r.kv_bits), "N",
			"bits of keys and values (default: A)", .min = 1, .max = 32 },
		{ 0, "table", OPTION_EITHER(&visual, tables), NULL, "table that is printed",
			.default_value = "rates" },
		{ 0, "image", OPTION_TEXT(&images), "LIST", "sides of square images in pixels",
			.default_value = "448" },
		{ 0, "json", OPTION_BOOL(&json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	output_stdout_check(c.output);
	option_without_effect(1, &(struct option_without_effect){ !visual, "image", "--table rates" });
	struct table t = visual ? visual_counts(&r, images) : roofline_table(&r);
	struct output *out = c.output ? output_open(c.output, "result") : NULL;

	if (out)
		output_start(out, 0, 1);
	table_print(&t, json);
	table_write(&t, out);
	table_free(&t);
	return 0;
}
