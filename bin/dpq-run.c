/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dpq-run -- quantize weights by round-to-nearest, GPTQ or DPQ
 *
 * Columns are quantized one by one in a given order. The error of each column is compensated by the
 * following ones: w_j -= (w_i - ŵ_i) U_ij / U_ii (GPTQ; DPQ eq. 12). With a compute format, ŵ is the value
 * that the hardware computes from the stored code (DPQ eq. 10, 11).
 */
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "calib/hessian.h"
#include "device/device_open.h"
#include "forward/cache.h"
#include "model/basis.h"
#include "model/setting.h"
#include "model/shard_file.h"
#include "num/linalg.h"
#include "transform/quantize.h"
#include "transform/sequential.h"

static const struct tool tool = {
	.name = "dpq-run",
	.brief = "quantize weights by round-to-nearest, GPTQ or DPQ",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the weight of every linear layer by codes, scales and zero points.",
	.examples = "  dpq-run --compensate none model.h5 -o rtn.h5\n"
		"  dpq-run --hessian hess.h5 --order order.h5 --compute e4m3fn < model.h5 |\n"
		"    eval-ppl --tokens test.h5\n"
		"  echo '*/down_proj storage=uint8 group=channel' > plan.txt\n"
		"  dpq-run --plan plan.txt --hessian hess.h5 model.h5 -o mixed.h5\n"
		"  dpq-run --sequential --tokens calib.h5 --ctx 256 model.h5 -o seq.h5\n"
		"  dpq-run --sequential --tokens calib.h5 --ctx 256 --qep 0.5 model.h5 -o qep.h5",
};

/* Values of the options, except the methods of layers. */
struct settings {
	const char *hessian, *order, *plan;
	bool sequential, resume, force_basis;
	struct shard shard;
	struct calibrate_text text;
	struct selection layers, qep_skip;
};

static void check_dpq(const struct settings *set, unsigned reorder, long group, double qep)
{
	if (set->order && (option_given("reorder") || option_given("key")))
		misuse("--order FILE cannot be combined with --reorder or --key: each specifies an order");
	option_without_effect(6, (struct option_without_effect[]){
		{ !set->sequential, WINDOWS_NAMES " compute-type force-tokens memory",
			"without --sequential" },
		STRIDE_WITHOUT_EFFECT(set->text.windows.convention),
		{ set->order, "reorder", "--order" },
		{ !set->plan && !(qep > 0), "qep-skip", "no --qep" },
		{ reorder != ORDER_GAR, "key", "--reorder none or full" },
		{ !set->plan && group <= 0, "key", "one group per row" } });
	if (set->sequential && (set->hessian || set->order))
		misuse("--sequential replaces --hessian, and --reorder replaces --order");
	if (set->sequential && !set->text.tokens)
		misuse("--tokens FILE is expected with --sequential");
	if (set->sequential && set->shard.n > 1)
		misuse("--shard cannot be combined with --sequential: a block depends on all earlier ones");
	if (!set->sequential && set->text.tokens)
		misuse("--tokens requires --sequential; without it, hessian-accum reads tokens");
}

/* NULL: no order, or one without effect. */
static struct part *open_order(struct quantize *q, const char *path)
{
	if (!option_has_effect("order"))
		return NULL;
	q->files.order = part_open(path, "order");
	option_without_effect(1, &(struct option_without_effect){ !q->plan->n &&
		!quantize_takes_order(q, plan_method(q->plan, NULL)), "order",
		"--compensate none and a group-aware order" });
	if (option_has_effect("order"))
		return q->files.order;
	part_close(q->files.order);
	return NULL;
}

static void run_dpq(struct quantize *q, const struct settings *set, const struct command *c,
	struct report *report)
{
	struct sequential sequential;
	struct filter f;

