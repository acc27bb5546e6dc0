/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dpq-run -- quantize the weights of a model: RTN, GPTQ, DPQ
 *
 * Column by column in a given order, the error of each made good by those that
 * follow: w_j -= (w_i - ŵ_i) U_ij / U_ii (GPTQ; DPQ eq. 12), where with a
 * compute format ŵ is what the hardware makes of the stored code (DPQ eq. 10, 11).
 */
#include "base/error.h"
#include "base/option.h"
#include "model/setting.h"
#include "num/linalg.h"
#include "transform/quantize.h"

static const struct tool tool = {
	.name = "dpq-run",
	.brief = "quantize the weights of a model: RTN, GPTQ, DPQ",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the weight of every linear layer by codes, scales and zero points.",
	.examples = "  dpq-run --compensate none model.h5 -o rtn.h5\n"
		"  dpq-run --hessian hess.h5 --order order.h5 --compute e4m3fn < model.h5 "
		"| eval-ppl --tokens test.h5",
};

static const char *const yes_no[] = { "no", "yes", NULL }, *const scale8s[] = { "tensor", "channel", NULL };
static const char *const act_modes[] = {
	[INPUT_AS_IS] = "none", [INPUT_STATIC_TENSOR] = "static-tensor",
	[INPUT_DYNAMIC_TOKEN] = "dynamic-token", NULL
};

/* What the recipe decides, but for the choices that were given. */
static void decide(struct quantize *q, enum recipe recipe, double top, double saturate)
{
	struct solver *s = &q->solver;
	const struct solver given = *s;

	solver_recipe(s, recipe);
	if (option_given("scale-search"))
		s->search = given.search;
	if (option_given("round-first"))
		s->round_first = given.round_first;
	if (option_given("group-view"))
		s->group_view = given.group_view;
	if (option_given("pow2-scale"))
		s->pow2_scale = q->act_pow2 = given.pow2_scale;
	if (option_given("top"))
		quantize_top(s, "top", top, &s->z_top);
	if (option_given("saturate"))
		quantize_top(s, "saturate", saturate, &s->saturate);
	q->inputs_given = option_given("act-mode");
	setting_hint(&s->storage, "storage");
	setting_hint(&s->compute, "compute");
	quantize_idle(q);
	quantize_inputs(q);
	s->no_error = quiet;
}

static void run(struct quantize *q, const struct command *c)
{
	quantize_check(q);
	struct filter f = filter_open(c->operand[0], "model", c->output, "model");

	filter_config(&f);
	quantize_check_layers(q, &f);
	model_filter(&f, quantize_part, q);
	quantize_end(q, input_name(f.in));
	filter_close(&f);
	if (q->hessian)
		image_close(q->hessian);
	if (q->order)
		image_close(q->order);
}

int main(int argc, char *argv[])
{
	const char *hessian, *order;
	enum recipe recipe;
	bool ties_away;
	double top, saturate;
	struct selection layers;
	struct quantize q = { .layers = &layers };
	struct solver *s = &q.solver;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "Hessians of the layers, from hessian-accum" },
		{ 0, "order", OPTION_FILE(&order), "FILE",
			"order of the columns, from gar-order (default: as they stand)" },
		{ 0, "storage", OPTION_FORMAT(&s->storage), "FORMAT", "format of the codes",
			.otherwise = "uint4" },
		OPTION_GROUP(&s->group),
		{ 0, "compute", OPTION_FORMAT_OR_NONE(&s->compute), "none|FORMAT",
			"format of the arithmetic (FP8: DPQ); none: 16-bit, GPTQ", .otherwise = "none" },
		{ 0, "compensate", OPTION_CHOICE(&s->compensate, compensates), NULL,
			"which error later columns make good", .otherwise = "both" },
		{ 0, "recipe", OPTION_CHOICE(&recipe, recipes), NULL,
			"defaults of the choices below; inc is the released code", .otherwise = "late" },
		{ .type = OPTION_HEADING, .help = "Choices that override the recipe" },
		{ 0, "scale-search", OPTION_CHOICE(&s->search, searches), NULL,
			"range of a group as it is, or of least error" },
		{ 0, "round-first", OPTION_EITHER(&s->round_first, yes_no), NULL,
			"round to the compute format before coding" },
		{ 0, "group-view", OPTION_CHOICE(&s->group_view, group_views), NULL,
			"weights that a group's parameters come from" },
		{ 0, "static-groups", OPTION_BOOL(&s->static_groups), NULL,
			"parameters of the original groups, whatever the order" },
		{ 0, "scale8", OPTION_EITHER(&s->scale8_channel, scale8s), NULL,
			"how many FP8 scales a weight has", .otherwise = "tensor" },
		{ 0, "pow2-scale", OPTION_EITHER(&s->pow2_scale, yes_no), NULL,
			"FP8 scales rounded up to powers of two" },
		{ 0, "top", OPTION_REAL(&top), "Z",
			"FP8 scales are max|x|/Z, 1 <= Z <= the format's largest value "
			"(default: the recipe's)" },
		{ 0, "saturate", OPTION_REAL(&saturate), "V",
			"largest FP8 magnitude of a weight, in the same range (default: the recipe's)" },
		{ 0, "act-format", OPTION_FORMAT(&q.act_format), "FORMAT",
			"format of activations (default: that of the arithmetic)" },
		{ 0, "act-mode", OPTION_CHOICE(&q.act_mode, act_modes), NULL,
			"which scales activations are rounded under" },
		OPTION_TIES(&ties_away),
		{ 0, "damp", OPTION_REAL(&s->damp), "LAMBDA",
			"added to the diagonal, times its mean", .otherwise = "0.01", .most = 1e6 },
		OPTION_LAYERS(&layers),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	format_ties(&s->storage, ties_away);
	decide(&q, recipe, top, saturate);
	linalg_init();
	q.hessian = hessian ? image_open(hessian, "hessian") : NULL;
	q.order = option_given("order") ? image_open(order, "order") : NULL;
	run(&q, &c);
	return 0;
}
