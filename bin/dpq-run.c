/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dpq-run -- quantize the weights of a model: RTN, GPTQ, DPQ
 *
 * Column by column in a given order, the error of each made good by those that
 * follow: w_j -= (w_i - ŵ_i) U_ij / U_ii (GPTQ; DPQ eq. 12), where with a
 * compute format ŵ is what the hardware makes of the stored code (DPQ eq. 10, 11).
 */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "io/image.h"
#include "model/setting.h"
#include "transform/quantize.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "dpq-run",
	.brief = "quantize the weights of a model: RTN, GPTQ, DPQ",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the weight of every linear layer by codes, scales and zero points.",
	.examples = "  dpq-run --compensate none model.h5 -o rtn.h5\n"
		"  dpq-run --hessian hess.h5 --order order.h5 --compute e4m3fn < model.h5 | eval-ppl --tokens test.h5",
};

static const char *const yes_no[] = { "no", "yes", NULL }, *const scale8s[] = { "tensor", "channel", NULL };
static const char *const act_modes[] = { "none", "static-tensor", "dynamic-token", NULL };
static const enum input_mode act_mode[] = { INPUT_AS_IS, INPUT_STATIC_TENSOR, INPUT_DYNAMIC_TOKEN };

int main(int argc, char *argv[])
{
	const char *storage = "uint4", *compute = "none", *group = "128", *hessian = NULL, *order = NULL, *act_format = NULL;
	int compensate = COMPENSATE_BOTH, recipe = RECIPE_LATE, search = -1, round_first = -1, view = -1, pow2 = -1, scale8 = 0, act = -1, tie = 0;
	double top = NAN, saturate = NAN;
	struct selection layers = { 0 };
	struct quantize q = { .solver.damp = 0.01, .layers = &layers };
	struct solver *s = &q.solver;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE, &hessian, "FILE", .help = "Hessians of the layers, from hessian-accum" },
		{ 0, "order", OPTION_FILE, &order, "FILE", .help = "order of the columns, from gar-order (default: as they stand)" },
		{ 0, "storage", OPTION_TEXT, &storage, "FORMAT", .help = "format of the codes" },
		{ 'g', "group", OPTION_TEXT, &group, "G|channel|tensor", .help = "columns that share a scale" },
		{ 0, "compute", OPTION_TEXT, &compute, "none|FORMAT", .help = "format of the arithmetic (FP8: DPQ); none: 16-bit, GPTQ" },
		{ 0, "compensate", OPTION_CHOICE, &compensate, NULL, .help = "which error later columns make good", .choices = compensates },
		{ 0, "recipe", OPTION_CHOICE, &recipe, NULL, .help = "defaults of the choices below; inc is the released code", .choices = recipes },
		{ 0, "", OPTION_HEADING, NULL, NULL, .help = "Choices that override the recipe" },
		{ 0, "scale-search", OPTION_CHOICE, &search, NULL, .help = "range of a group as it is, or of least error", .choices = searches },
		{ 0, "round-first", OPTION_CHOICE, &round_first, NULL, .help = "round to the compute format before coding", .choices = yes_no },
		{ 0, "group-view", OPTION_CHOICE, &view, NULL, .help = "weights that a group's parameters come from", .choices = group_views },
		{ 0, "static-groups", OPTION_BOOL, &s->static_groups, NULL, .help = "parameters of the original groups, whatever the order" },
		{ 0, "scale8", OPTION_CHOICE, &scale8, NULL, .help = "how many FP8 scales a weight has", .choices = scale8s },
		{ 0, "pow2-scale", OPTION_CHOICE, &pow2, NULL, .help = "FP8 scales rounded up to powers of two", .choices = yes_no },
		{ 0, "top", OPTION_REAL, &top, "Z", .help = "FP8 scales are max|x|/Z, 1 <= Z <= the format's largest value (default: the recipe's)" },
		{ 0, "saturate", OPTION_REAL, &saturate, "V", .help = "largest FP8 magnitude of a weight, in the same range (default: the recipe's)" },
		{ 0, "act-format", OPTION_TEXT, &act_format, "FORMAT", .help = "format of activations (default: that of the arithmetic)" },
		{ 0, "act-mode", OPTION_CHOICE, &act, NULL, .help = "which scales activations are rounded under", .choices = act_modes },
		{ 0, "ties", OPTION_CHOICE, &tie, NULL, .help = "where a weight halfway between two values goes", .choices = format_tie_names },
		{ 0, "damp", OPTION_REAL, &s->damp, "LAMBDA", .help = "added to the diagonal, times its mean", .most = 1e6 },
		OPTION_LAYERS(&layers),
		{ .type = OPTION_END },
	};
	size_t n;
	const char **operand = option_parse(argc, argv, &tool, rows, &n);

	setting_format(&s->storage, "storage", storage);
	setting_hint(&s->storage, "storage");
	format_ties(&s->storage, tie);
	if (strcmp(compute, "none"))
		setting_format(&s->compute, "compute", compute), setting_hint(&s->compute, "compute");
	s->group = setting_group(group);
	s->compensate = (enum compensate)compensate;
	solver_recipe(s, (enum recipe)recipe);
	if (search >= 0) s->search = (enum search)search;
	if (round_first >= 0) s->round_first = round_first;
	if (view >= 0) s->group_view = (enum group_view)view;
	if (pow2 >= 0) s->pow2_scale = pow2;
	quantize_top(s, "top", top, &s->z_top);
	quantize_top(s, "saturate", saturate, &s->saturate);
	s->scale8_channel = scale8;
	quantize_idle(&q, act_format, act >= 0 ? (int)act_mode[act] : -1);
	quantize_inputs(&q, act_format, act >= 0 ? (int)act_mode[act] : -1, pow2);

	s->no_error = quiet;
	linalg_init();
	q.hessian = hessian ? image_open(hessian, "hessian") : NULL;
	q.order = option_given("order") ? image_open(order, "order") : NULL;
	quantize_check(&q);

	struct input *in = input_open(operand[0], model_layout, "model");
	struct output *out = output_open(output_path, "model");
	struct config config = { 0 };
	bool known = false;
	struct image *image;

	while ((image = input_next(in))) {
		if (!image_part(image) && (known = image_has(image, "/config"))) {
			config = config_read(image);
			quantize_check_layers(&q, &config, image);
		}
		quantize_part(&q, out, image, known ? &config : NULL);
	}
	quantize_end(&q, input_name(in));
	output_close(out);
	input_close(in);
	if (known)
		config_free(&config);
	if (q.hessian)
		image_close(q.hessian);
	if (q.order)
		image_close(q.order);
	return 0;
}
