/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer_gguf.c -- see quantizer_gguf.h */
#include "transform/quantizer_gguf.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "base/cut.h"
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/code_form.h"
#include "num/gguf_block.h"
#include "num/quadratic.h"
#include "solver/factor.h"

/* Rows that a thread takes at once, columns of a block of the error. */
enum { ROWS = 64, SPAN = 256 };

void gguf_blocks_check(const struct method *m, const char *file, const char *path, size_t out, size_t in)
{
	const struct format *f = &m->solver.storage;
	const size_t columns = code_form(f)->columns, few = gguf_block_32_form.columns;

	(void)out;
	if (m->solver.compensate != COMPENSATE_NONE)
		misuse("--compensate %s: the blocks of %s are searched one by one, without compensation of "
			"errors; expected --compensate none for %s", compensates[m->solver.compensate],
			f->name, path);
	if (m->solver.compute.kind)
		misuse("--compute: weights of %s are multiplied as they are decoded", f->name);
	if (in % columns)
		die("%s: %s: has rows of %zu columns, and a block of %s is for %zu: expected another "
			"--storage for this layer in a --plan, such as %s", file, path, in, f->name, columns,
			columns == few || in % few ? "int4" : "iq4_nl");
}

/* The tokens of the sum of second moments; with a prior, at least n (calib/hessian.h). */
static double tokens_of(const struct second_moments *m, size_t n)
{
	const double tokens = (double)m->count;

	return m->prior > 0 ? fmax(tokens, (double)n) : fmax(tokens, 1);
}

struct run {
	struct quantized *t;
	size_t m, n, panels;
	float *importance;		/* [n]; NULL: unknown */
	double (*sum)[3];		/* [panels] tr(W H Wᵀ), tr(E H Eᵀ), Σ E² */
	enum status *status;		/* [m] */
	float *memory;			/* [threads][floats] w, e, and the product of quadratic_trace() */
	size_t floats;
};

/* Divides the workspace and returns its size. base NULL: only the size. */
static size_t lay_out(struct run *u, struct quantized *t, char *base)
{
	const size_t m = t->weight->out, n = t->weight->in;
	size_t at = 0;

	*u = (struct run){ .t = t, .m = m, .n = n, .panels = ceil_div(m, ROWS),
		.floats = 2 * ROWS * n + ROWS * SPAN };
	u->sum = cut(base, &at, u->panels, sizeof *u->sum);
	u->importance = cut(base, &at, t->inputs.hessian ? n : 0, sizeof *u->importance);
	u->status = cut(base, &at, m, sizeof *u->status);
	u->memory = cut(base, &at, (size_t)threads * u->floats, sizeof *u->memory);
	return at;
}

size_t gguf_blocks_workspace(size_t n, struct quantized *const t[n])
{
	struct run u;

	return lay_out(&u, t[0], NULL);
}

static void set_importance(struct run *u)
{
	const struct second_moments *m = &u->t->inputs;

	for (size_t i = 0; u->importance && i < u->n; i++)
		u->importance[i] = (float)((double)m->hessian[i * (u->n + 1)] / tokens_of(m, u->n));
}

/* Makes the codes of a row, and e = w - ŵ. */
static enum status make_row(const struct run *u, size_t row, const float w[u->n], float e[u->n])
{
	const struct format *f = &u->t->codes.storage;
	const struct code_form *form = code_form(f);
	const size_t bytes = code_columns(f, u->n), codes = bytes / code_bytes(f);
	uint8_t *code = u->t->codes.codes + row * bytes;

	if (!half_finite(u->n, w, HALF_NONE))
		return STATUS_BAD_WEIGHT;
	gguf_block_encode(f, u->n, code, w, u->importance);
	if (code_first_invalid(f, codes, code) < codes)
		return STATUS_BEYOND_HALF;
	for (size_t i = 0, some; i < u->n; i += some) {
		some = min(form->columns, u->n - i);
		form->decode(f, 0, 0, some, e + i, code + i / form->columns * code_bytes(f), NULL, NULL);
	}
	for (size_t i = 0; i < u->n; i++)
		e[i] = w[i] - e[i];
	return STATUS_DONE;
}

/* Rows [first, first + rows). */
static void make_rows(const struct run *u, size_t first, size_t rows, double sum[3])
{
	const size_t n = u->n;
	const struct quadratic q = { n, n, u->t->inputs.hessian, .block = SPAN };
	float *w = u->memory + (size_t)omp_get_thread_num() * u->floats, *e = w + ROWS * n;
	const bool reports = q.h && !u->t->method->solver.no_error;

	memset(sum, 0, sizeof(double[3]));
	linear_weight(u->t->weight, first, rows, (float (*)[n])w);
	for (size_t i = 0; i < rows; i++)
		if ((u->status[first + i] = make_row(u, first + i, w + i * n, e + i * n)))
			return;
	for (size_t i = 0; i < rows * n; i++)
		sum[2] += (double)e[i] * (double)e[i];
	if (reports) {
		sum[0] = quadratic_trace(&q, rows, w, e + ROWS * n);
		sum[1] = quadratic_trace(&q, rows, e, e + ROWS * n);
	}
}

static void finish(const struct run *u, struct solver_report *r)
{
	double sum[3] = { 0 };

	for (size_t k = 0; k < u->panels; k++)
		for (size_t i = 0; i < 3; i++)
			sum[i] += u->sum[k][i];
	r->error = sum[0] > 0 && isfinite(sum[0]) && isfinite(sum[1]) ? sum[1] / sum[0] : NAN;
	r->mse = sum[2] / ((double)u->m * (double)u->n);
	for (size_t i = 0; i < u->m && !r->status; i++) {
		r->status = u->status[i];
		r->index = i;
	}
	for (size_t i = 0; u->importance && i < u->n; i++)
		r->dead += u->importance[i] == 0;
}

void gguf_blocks_make(size_t n, struct quantized *const t[n], void *workspace)
{
	struct solver_report *r = t[0]->state;
	double seconds = 0;
	struct run u;

	(void)n;
	lay_out(&u, t[0], workspace);
	set_importance(&u);
	*r = (struct solver_report){ .error = NAN };
	memset(u.status, 0, u.m * sizeof *u.status);
	if (u.importance)
		r->status = factor_check(u.n, t[0]->inputs.hessian, &r->index);
	if (!r->status) {
		#pragma omp parallel for num_threads(threads_for(u.panels)) schedule(dynamic) \
			reduction(+:seconds)
		for (size_t i = 0; i < u.m; i += ROWS) {
			const double start = omp_get_wtime();

			make_rows(&u, i, min(ROWS, u.m - i), u.sum[i / ROWS]);
			seconds += omp_get_wtime() - start;
		}
		finish(&u, r);
	}
	r->seconds = seconds;
	t[0]->codes.needs_group_index = false;
	t[0]->codes.scale_tensor = 1;
	t[0]->status = r->status;
	t[0]->index = r->index;
}
