/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer.c -- see quantizer.h */
#include "transform/quantizer.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "transform/quantizer_branch.h"
#include "transform/quantizer_qronos.h"

/* Rows of a test build: { "name", ... }, each followed by a comma. */
#ifndef MORE_QUANTIZERS
#define MORE_QUANTIZERS
#endif

/* The last two are for models with experts: the tokens that reached a layer, and the share of the prior in
 * its Hessian. */
static const struct report_column columns[] = {
	{ "error", REPORT_GEOMETRIC }, { "mse", REPORT_NONE }, { "lambda", REPORT_NONE },
	{ "dead", REPORT_NONE }, { "seconds", REPORT_NONE }, { "tokens", REPORT_NONE },
	{ "prior", REPORT_NONE },
};
enum { COLUMNS = sizeof columns / sizeof *columns, OF_EXPERTS = 2 };
static const struct report_table table = { .column = columns, .columns = COLUMNS - OF_EXPERTS };
static const struct report_table table_experts = { .column = columns, .columns = COLUMNS };

static void solver_layers(size_t n, struct quantized *const t[n], struct solver_layer layer[n])
{
	for (size_t i = 0; i < n; i++)
		layer[i] = (struct solver_layer){ .weight = t[i]->weight, .settings = &t[i]->method->solver,
			.h = t[i]->inputs.hessian, .order = t[i]->inputs.order, .device = t[i]->device,
			.codes = &t[i]->codes };
}

/* The state of a layer is its struct solver_report. */
static void solver_begin(struct quantized *t)
{
	t->state = xalloc(1, sizeof(struct solver_report));
}

static void solver_free(struct quantized *t)
{
	free(t->state);
}

static size_t solver_bytes(size_t n, struct quantized *const t[n])
{
	struct solver_layer layer[QUANTIZER_LAYERS];

	solver_layers(n, t, layer);
	return solver_workspace(n, layer);
}

static void solve(size_t n, struct quantized *const t[n], void *workspace)
{
	struct solver_layer layer[QUANTIZER_LAYERS];

	solver_layers(n, t, layer);
	solver_run(n, layer, workspace);
	for (size_t i = 0; i < n; i++) {
		*(struct solver_report *)t[i]->state = layer[i].report;
		t[i]->status = layer[i].report.status;
		t[i]->index = layer[i].report.index;
	}
}

static void solve_corrected(size_t n, struct quantized *const t[n], void *workspace)
{
	qronos_run(n, t, workspace, solve);
}

static void view(struct quantized *t)
{
	codes_view(&t->codes, &t->layer.linear);
}

static void values(const struct quantized *t, double value[COLUMNS])
{
	const struct solver_report *r = t->state;
	const bool known = t->inputs.hessian;

	memcpy(value, (const double[COLUMNS]){ r->error, r->mse, r->lambda, (double)r->dead, r->seconds,
		known ? (double)t->inputs.count : NAN, known ? t->inputs.prior : NAN },
		COLUMNS * sizeof *value);
}

#define BY_SOLVER(solves) .max_layers = QUANTIZER_LAYERS, .report = { &table, &table_experts }, \
	.begin = solver_begin, .workspace = solver_bytes, .run = solves, .view = view, .values = values, \
	.free = solver_free
#define BY_BRANCH(which) .makes_branch = true, .branch = &branch_methods[BRANCH_##which], .max_layers = 1, \
	.report = { &branch_table, &branch_table }, .check = branch_check, .begin = branch_begin, \
	.workspace = branch_bytes, .run = branch_make, .view = branch_view, .values = branch_values, \
	.check_result = branch_check_result, .free = branch_free

#define NO_COMPENSATION { true, "order reorder key static-groups group-view damp paths turns solver", \
	"--compensate none" }
#define NO_DESCENT { true, "lr init-sigma", "a method that does not descend" }
#define ONE_STEP { true, "steps", "a method of one step" }

const struct quantizer quantizers[] = {
	{ "rtn", BY_SOLVER(solve), .without_effect = { NO_COMPENSATION } },
	{ "gptq", BY_SOLVER(solve), .needs_hessian = true, .reads_hessian = true, .takes_order = true },
	{ "qronos", BY_SOLVER(solve_corrected), .needs_hessian = true, .reads_hessian = true,
		.needs_cross = true, .takes_order = true },
	{ "fbquant", BY_BRANCH(FBQUANT), .needs_hessian = true, .reads_hessian = true },
	{ "lowrank", BY_BRANCH(LOWRANK), .keeps_main = true, .without_effect = { NO_DESCENT, ONE_STEP } },
	{ "svdquant", BY_BRANCH(SVDQUANT), .reads_hessian = true, .without_effect = { NO_DESCENT } },
	{ "loftq", BY_BRANCH(LOFTQ), .without_effect = { NO_DESCENT } },
	{ "caldera", BY_BRANCH(CALDERA), .needs_hessian = true, .reads_hessian = true,
		.without_effect = { NO_DESCENT } },
	{ "eora", BY_BRANCH(EORA), .needs_hessian = true, .reads_hessian = true, .keeps_main = true,
		.without_effect = { NO_DESCENT, ONE_STEP } },
	MORE_QUANTIZERS
	{ NULL }
};

const struct quantizer *quantizer_named(const char *name)
{
	const struct quantizer *y = quantizers;

	while (y->name && strcmp(y->name, name))
		y++;
	return y->name ? y : NULL;
}

const struct quantizer *quantizer_of(const struct solver *s)
{
	const bool compensates_error = s->compensate != COMPENSATE_NONE;
	const struct quantizer *without = NULL;

	for (const struct quantizer *y = quantizers; y->name; y++) {
		if (y->makes_branch || y->form != s->storage.form)
			continue;
		if (y->needs_hessian == compensates_error)
			return y;
		if (!y->needs_hessian)
			without = y;
	}
	return without;
}

char *quantizer_keepers(void)
{
	char *names = NULL;

	for (const struct quantizer *y = quantizers; y->name; y++) {
		char *before = names;

		if (!y->keeps_main)
			continue;
		names = before ? xformat("%s, %s", before, y->name) : xformat("%s", y->name);
		free(before);
	}
	return names;
}
