/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plan-bits -- choose the format of each block or layer for a budget of bits
 *
 * Candidates are quantized forms of one model. The cost of taking the layers of a unit from a candidate is
 * the KL divergence of the model with only these layers quantized (eval/sensitivity.h). The plan has the
 * least sum of costs within the budget (eval/knapsack.h). With --hessian the divergence is measured of the
 * first candidate only, and scaled by output errors:
 *	kl[u][c] = kl[u][0] · tr(E_c H E_cᵀ)/tr(E_0 H E_0ᵀ)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "eval/costs.h"
#include "eval/knapsack.h"
#include "eval/record.h"
#include "eval/sensitivity.h"
#include "eval/unit.h"
#include "forward/cache.h"
#include "model/basis.h"
#include "model/setting.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "plan-bits",
	.brief = "choose the format of each block or layer for a budget of bits",
	.operands = "CANDIDATE...",
	.max_operands = SIZE_MAX,
	.optional = true,
	.about = "Reads quantized forms of the model of --reference. Measures, for each block (--by layer: "
		"for each layer) and each of them, the KL divergence of the model with only these layers "
		"quantized. Prints the plan for dpq-run --plan whose sum of these divergences is least "
		"within the budget, with the predicted KL, which is this sum, and the measured one. "
		"-o stores the divergences; --costs uses them again for another budget.",
	.examples = "  for b in 2 3 4; do\n"
		"    dpq-run --hessian hess.h5 --storage uint$b --group 64 model.h5 -o q$b.h5\n"
		"  done\n"
		"  plan-bits --reference model.h5 --tokens calib.h5 --ctx 256 --limit 1K \\\n"
		"    --target-bits 3.5 q2.h5 q3.h5 q4.h5 -o costs.h5 > plan.txt\n"
		"  dpq-run --hessian hess.h5 --plan plan.txt model.h5 -o mixed.h5\n"
		"  plan-bits -r model.h5 --costs costs.h5 --target-size 3M q?.h5 > small.txt",
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

/* The model, its candidates, and the cost of each choice. */
struct planning {
	const struct settings *set;
	struct part *model, *hessian, *tokens;
	const struct config *config;
	struct units units;
	double *kl;			/* [units][candidates] */
	struct windows windows;		/* with --tokens */
	char *used;			/* the line of the ids in use */
	struct sensitivity sensitivity;
};

static void check_settings(const struct settings *set)
{
	if (!set->reference)
		misuse("--reference MODEL is expected");
	if (!option_given("target-bits") == !option_given("target-size"))
		misuse("one of --target-bits and --target-size is expected");
	if (!set->tokens && !set->costs)
		misuse("--tokens FILE is expected, or --costs FILE of an earlier run");
	if (set->hessian && set->by != UNIT_LAYER)
		misuse("--hessian requires --by layer: errors of the layers of a block do not add up");
	option_without_effect(3, (struct option_without_effect[]){
		{ !set->tokens, WINDOWS_NAMES " compute-type force-tokens memory", "without --tokens" },
		{ set->costs, "hessian", "--costs has the divergences" },
		STRIDE_WITHOUT_EFFECT(set->windows.convention) });
}

static void open_run(struct planning *p)
{
	const struct settings *set = p->set;
	struct execution e = { .compute_type = set->compute_type };

	p->tokens = part_open(set->tokens, "tokens");
	p->windows = windows_scored(windows_read(p->tokens, p->model, p->config, &set->windows,
		set->force_tokens, &p->used));
	e.rows = p->windows.rows;
	e.modalities = p->windows.modalities;
	e.cache = cache_use(p->config, p->model, &(struct cache_format){ 0 });
	p->sensitivity = sensitivity_open(&p->units, p->config, &e, &p->windows, set->memory);
}

/* Bits of all units together. */
static uint64_t budget_of(const struct settings *set, const struct units *u)
{
	const double bits = option_given("target-bits") ? set->target_bits * u->weights :
		8 * (double)set->target_size - u->other;

	if (bits < 0)
		die("%s: has %.4g bytes outside of the layers of the plan, --target-size is %zu",
			part_name(u->model), u->other / 8, set->target_size);
	return (uint64_t)fmin(bits, 0x1p62);	/* more than any model has */
}

static void print_plan(struct planning *p, const size_t choice[], double cost, double bound)
{
	const struct units *u = &p->units;
	double bits = 0, kl, se;

	for (size_t i = 0; i < u->n; i++)
		bits += (double)u->size[i * u->candidates + choice[i]];
	printf("# plan-bits: %.4f bits a weight, %.0f bytes with the rest of the model\n", bits / u->weights,
		(bits + u->other) / 8);
	printf("# KL %.4g predicted", cost);
	if (p->tokens) {
		kl = sensitivity_of_plan(&p->sensitivity, choice, &se);
		printf(", %.4g ± %.2g measured on %zu tokens", kl, se, p->windows.targets);
	}
	if (bound < cost)
		printf("; no plan has less than %.4g\n", bound);
	else
		printf("; no plan has less\n");
	printf("* keep\n");
	for (size_t i = 0; i < u->n; i++) {
		const size_t at = i * u->candidates + choice[i];
		char *note = xformat("%s, KL %.3g", part_name(u->candidate[choice[i]]), p->kl[at]);
		char *lines = unit_lines(u, i, choice[i], note);

		fputs(lines, stdout);
		free(note), free(lines);
	}
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
}

