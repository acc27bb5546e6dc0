/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ldlq.c -- see ldlq.h
 *
 * Threads take panels of rows, which are transposed: rows are the lanes of every loop. Columns are divided
 * into spans. The compensation of a span by all columns before it is one product. Inside a span, each block
 * is compensated after the block before it.
 */
#include "solver/ldlq.h"
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/cut.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/code_form.h"
#include "num/e8p.h"
#include "num/quadratic.h"
#include "num/trellis.h"
#include "solver/factor.h"

enum { LANES = E8P_LANES, SPAN = 256, WIDEST = TRELLIS_SIDE };
#define SMALLEST 0x1p-60		/* scale of weights that are all 0 */

/*
 * A form of codes. `nearest` makes the codes of a block of `rows` rows, which begins at `code` and whose rows
 * of codes start every `stride` bytes, and its weights y; memory: `workspace` bytes, 0 at first.
 */
struct rounding {
	const struct code_form *form;
	double (*rms)(const struct format *f);
	size_t (*workspace)(const struct format *f);
	void (*nearest)(const struct format *f, size_t rows, size_t stride, uint8_t *code, float y[][LANES],
		const float x[][LANES], void *memory);
};

static size_t no_bytes(const struct format *f)
{
	(void)f;
	return 0;
}

static void e8p_block(const struct format *f, size_t rows, size_t stride, uint8_t *code, float y[][LANES],
	const float x[][LANES], void *memory)
{
	uint8_t each[LANES][E8P_BYTES];

	(void)memory;
	e8p_nearest(f, each, y, x);
	for (size_t l = 0; l < rows; l++)
		memcpy(code + l * stride, each[l], code_bytes(f));
}

static void trellis_block(const struct format *f, size_t rows, size_t stride, uint8_t *code, float y[][LANES],
	const float x[][LANES], void *memory)
{
	enum { SIDE = TRELLIS_SIDE };
	float tile[TRELLIS_WEIGHTS], found[TRELLIS_WEIGHTS];

	for (size_t first = 0; first < rows; first += SIDE) {
		for (size_t p = 0; p < TRELLIS_WEIGHTS; p++)
			tile[p] = x[p % SIDE][first + p / SIDE];
		trellis_nearest(f, code + first / SIDE * stride, found, tile, memory);
		for (size_t p = 0; p < TRELLIS_WEIGHTS; p++)
			y[p % SIDE][first + p / SIDE] = found[p];
	}
}

static const struct rounding roundings[] = {
	{ &e8p_form, e8p_rms, no_bytes, e8p_block },
	{ &trellis_form, trellis_rms, trellis_workspace, trellis_block },
};

static const struct rounding *rounding_of(const struct format *f)
{
	const struct rounding *y = roundings;

	while (y->form != f->form)
		y++;
	return y;
}

/* Workspace of a thread. */
struct panel {
	float (*w)[LANES];		/* [n + WIDEST] weights, then W - Ŵ */
	float (*plain)[LANES];		/* [n] weights */
	float (*d)[LANES];		/* [SPAN + WIDEST] compensation of a span */
	float *row;			/* [n] */
	void *memory;			/* of the rounding */
};

struct run {
	struct solver_layer *layer;
	const struct solver *s;
	const struct rounding *rounding;
	size_t m, n, panels, block;	/* block: columns */
	bool compensates;
	int32_t *column;		/* [n] storage order */
	float *r;			/* [n][n] R, then R_ik R_kk⁻¹ */
	double mean;
	double *square;			/* [m][groups] mean squares */
	double (*sum)[3];		/* [panels] tr(W H Wᵀ), tr(E H Eᵀ), Σ E² */
	struct panel *panel;		/* [threads] */
	struct format storage;		/* with the divisor of the scales */
};

bool ldlq_group_fits(const struct format *f, long group)
{
	return group <= 0 || (size_t)group % code_form(f)->columns == 0;
}

/* Divides the workspace and returns its size. base NULL: only the size. */
static size_t lay_out(struct run *u, struct solver_layer *layer, char *base)
{
	const struct linear *l = layer->weight;
	const size_t n = l->in, panels = ceil_div(l->out, LANES);
	const size_t groups = linear_groups(n, layer->settings->group);
	size_t at = 0;

	*u = (struct run){ .layer = layer, .s = layer->settings, .m = l->out, .n = n, .panels = panels,
		.compensates = layer->h && layer->settings->compensate != COMPENSATE_NONE,
		.storage = layer->settings->storage };
	u->rounding = rounding_of(&u->storage);
	u->block = u->rounding->form->columns;
	base = base ? base + (CUT_ALIGN - (uintptr_t)base % CUT_ALIGN) % CUT_ALIGN : NULL;
	u->column = cut(base, &at, n, sizeof *u->column);
	u->r = cut(base, &at, u->compensates ? n * n : 0, sizeof *u->r);
	u->square = cut(base, &at, l->out * groups, sizeof *u->square);
	u->sum = cut(base, &at, panels, sizeof *u->sum);
	u->panel = cut(base, &at, (size_t)threads, sizeof *u->panel);
	for (int t = 0; t < threads; t++) {
		const struct panel p = { .w = cut(base, &at, n + WIDEST, sizeof *p.w),
			.plain = cut(base, &at, n, sizeof *p.plain),
			.d = cut(base, &at, SPAN + WIDEST, sizeof *p.d),
			.row = cut(base, &at, n, sizeof *p.row),
			.memory = cut(base, &at, u->rounding->workspace(&u->storage), 1) };

		if (base)
			u->panel[t] = p;
		if (p.memory)
			memset(p.memory, 0, 1);
	}
	return at + CUT_ALIGN - 1;
}

