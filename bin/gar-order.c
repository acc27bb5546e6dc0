/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gar-order -- compute the order in which columns are quantized
 *
 * Group-aware reordering (DPQ section 3.2, appendix A): columns by descending diag H inside each group,
 * groups by descending key. Important columns are quantized first, and a scale still belongs to
 * neighbouring columns. Other kinds: full reordering (GPTQ's act-order) and none.
 */
#include "base/error.h"
#include "base/option.h"
#include "model/setting.h"
#include "model/shard_file.h"
#include "transform/reorder.h"

static const struct tool tool = {
	.name = "gar-order",
	.brief = "compute the order in which columns are quantized",
	.operands = "[HESSIAN]",
	.max_operands = 1,
	.about = "Reads Hessians from hessian-accum and writes <layer>/order: position -> original "
		"column.",
	.examples = "  gar-order --group 128 < hess.h5 > order.h5\n"
		"  gar-order --order full hess.h5 -o full.h5",
};

int main(int argc, char *argv[])
{
	struct selection layers;
	struct reorder reorder = { .layers = &layers };
	const struct option_row rows[] = {
		{ 0, "order", OPTION_CHOICE(&reorder.kind, order_kinds), NULL, "kind of column order",
			.default_value = "gar" },
		{ 0, "key", OPTION_CHOICE(&reorder.key, order_keys), NULL,
			"diagonal statistic that ranks a group", .default_value = "max" },
		OPTION_GROUP(&reorder.group),
		OPTION_LAYERS(&layers),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	option_without_effect(2, (struct option_without_effect[]){
		{ reorder.kind != ORDER_GAR, "key group", "--order none or full" },
		{ reorder.group <= 0, "key", "one group per row" } });

	struct filter f = filter_open(c.operand[0], "hessian", c.output, "order");

	shard_warn(f.part);
	model_filter(&f, reorder_part, &reorder);
	if (!reorder.done)
		die("%s: holds no layer%s", input_name(f.in),
			layers.n ? selection_text(&layers) : " with a hessian");
	filter_close(&f);
	selection_free(&layers);
	return 0;
}