	option_without_effect(1, &(struct option_without_effect){ !q->plan->n &&
		!plan_method(q->plan, NULL)->rotates, "seed", "--layer-rotation none" });
	q->source = set->sequential ? sequential_source(&sequential, q, set->text.tokens) :
		moments_of_files(&q->files);
	quantize_check(q);
	f = set->resume ? filter_resume(c->operand[0], "model", c->output, "model", report) :
		filter_open(c->operand[0], "model", c->output, "model");
	f.report = report;
	f.finished = quantize_finished;
	f.shard = set->shard;
	shard_print(&set->shard);
	filter_config(&f);
	if (set->sequential)
		sequential_open(&sequential, &set->text, &f);
	else
		cache_check(&f, &set->text.kv);
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(3,
		(const struct part *[]){ q->files.hessian, q->files.order, f.part }, set->force_basis)));
	quantize_check_layers(q, &f);
	model_filter(&f, quantize_part, q);
	quantize_end(q, input_name(f.in));
	if (set->sequential)
		sequential_close(&sequential);
	filter_close(&f);
	if (q->files.hessian)
		part_close(q->files.hessian);
	if (q->files.order)
		part_close(q->files.order);
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct settings set = { .text.shard = { .i = 1, .n = 1 } };
	struct method_options options = { 0 };
	struct plan plan;
	struct quantize q = { .plan = &plan, .layers = &set.layers, .qep_skip = &set.qep_skip,
		.kv = &set.text.kv };
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&set.hessian), "FILE",
			"Hessians of the layers, from hessian-accum" },
		{ 0, "order", OPTION_FILE(&set.order), "FILE",
			"column order, from gar-order" },
		{ 0, "reorder", OPTION_CHOICE(&q.reorder, order_kinds), NULL,
			"column order, from the Hessians",
			.default_value = "gar", .default_in_history = true },
		{ 0, "key", OPTION_CHOICE(&q.key, order_keys), NULL,
			"diagonal statistic that ranks a group", .default_value = "max" },
		{ 0, "plan", OPTION_FILE(&set.plan), "FILE",
			"options of single layers, one GLOB a line" },
		{ 0, "seed", OPTION_SIZE(&q.seed), "N", "signs of --layer-rotation", .default_value = "1" },
		OPTION_KV_FORMAT(&set.text.kv),
		{ 0, "qep-skip", OPTION_SELECTION(&set.qep_skip), "GLOB",
			"layers without --qep (default: down projections)" },
		METHOD_OPTIONS(&options),
		{ .type = OPTION_HEADING,
			.help = "Sequential calibration, in place of --hessian and --order" },
		{ 0, "sequential", OPTION_BOOL(&set.sequential), NULL, "calibrate on quantized layers" },
		{ 't', "tokens", OPTION_FILE(&set.text.tokens), "FILE", "calibration tokens" },
		CALIBRATE_OPTIONS(&set.text),
		{ .type = OPTION_HEADING, .help = "Layers" },
		OPTION_LAYERS(&set.layers),
		OPTION_FORCE_BASIS(&set.force_basis),
		{ 0, "shard", OPTION_OF_SHARD(&set.shard),
			"blocks I, I + N, ...; auto: from launcher",
			.default_value = "1/1", .form = shard_form },
		OPTION_RESUME(&set.resume),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	report_open(&report);
	check_dpq(&set, q.reorder, options.method.solver.group, options.method.qep);
	options.no_error = !set.resume && !report_wanted(&report);	/* a resumed run may report it */
	plan = plan_read(set.plan, rows, &options);
	const bool rounds = !plan.n && !method_reads_hessian(plan_method(&plan, NULL));
	option_without_effect(1, &(struct option_without_effect){ rounds, "sequential " CALIBRATE_NAMES,
		"it serves the report only: --compensate none, no static scale" });
	linalg_init();
	q.device = rounds ? NULL : device_open(set.text.device);
	q.files.hessian = set.hessian ? hessian_open(set.hessian) : NULL;
	q.files.order = open_order(&q, set.order);
	run_dpq(&q, &set, &c, &report);
	plan_free(&plan);
	selection_free(&set.layers), selection_free(&set.qep_skip);
	return 0;
}