size_t ldlq_workspace(const struct solver_layer *layer)
{
	struct solver_layer copy = *layer;
	struct run u;

	return lay_out(&u, &copy, NULL);
}

/* Mean squares of the groups of a row. Infinite or NaN if a weight is. */
static void mean_squares(const struct run *u, const float *row, size_t groups, double square[groups])
{
	const size_t width = u->s->group > 0 ? (size_t)u->s->group : u->n;

	for (size_t g = 0; g < groups; g++) {
		const size_t end = min((g + 1) * width, u->n);
		double sum = 0;

		for (size_t i = g * width; i < end; i++)
			sum += (double)row[i] * (double)row[i];
		square[g] = sum / (double)(end - g * width);
	}
}

/* Computes the scales. STATUS_BAD_WEIGHT: row *index is not finite. */
static enum status set_scales(struct run *u, size_t *index)
{
	struct codes *c = u->layer->codes;
	const size_t groups = linear_groups(u->n, u->s->group);
	const double rms = u->rounding->rms(&u->storage);
	double sum = 0, largest = 0;

	#pragma omp parallel for num_threads(threads) schedule(static) if (u->m * u->n > 1 << 16)
	for (size_t o = 0; o < u->m; o++) {
		float *row = u->panel[omp_get_thread_num()].row;

		linear_weight(u->layer->weight, o, 1, (float (*)[u->n])row);
		mean_squares(u, row, groups, u->square + o * groups);
	}
	for (size_t k = 0; k < u->m * groups; k++) {
		if (!isfinite(u->square[k])) {
			*index = k / groups;
			return STATUS_BAD_WEIGHT;
		}
		sum += u->square[k];
	}
	if (u->s->group < 0)
		*u->square = sum / (double)u->m;
	for (size_t k = 0; k < c->scales; k++) {
		u->square[k] = fmax(sqrt(u->square[k]) / rms, SMALLEST);
		largest = fmax(largest, u->square[k]);
	}
	format_tensor(&u->storage, 0, largest * (double)u->storage.max);
	for (size_t k = 0; k < c->scales; k++)
		c->scale[k] = format_scale(&u->storage, u->square[k]);
	return STATUS_DONE;
}

/* R_ik becomes R_ik R_kk⁻¹ for each block k. */
static void divide_by_blocks(struct run *u)
{
	const int n = (int)u->n, block = (int)u->block;

	#pragma omp taskloop grainsize(1)
	for (int k = block; k < n; k += block)
		cblas_strsm(CblasRowMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, k,
			min(block, n - k), 1, u->r + (size_t)k * u->n + k, n, u->r + k, n);
}

static void factorize(struct run *u)
{
	struct solver_report *report = &u->layer->report;
	size_t live;

	#pragma omp parallel num_threads(threads)
	#pragma omp single
	{
		report->status = u->layer->h ? factor_check(u->n, u->layer->h, &report->index) : STATUS_DONE;
		live = report->status ? 0 : factor_columns(u->n, u->column, u->layer->h, NULL);
		report->dead = report->status ? 0 : u->n - live;
		u->compensates &= live > 0;
		for (size_t i = 0; i < u->n; i++)
			u->column[i] = (int32_t)i;
		if (u->compensates)
			report->status = factor_run(u->n, u->n, u->r, &u->mean, &report->lambda,
				&report->index, u->layer->h, u->column, u->s->damp);
		if (u->compensates && !report->status)
			divide_by_blocks(u);
	}
}

static void load(const struct run *u, const struct panel *p, size_t first, size_t rows)
{
	memset(p->plain, 0, u->n * sizeof *p->plain);
	for (size_t l = 0; l < rows; l++) {
		linear_weight(u->layer->weight, first + l, 1, (float (*)[u->n])p->row);
		for (size_t i = 0; i < u->n; i++)
			p->plain[i][l] = p->row[i];
	}
	memcpy(p->w, p->plain, u->n * sizeof *p->w);
	memset(p->w + u->n, 0, WIDEST * sizeof *p->w);
}

