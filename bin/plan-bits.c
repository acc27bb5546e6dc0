/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plan-bits -- choose the format of each block or layer for a budget of bits
 *
 * Candidates are quantized forms of one model. The KL of the model with only the layers of one unit, a block
 * or a layer, quantized is measured for each unit and candidate (eval/sensitivity.h). The plan has the least
 * sum of these KL within the budget (eval/bit_plan.h). With --hessian the KL is measured of the first
 * candidate only, and scaled by output errors (eval/unit_kl.h).
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "calib/hessian.h"
#include "eval/bit_plan.h"
#include "eval/record.h"
#include "eval/sensitivity.h"
#include "eval/unit.h"
#include "eval/unit_kl.h"
#include "forward/cache.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/setting.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "plan-bits",
	.brief = "choose the format of each block or layer for a budget of bits",
	.operands = "CANDIDATE...",
	.max_operands = SIZE_MAX,
	.optional = true,
	.about = "Reads quantized forms of the model of --reference. For each block (--by layer: for each "
		"layer) and each of these candidates, measures the KL divergence of the model with only the "
		"layers of this block quantized, from the model of --reference. "
		"Prints the plan for dpq-run --plan that has the least sum of these KL within the budget, "
		"with this sum, which predicts the KL of the plan, and its measured KL. "
		"-o stores the KL of all blocks and candidates; --costs uses them for another budget, "
		"or for some of the candidates.",
	.examples = "  for b in 2 3 4; do\n"
		"    dpq-run --hessian hess.h5 --storage uint$b --group 64 model.h5 -o q$b.h5\n"
		"  done\n"
		"  plan-bits --reference model.h5 --tokens calib.h5 --ctx 256 --limit 1K \\\n"
		"    --by layer --hessian hess.h5 --target-bits 3.5 q?.h5 -o costs.h5 > plan.txt\n"
		"  dpq-run --hessian hess.h5 --plan plan.txt model.h5 -o mixed.h5\n"
		"  plan-bits -r model.h5 --by layer --costs costs.h5 --target-size 3M q?.h5 \\\n"
		"    > small.txt",
};

/* Values of the options. */
struct settings {
	const char *reference, *tokens, *hessian, *costs;
	double target_bits;
	size_t target_size, memory;
	unsigned by;
	struct windows_options windows;
	enum compute_type compute_type;
	struct selection layers;
	bool force_tokens, force_basis;
};

/* What the KL are measured on: --tokens. */
struct text {
	struct part *file;		/* NULL: they are read */
	char *used;			/* the line of the ids in use */
	struct windows windows;
	struct sensitivity sensitivity;
};

static void check_settings(const struct settings *set)
{
	if (!set->reference)
		misuse("--reference MODEL is expected");
	if (!option_given("target-bits") == !option_given("target-size"))
		misuse("exactly one of --target-bits and --target-size is expected");
	if (!set->tokens && !set->costs)
		misuse("--tokens FILE is expected, or --costs FILE of an earlier run");
	if (set->hessian && set->by != UNIT_LAYER)
		misuse("--hessian requires --by layer: output errors of the layers of a block do not add up");
	option_without_effect(3, (struct option_without_effect[]){
		{ !set->tokens, WINDOWS_NAMES " compute-type force-tokens memory", "without --tokens" },
		{ set->costs, "hessian", "--costs has the KL" },
		STRIDE_WITHOUT_EFFECT(set->windows.convention) });
}

static void open_text(struct text *t, const struct settings *set, const struct units *u,
	const struct config *config)
{
	struct execution e = { .compute_type = set->compute_type };

	if (!set->tokens)
		return;
	t->file = part_open(set->tokens, "tokens");
	t->windows = windows_scored(windows_read(t->file, u->model, config, &set->windows, set->force_tokens,
		&t->used));
	e.rows = t->windows.rows;
	e.modalities = t->windows.modalities;
	e.cache = cache_use(config, u->model, &(struct cache_format){ 0 });
	t->sensitivity = sensitivity_open(u, config, &e, &t->windows, set->memory);
}

static void close_text(struct text *t)
{
	if (!t->file)
		return;
	sensitivity_close(&t->sensitivity);
	part_close(t->file);
	windows_free(&t->windows);
	free(t->used);
}

