/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer.c -- see quantizer.h */
#include "transform/quantizer.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "num/code_form.h"
#include "num/e8p.h"
#include "num/gguf_block.h"
#include "num/trellis.h"
#include "solver/ldlq.h"
#include "transform/quantizer_branch.h"
#include "transform/quantizer_gguf.h"
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

static struct solver_layer ldlq_layer(struct quantized *t)
{
	return (struct solver_layer){ .weight = t->weight, .settings = &t->method->solver,
		.h = t->inputs.hessian, .codes = &t->codes };
}

static size_t ldlq_bytes(size_t n, struct quantized *const t[n])
{
	const struct solver_layer layer = ldlq_layer(t[0]);

	return ldlq_workspace(&layer);
}

static void ldlq_make(size_t n, struct quantized *const t[n], void *workspace)
{
	struct solver_layer layer = ldlq_layer(t[0]);

	(void)n;
	ldlq_run(&layer, workspace);
	*(struct solver_report *)t[0]->state = layer.report;
	t[0]->status = layer.report.status;
	t[0]->index = layer.report.index;
}

static void ldlq_check(const struct method *m, const char *file, const char *path, size_t out, size_t in)
{
	const struct solver *s = &m->solver;

	(void)out, (void)in;
	if (s->compute.kind)
		misuse("--compute: weights of %s are multiplied as they are decoded", s->storage.name);
	if (!ldlq_group_fits(&s->storage, s->group))
		die("%s: %s: a code of %s is for %zu columns, expected a --group that is a multiple of "
			"them, channel or tensor", file, path, s->storage.name,
			code_form(&s->storage)->columns);
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
/* A code is for neighbouring columns, so they stay in storage order. */
#define BY_LDLQ(of) .form = &of, .rotates = true, .max_layers = 1, .report = { &table, &table_experts }, \
	.check = ldlq_check, .begin = solver_begin, .workspace = ldlq_bytes, .run = ldlq_make, .view = view, \
	.values = values, .free = solver_free
#define OF_COMPENSATION "reorder key static-groups group-view paths turns"
#define OF_COLUMNS "order " OF_COMPENSATION
#define OF_SCALES "scale-search round-first scale8"
#define CODES_OF_SEVERAL(more) { true, OF_COLUMNS " " OF_SCALES " ties" more, \
	"a storage with codes of several weights" }
/* A block is for neighbouring columns, and has its own scales. */
#define BY_BLOCKS(of) .form = &of, .max_layers = 1, .reads_hessian = true, \
	.report = { &table, &table_experts }, .check = gguf_blocks_check, .begin = solver_begin, \
	.workspace = gguf_blocks_workspace, .run = gguf_blocks_make, .view = view, .values = values, \
	.free = solver_free, .without_effect = { true, OF_COLUMNS " " OF_SCALES \
		" group scale-dtype scale-bits ties damp solver", "a storage of blocks" }
#define BY_BRANCH(which) .makes_branch = true, .branch = &branch_methods[BRANCH_##which], .max_layers = 1, \
	.report = { &branch_table, &branch_table }, .check = branch_check, .begin = branch_begin, \
	.workspace = branch_bytes, .run = branch_make, .view = branch_view, .values = branch_values, \
	.check_result = branch_check_result, .free = branch_free

const struct quantizer quantizers[] = {
	/* An order from a file sets only which columns share a group. */
	{ "rtn", BY_SOLVER(solve), .takes_order = true,
		.without_effect = { true, OF_COMPENSATION " damp solver", "--compensate none" } },
	{ "gptq", BY_SOLVER(solve), .needs_hessian = true, .reads_hessian = true, .takes_order = true },
	{ "qronos", BY_SOLVER(solve_corrected), .needs_hessian = true, .reads_hessian = true,
		.needs_cross = true, .takes_order = true },
	{ "e8p-rtn", BY_LDLQ(e8p_form), .without_effect = CODES_OF_SEVERAL(" damp") },
	{ "e8p", BY_LDLQ(e8p_form), .needs_hessian = true, .reads_hessian = true,
		.without_effect = CODES_OF_SEVERAL("") },
	{ "trellis-rtn", BY_LDLQ(trellis_form), .without_effect = CODES_OF_SEVERAL(" damp") },
	{ "trellis", BY_LDLQ(trellis_form), .needs_hessian = true, .reads_hessian = true,
		.without_effect = CODES_OF_SEVERAL("") },
	{ "gguf-256", BY_BLOCKS(gguf_block_256_form) },
	{ "gguf-32", BY_BLOCKS(gguf_block_32_form) },
	{ "fbquant", BY_BRANCH(FBQUANT), .needs_hessian = true, .reads_hessian = true,
		.without_effect = { true, "scale-search",
			"--method fbquant, which bounds errors by full ranges" } },
	{ "lowrank", BY_BRANCH(LOWRANK), .keeps_main = true },
	{ "svdquant", BY_BRANCH(SVDQUANT), .reads_hessian = true },
	{ "loftq", BY_BRANCH(LOFTQ) },
	{ "caldera", BY_BRANCH(CALDERA), .needs_hessian = true, .reads_hessian = true },
	{ "eora", BY_BRANCH(EORA), .needs_hessian = true, .reads_hessian = true, .keeps_main = true },
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
		names = before ? xformat("%s or %s", before, y->name) : xformat("%s", y->name);
		free(before);
	}
	return names;
}