/* The scales of the lanes in the block at column i, as they are decoded. */
static void scales_of(const struct run *u, size_t first, size_t rows, size_t i, float scale[LANES])
{
	const struct codes *c = u->layer->codes;
	const size_t g = u->s->group > 0 ? i / (size_t)u->s->group : 0;

	for (size_t l = 0; l < LANES; l++)
		scale[l] = l >= rows ? 1 : c->scale[c->group < 0 ? 0 : (first + l) * c->groups + g];
}

/* Quantizes the block at column i, whose compensation is d. */
static void quantize_block(const struct run *u, const struct panel *p, size_t first, size_t rows, size_t i,
	const float (*d)[LANES])
{
	const size_t stride = code_columns(&u->storage, u->n), block = u->block;
	uint8_t *code = u->layer->codes->codes + first / u->rounding->form->rows * stride +
		i / block * code_bytes(&u->storage);
	float x[WIDEST][LANES], y[WIDEST][LANES], scale[LANES];

	scales_of(u, first, rows, i, scale);
	for (size_t k = 0; k < block; k++)
		for (size_t l = 0; l < LANES; l++)
			x[k][l] = (p->w[i + k][l] + d[k][l]) / scale[l];
	u->rounding->nearest(&u->storage, rows, stride, code, y, (const float (*)[LANES])x, p->memory);
	for (size_t k = 0; k < min(block, u->n - i); k++)
		for (size_t l = 0; l < LANES; l++)
			p->w[i + k][l] = l < rows ? p->w[i + k][l] - y[k][l] * scale[l] : 0;
}

static void quantize_panel(const struct run *u, const struct panel *p, size_t first, size_t rows)
{
	const int n = (int)u->n;

	load(u, p, first, rows);
	for (int from = 0, end; from < n; from = end) {
		end = min(from + SPAN, n);
		memset(p->d, 0, (SPAN + WIDEST) * sizeof *p->d);
		if (u->compensates && from)
			cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, end - from, LANES, from, 1,
				u->r + from, n, p->w[0], LANES, 0, p->d[0], LANES);
		for (int i = from, next; i < end; i = next) {
			next = min(i + (int)u->block, end);
			quantize_block(u, p, first, rows, (size_t)i, (const float (*)[LANES])p->d + i - from);
			if (u->compensates && next < end)
				cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, end - next, LANES,
					next - i, 1, u->r + (size_t)i * u->n + next, n, p->w[i], LANES, 1,
					p->d[next - from], LANES);
		}
	}
}

/* Sets sum: tr(W H Wᵀ), tr(E H Eᵀ), Σ E² of a panel. */
static void measure(const struct run *u, const struct panel *p, double sum[3])
{
	const struct quadratic q = { u->n, u->n, u->layer->h, .block = SPAN };
	const bool reports = u->layer->h && !u->s->no_error;

	sum[0] = reports ? quadratic_lanes(&q, LANES, LANES, p->plain[0], p->d[0]) : 0;
	sum[1] = reports ? quadratic_lanes(&q, LANES, LANES, p->w[0], p->d[0]) : 0;
	sum[2] = 0;
	for (size_t i = 0; i < u->n; i++)
		for (size_t l = 0; l < LANES; l++)
			sum[2] += (double)p->w[i][l] * (double)p->w[i][l];
}

static void finish(const struct run *u)
{
	struct solver_report *report = &u->layer->report;
	struct codes *c = u->layer->codes;
	double sum[3] = { 0 };

	for (size_t k = 0; k < u->panels; k++)
		for (size_t i = 0; i < 3; i++)
			sum[i] += u->sum[k][i];
	report->error = sum[0] > 0 && isfinite(sum[0]) && isfinite(sum[1]) ? sum[1] / sum[0] : NAN;
	report->mse = sum[2] / ((double)u->m * (double)u->n);
	format_store(&u->storage, c->scales, c->scale);
	c->scale_tensor = u->storage.divisor;
	for (size_t i = 0; i < u->n; i++)
		c->group_index[i] = u->s->group > 0 ? (int32_t)(i / (size_t)u->s->group) : 0;
	c->needs_group_index = false;
}

void ldlq_run(struct solver_layer *layer, void *workspace)
{
	const double start = omp_get_wtime();
	struct solver_report *report = &layer->report;
	double seconds = 0;
	struct run u;

	lay_out(&u, layer, workspace);
	*report = (struct solver_report){ .error = NAN };
	if ((report->status = set_scales(&u, &report->index)))
		return;
	factorize(&u);
	if (report->status)
		return;
	report->seconds = omp_get_wtime() - start;
	#pragma omp parallel for num_threads(threads_for(u.panels)) schedule(dynamic) reduction(+:seconds)
	for (size_t k = 0; k < u.panels; k++) {
		const struct panel *p = &u.panel[omp_get_thread_num()];
		const double begin = omp_get_wtime();

		quantize_panel(&u, p, k * LANES, min(u.m - k * LANES, LANES));
		measure(&u, p, u.sum[k]);
		seconds += omp_get_wtime() - begin;
	}
	report->seconds += seconds;
	finish(&u);
}
