/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gar-order -- the order in which a layer's columns are quantized
 *
 * Group-aware reordering (DPQ section 3.2, appendix A): columns by descending
 * diag H inside each group, groups by descending key, so that what matters is
 * quantized first and scales still belong to neighbouring columns. Also full
 * reordering (GPTQ's act-order) and none.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "io/image.h"
#include "model/config.h"
#include "transform/reorder.h"
#include "model/setting.h"

static const struct tool tool = {
	.name = "gar-order",
	.brief = "the order in which a layer's columns are quantized",
	.operands = "[HESSIAN]",
	.max_operands = 1,
	.about = "Reads Hessians (hessian-accum), writes <layer>/order: position -> original column.",
	.examples = "  gar-order --group 128 < hess.h5 > order.h5\n  gar-order --order full hess.h5 -o full.h5",
};

int main(int argc, char *argv[])
{
	int order = ORDER_GAR, key = ORDER_MAX;
	const char *text = "128";
	struct selection layers = { 0 };
	size_t n, done = 0;
	const struct option_row rows[] = {
		{ 0, "order", OPTION_CHOICE, &order, NULL, .help = "kind of order", .choices = order_kinds },
		{ 0, "key", OPTION_CHOICE, &key, NULL, .help = "what of its diagonal ranks a group", .choices = order_keys },
		{ 'g', "group", OPTION_TEXT, &text, "G|channel|tensor", .help = "columns that share a scale" },
		OPTION_LAYERS(&layers),
		{ .type = OPTION_END },
	};
	const char **operand = option_parse(argc, argv, &tool, rows, &n);
	long group = setting_group(text);

	const bool gar = order == ORDER_GAR;

	option_idle(1, &(struct option_idle){ !gar, "key group", "--order none or full" });

	struct input *in = input_open(operand[0], model_layout, "hessian");
	struct output *out = output_open(output_path, "order");
	struct image *image;

	while ((image = input_next(in))) {
		char *config = image_part(image) ? NULL : image_config(image);

		output_begin(out, image);
		if (!image_part(image)) {
			output_text(out, "/", "order", order_kinds[order]);
			if (gar) {
				output_text(out, "/", "key", order_keys[key]);
				output_integer(out, "/", "group", group);
			}
			if (config)
				output_string(out, "/config", config);
		}
		done += order_part(out, image, &layers, (enum order_kind)order, (enum order_key)key,
			group > 0 ? (size_t)group : 0);
		output_end(out);
		free(config);
	}
	if (!done)
		die("%s: holds no layer%s", input_name(in), layers.n ? selection_text(&layers) : " with a hessian");
	output_close(out);
	input_close(in);
	return 0;
}
