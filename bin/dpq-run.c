/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dpq-run -- quantize the weights of a model: RTN, GPTQ, DPQ
 *
 * Column by column in a given order, the error of each made good by those that
 * follow: w_j -= (w_i - ŵ_i) U_ij / U_ii (GPTQ; DPQ eq. 12), where with a
 * compute format ŵ is what the hardware makes of the stored code (DPQ eq. 10, 11).
 */
#include "base/option.h"
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
		"| eval-ppl --tokens test.h5\n"
		"  echo '*/down_proj storage=uint8 group=channel' > plan.txt\n"
		"  dpq-run --plan plan.txt --hessian hess.h5 model.h5 -o mixed.h5",
};

static void run(struct quantize *q, const struct command *c, bool resume, const struct shard *shard)
{
	quantize_check(q);
	struct filter f = (resume ? filter_resume : filter_open)(c->operand[0], "model", c->output, "model");

	f.finished = quantize_finished;
	f.shard = *shard;
	shard_say(shard);
	filter_config(&f);
	quantize_check_layers(q, &f);
	model_filter(&f, quantize_part, q);
	quantize_end(q, input_name(f.in));
	filter_close(&f);
	if (q->files.hessian)
		image_close(q->files.hessian);
	if (q->files.order)
		image_close(q->files.order);
}

int main(int argc, char *argv[])
{
	const char *hessian, *order, *plan_path;
	bool resume;
	struct shard shard;
	struct selection layers;
	struct method_options options = { 0 };
	const struct option_row of_a_layer[] = { METHOD_OPTIONS(&options), { .type = OPTION_END } };
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&hessian), "FILE", "Hessians of the layers, from hessian-accum" },
		{ 0, "order", OPTION_FILE(&order), "FILE",
			"order of the columns, from gar-order (default: as they stand)" },
		{ 0, "plan", OPTION_FILE(&plan_path), "FILE",
			"options of single layers: lines of a GLOB and option=value, or keep" },
		METHOD_OPTIONS(&options),
		OPTION_LAYERS(&layers),
		{ 0, "shard", OPTION_OF_SHARD(&shard),
			"only blocks I, I + N, ..., for tensor-join; auto: by the launcher",
			.otherwise = "1/1", .form = shard_form },
		OPTION_RESUME(&resume),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct plan plan = plan_read(plan_path, of_a_layer, rows, &options);
	struct quantize q = { .plan = &plan, .layers = &layers };

	linalg_init();
	q.files.hessian = hessian ? image_open(hessian, "hessian") : NULL;
	q.files.order = option_given("order") ? image_open(order, "order") : NULL;
	q.source = moments_of_files(&q.files);
	run(&q, &c, resume, &shard);
	plan_free(&plan);
	selection_free(&layers);
	return 0;
}
