/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer_qronos.c -- see quantizer_qronos.h */
#include "transform/quantizer_qronos.h"
#include <stdlib.h>
#include "base/error.h"
#include "transform/corrected.h"

static bool same_inputs(const struct quantized *a, const struct quantized *b)
{
	return a->inputs.hessian == b->inputs.hessian && a->inputs.order == b->inputs.order &&
		a->method == b->method;
}

/* The first column that the solver quantizes; n: all are dead. */
static size_t first_column(const struct second_moments *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const size_t c = m->order ? (size_t)m->order[i] : i;

		if (c < n && m->hessian[c * (n + 1)] > 0)
			return c;
	}
	return n;
}

static void fail(size_t n, struct quantized *const t[n], enum status status, size_t index)
{
	for (size_t i = 0; i < n; i++) {
		t[i]->status = status;
		t[i]->index = index;
	}
}

/* Corrects and solves n layers with the same inputs. Returns the damping that the solver used. */
static double run_some(size_t n, struct quantized *const t[n], double damp, void *workspace,
	qronos_solve *solve)
{
	const struct second_moments *m = &t[0]->inputs;
	const size_t in = t[0]->weight->in;
	struct correction c = { .n = in, .h = m->hessian, .cross = m->cross, .damp = damp,
		.alone = first_column(m, in) };
	const struct linear *weight[QUANTIZER_LAYERS];
	struct linear corrected[QUANTIZER_LAYERS];
	float *memory[QUANTIZER_LAYERS];
	void *own = xalloc(correct_workspace(in), 1);
	size_t index = 0;
	const enum status status = correct_make(&c, own, &index);

	for (size_t i = 0; i < n && status == STATUS_DONE; i++) {
		weight[i] = t[i]->weight;
		memory[i] = corrected_layer(&c, 1, weight[i], &corrected[i]);
		t[i]->weight = &corrected[i];
	}
	free(own);
	if (status != STATUS_DONE) {
		fail(n, t, status, index);
		return 0;
	}
	solve(n, t, workspace);
	for (size_t i = 0; i < n; i++) {
		t[i]->weight = weight[i];
		free(memory[i]);
	}
	return t[0]->status == STATUS_DONE ? ((const struct solver_report *)t[0]->state)->lambda : 0;
}

void qronos_run(size_t n, struct quantized *const t[n], void *workspace, qronos_solve *solve)
{
	for (size_t i = 0, some; i < n; i += some) {
		const double damp = t[i]->method->solver.damp;
		double used;

		for (some = 1; i + some < n && same_inputs(t[i], t[i + some]); some++)
			;
		used = run_some(some, t + i, damp, workspace, solve);
		if (used > damp)	/* the factor of the solver, in float, needed more */
			run_some(some, t + i, used, workspace, solve);
	}
}
