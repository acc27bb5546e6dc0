/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian-accum -- sum the Hessians of linear layers over calibration tokens
 *
 *	hessian = Σ x xᵀ over calibration tokens, count, absmax = max |x|,
 *	mean_abs = mean |x|, fourth = Σ x⁴, and a histogram of |x|
 *
 * The inputs x come from a model that is run over windows of tokens, or from a file of activations.
 * Several Hessian files, such as those of jobs with --shard, are added. With --pair, the unquantized model,
 * also cross = Σ z xᵀ with the inputs z of the same tokens in it.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "calib/accumulate.h"
#include "calib/calibrate.h"
#include "forward/forward.h"
#include "model/basis.h"
#include "model/setting.h"
#include "model/shard_set.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "hessian-accum",
	.brief = "sum the Hessians of linear layers over calibration tokens",
	.operands = "[MODEL | ACTIVATIONS | HESSIAN...]",
	.max_operands = SIZE_MAX,
	.about = "Runs a model over calibration tokens and writes, for each layer, hessian = sum of x "
		"x^T, count, absmax, mean_abs, fourth = sum of x^4 and a histogram of |x|. Layers "
		"that share an input share one Hessian. A file of activations, <layer>/input, needs "
		"no model. Several Hessian files are added.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --shard 1/2 model.h5 -o one.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --shard 2/2 model.h5 -o two.h5\n"
		"  hessian-accum one.h5 two.h5 -o both.h5\n"
		"  dpq-run --hessian both.h5 model.h5 -o gptq.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --pair model.h5 gptq.h5 -o c.h5",
};

static void of_model(const struct calibrate_text *text, const struct selection *layers, struct filter *f)
{
	const struct config config = config_read(f->part);
	struct calibrate_run *run;

	calibrate_check(&config, layers, input_name(f->in));
	run = calibrate_open(text, &config, f->part);
	f->finished = calibrate_finished;
	model_filter(f, calibrate_part, &(struct calibrate){ run->forward, layers, run->tokens,
		run->calibration, &text->shard, run->pair });
	calibrate_close(run);
	config_free(&config);
}

/* Checks the options against the kind of the input. */
static void check_input_kind(const struct calibrate_text *text, const struct part *part)
{
	const bool model = !strcmp(part_kind(part), "model"), sum = !strcmp(part_kind(part), "hessian");

	option_without_effect(4, (struct option_without_effect[]){
		{ !model, "convention stride compute-type device kv-format force-tokens memory",
			"no model is run" },
		{ sum && text->shard.n == 1, "shard", "1/1 is all" },
		{ sum, "ctx skip limit random-windows", "Hessian files are summed whole" },
		STRIDE_WITHOUT_EFFECT(text->windows.convention) });
	if (!model && !sum)
		option_refuse("random-windows", "a file of activations");
	if (model && !text->tokens)
		misuse("--tokens FILE is expected for a model");
	if (!model && text->pair)
		misuse("--pair requires a model; %s is of kind %s", part_name(part), part_kind(part));
	if (!model && text->tokens)
		misuse("--tokens requires a model; %s is of kind %s", part_name(part), part_kind(part));
	if (text->shard.n > 1 && sum)
		misuse("--shard requires a model or activations; Hessian files are summed whole");
	shard_print(&text->shard);
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct calibrate_text text = { 0 };
	struct selection layers = { 0 };
	const char *pair = NULL;
	bool force, resume = false, differ;
	const struct option_row rows[] = {
		{ 't', "tokens", OPTION_FILE(&text.tokens), "FILE", "calibration tokens" },
		{ 0, "pair", OPTION_FILE(&pair), "MODEL", "unquantized model, for cross moments" },
		CALIBRATE_OPTIONS(&text),
		OPTION_KV_FORMAT(&text.kv),
		OPTION_SHARD(&text.shard),
		OPTION_LAYERS(&layers),
		OPTION_FORCE_BASIS(&force),
		OPTION_RESUME(&resume),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct filter *file = xalloc(c.operands, sizeof *file);

	report_open(&report);
	linalg_init();
	for (size_t i = 0; i < c.operands; i++)
		file[i] = filter_open(c.operand[i],
			c.operands > 1 ? "hessian" : "model|activations|hessian", NULL, NULL);
	if (!strcmp(part_kind(file->part), "hessian"))
		shard_sort(c.operands, file);
	if (pair)
		text.pair = run_open(pair, text.compute_type, &(struct cache_format){ 0 });
	check_input_kind(&text, file->part);
	differ = shard_match(c.operands, file, force);
	if (pair)
		differ |= basis_match(2, (const struct part *[]){ file->part, text.pair->part }, force);
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(differ));
	if (resume)
		filter_resume_output(file, c.output, "hessian", &report);
	else
		file->out = output_open(c.output, "hessian");
	file->report = &report;
	if (!strcmp(part_kind(file->part), "model"))
		of_model(&text, &layers, file);
	else
		accumulate_files(c.operands, file, &layers, &(struct accumulate_cut){
			windows_ctx(text.windows.ctx, 0), text.windows.skip, text.windows.limit,
			text.shard });
	for (size_t i = 0; i < c.operands; i++)
		filter_close(&file[i]);
	free(file);
	selection_free(&layers);
	return 0;
}