enum { SUMS = 1 << 20 };		/* partial sums that the search keeps: 32 MiB a unit */

static void solve(struct planning *p)
{
	const struct units *u = &p->units;
	const struct knapsack k = { u->n, u->candidates, u->size, p->kl, budget_of(p->set, u), SUMS };
	size_t *choice = xalloc(u->n, sizeof *choice);
	double cost, bound, least = 0;

	if (!knapsack_solve(&k, choice, &cost, &bound)) {
		for (size_t i = 0; i < u->n; i++) {
			uint64_t small = UINT64_MAX;

			for (size_t c = 0; c < u->candidates; c++)
				small = u->size[i * u->candidates + c] < small ?
					u->size[i * u->candidates + c] : small;
			least += (double)small;
		}
		die("the smallest candidates have %.4f bits a weight and %.0f bytes with the rest of the "
			"model, more than the target", least / u->weights, (least + u->other) / 8);
	}
	print_plan(p, choice, cost, bound);
	free(choice);
}

/* The cost of each choice, measured or read. */
static void find_costs(struct planning *p)
{
	const struct units *u = &p->units;

	if (p->set->tokens)
		open_run(p);
	if (p->set->costs) {
		costs_read(p->set->costs, u, p->kl);
		return;
	}
	sensitivity_measure(&p->sensitivity, p->hessian ? 1 : u->candidates,
		(double (*)[u->candidates])p->kl);
	if (p->hessian)
		costs_scale(u, p->hessian, p->kl);
}

static void plan(struct planning *p, size_t candidates, struct part *candidate[], const char *output)
{
	const struct settings *set = p->set;
	struct output *out;

	p->units = units_of(p->model, p->config, candidates, candidate, (enum unit_kind)set->by,
		&set->layers);
	p->kl = xalloc(p->units.n * candidates, sizeof *p->kl);
	out = record_open(output, p->model);
	if (p->hessian)
		record_input(out, "hessian", p->hessian);
	find_costs(p);
	if (p->tokens) {
		record_input(out, "tokens", p->tokens);
		record_tokens(out, p->used);
	}
	solve(p);
	if (out)
		costs_write(out, &p->units, p->kl);
	sensitivity_close(&p->sensitivity);
	if (p->tokens) {
		part_close(p->tokens);
		windows_free(&p->windows);
		free(p->used);
	}
	units_free(&p->units);
	free(p->kl);
}

int main(int argc, char *argv[])
{
	struct settings set = { 0 };
	const struct option_row rows[] = {
		{ 'r', "reference", OPTION_FILE(&set.reference), "MODEL", "the model, not quantized" },
		{ 0, "target-bits", OPTION_REAL(&set.target_bits), "B", "at most B bits a weight",
			.min = 0, .max = 64 },
		{ 0, "target-size", OPTION_SIZE(&set.target_size), "BYTES", "at most BYTES for the model" },
		{ 0, "by", OPTION_CHOICE(&set.by, unit_kinds), NULL, "layers that have the same format",
			.default_value = "block" },
		{ 't', "tokens", OPTION_FILE(&set.tokens), "FILE", "token ids of the text" },
		WINDOWS_OPTIONS(&set.windows),
		{ 0, "hessian", OPTION_FILE(&set.hessian), "FILE",
			"measure the first candidate; scale by errors" },
		{ 0, "costs", OPTION_FILE(&set.costs), "FILE", "use the divergences of an earlier -o" },
		OPTION_LAYERS(&set.layers),
		OPTION_COMPUTE_TYPE(&set.compute_type),
		OPTION_FORCE_TOKENS(&set.force_tokens),
		OPTION_FORCE_BASIS(&set.force_basis),
		OPTION_MEMORY(&set.memory),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct planning p = { .set = &set };
	struct part **file = xalloc(c.operands + 2, sizeof *file);

	linalg_init();
	check_settings(&set);
	if (!c.operands)
		misuse("quantized forms of the model are expected");
	for (size_t i = 0; i < c.operands; i++)
		file[i] = part_open(c.operand[i], "model");
	file[c.operands] = p.model = part_open(set.reference, "model");
	file[c.operands + 1] = p.hessian = option_has_effect("hessian") ?
		part_open(set.hessian, "hessian") : NULL;
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(
		c.operands + 2, (const struct part *const *)file, set.force_basis)));
	p.config = config_open(p.model);
	plan(&p, c.operands, file, c.output);
	config_close(p.config);
	for (size_t i = 0; i < c.operands + 2; i++)
		if (file[i])
			part_close(file[i]);
	free(file);
	selection_free(&set.layers);
	return 0;
}