/* Measures the KL of units and candidates, or reads them. */
static void find_kl(const struct part *costs, const struct units *u, struct text *t,
	const struct part *hessian, double kl[])
{
	if (costs) {
		unit_kl_read(costs, u, kl);
		return;
	}
	sensitivity_measure(&t->sensitivity, hessian ? 1 : u->candidates, (double (*)[u->candidates])kl);
	if (hessian)
		unit_kl_scale(u, hessian, kl);
}

static void print_plan(const struct units *u, struct text *t, const double kl[], uint64_t budget)
{
	struct bit_plan p = bit_plan_make(u, kl, budget);
	struct measured_kl measured = { .tokens = t->windows.targets };

	if (t->file)
		measured.kl = sensitivity_of_plan(&t->sensitivity, p.candidate, &measured.se);
	bit_plan_print(&p, u, kl, t->file ? &measured : NULL);
	bit_plan_free(&p);
}

static void run(const struct settings *set, const struct units *u, const struct config *config,
	const struct part *hessian, const struct part *costs, const char *output)
{
	const uint64_t budget = bit_plan_budget(u, option_given("target-bits") ? set->target_bits : -1,
		set->target_size);
	struct output *out = record_open(output, u->model);
	double *kl = xalloc(u->n * u->candidates, sizeof *kl);
	struct text t = { 0 };
	char *measured = NULL;

	if (out)
		basis_copy(out, u->model);
	record_input(out, "hessian", hessian);
	open_text(&t, set, u, config);
	record_input(out, "tokens", t.file);
	record_input(out, "costs", costs);
	if (!costs)
		record_tokens(out, t.used);
	else if ((measured = part_text(costs, "/", EVALUATED)))
		record_tokens(out, measured);
	free(measured);
	find_kl(costs, u, &t, hessian, kl);
	print_plan(u, &t, kl, budget);
	if (out)
		unit_kl_write(out, u, kl);
	close_text(&t);
	free(kl);
}

int main(int argc, char *argv[])
{
	struct settings set = { 0 };
	const struct option_row rows[] = {
		{ 'r', "reference", OPTION_FILE(&set.reference), "MODEL", "the model, not quantized" },
		{ 0, "target-bits", OPTION_REAL(&set.target_bits), "B", "at most B bits per weight",
			.min = 0, .max = 64 },
		{ 0, "target-size", OPTION_SIZE(&set.target_size), "BYTES", "at most BYTES for the model" },
		{ 0, "by", OPTION_CHOICE(&set.by, unit_kinds), NULL, "layers that have the same format",
			.default_value = "block" },
		{ 't', "tokens", OPTION_FILE(&set.tokens), "FILE", "token ids of the text" },
		WINDOWS_OPTIONS(&set.windows),
		{ 0, "hessian", OPTION_FILE(&set.hessian), "FILE",
			"KL of the first candidate; others by errors" },
		{ 0, "costs", OPTION_FILE(&set.costs), "FILE", "use the KL that an earlier -o stored" },
		OPTION_LAYERS(&set.layers),
		OPTION_COMPUTE_TYPE(&set.compute_type),
		OPTION_FORCE_TOKENS(&set.force_tokens),
		OPTION_FORCE_BASIS(&set.force_basis),
		OPTION_MEMORY(&set.memory),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct part **file = xalloc(c.operands + 3, sizeof *file), *model, *hessian = NULL;
	const struct config *config;
	struct units u;

	linalg_init();
	check_settings(&set);
	if (!c.operands)
		misuse("CANDIDATE... is expected: quantized forms of the model, such as q2.h5 q3.h5 q4.h5");
	for (size_t i = 0; i < c.operands; i++)
		file[i] = part_open(c.operand[i], "model");
	file[c.operands] = model = part_open(set.reference, "model");
	if (option_has_effect("hessian"))
		file[c.operands + 1] = hessian = hessian_open(set.hessian);
	if (set.costs)
		file[c.operands + 2] = part_open(set.costs, "result");
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(
		c.operands + 3, (const struct part *const *)file, set.force_basis)));
	config = config_open(model);
	u = units_of(model, config, c.operands, file, (enum unit_kind)set.by, &set.layers);
	run(&set, &u, config, hessian, file[c.operands + 2], c.output);
	units_free(&u);
	config_close(config);
	for (size_t i = 0; i < c.operands + 3; i++)
		if (file[i])
			part_close(file[i]);
	free(file);
	selection_free(&set.layers);
	return 0;
}
