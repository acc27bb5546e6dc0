/* SPDX-License-Identifier: GPL-3.0-or-later */
/* awq_search.c -- see awq_search.h */
#include "transform/awq_search.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/quadratic.h"
#include "quant/round.h"

/* Constants, not options, since results depend on them: rows at once, and columns of H at once. */
enum { ROWS = 64, CLIP_ROWS = 32, PANEL = 256 };

static const double min_factor = 1e-4;

void awq_factors(size_t n, double s[n], const double mean_abs[n], size_t i)
{
	double low = INFINITY, high = 0;

	for (size_t j = 0; j < n; j++) {
		s[j] = fmax(pow(mean_abs[j], (double)i / AWQ_RATIOS), min_factor);
		low = fmin(low, s[j]);
		high = fmax(high, s[j]);
	}
	for (size_t j = 0; j < n; j++)
		s[j] /= sqrt(low) * sqrt(high);
}

/* Memory for Q of a row of W diag(s). */
struct rounding {
	const struct awq_format *f;
	size_t n, group;		/* columns; columns of a group */
	float *scale;			/* [groups] */
	uint8_t *code, *zero;		/* [n], [groups] */
};

static struct rounding rounding_of(const struct awq_format *f, size_t n)
{
	const size_t group = f->group ? min((size_t)f->group, n) : n, groups = ceil_div(n, group);

	return (struct rounding){ f, n, group, xalloc(groups, sizeof(float)), xalloc(n, 1),
		xalloc(groups, 1) };
}

static void rounding_free(struct rounding *r)
{
	free(r->scale), free(r->code), free(r->zero);
}

/* q = Q(v), for n ≤ r->n numbers that begin with a group. */
static void nearest(const struct rounding *r, const struct format *f, size_t n, float q[n], const float v[n])
{
	round_row(f, n, r->group, r->code, r->scale, r->zero, v);
	round_values(f, n, r->group, q, r->code, r->scale, r->zero);
}

static void unscale(size_t n, float x[n], const double *s)
{
	for (size_t j = 0; s && j < n; j++)
		x[j] = (float)((double)x[j] / s[j]);
}

/* A weight: a layer whose columns are not scaled yet, or a scaled matrix. */
struct weight {
	size_t m, n;
	const struct linear *plain;	/* or NULL: */
	const double *scaled;		/* [m][n] */
	const double *s;		/* [n], or NULL: 1 */
	const double *rows;		/* [m] factors of rows, not applied yet, or NULL: 1 */
};

/* Rows [first, first + rows) of W diag(s), rounded to float as in a file. */
static void weight_rows(const struct weight *w, size_t first, size_t rows, float v[rows][w->n])
{
	if (w->plain)
		linear_weight(w->plain, first, rows, v);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < w->n; j++)
			if (!w->plain)
				v[i][j] = (float)w->scaled[(first + i) * w->n + j];
			else if (w->s)
				v[i][j] = (float)((double)v[i][j] * w->s[j]);
}

/* Fits the format's divisor of scales, if it has one, to W diag(s). False if a number is not finite. */
static bool fit_format(struct awq_format *f, const struct weight *w)
{
	double low = 0, high = 0;
	bool finite = true;

	#pragma omp parallel for num_threads(threads_for(ceil_div(w->m, ROWS))) schedule(static) \
		reduction(min:low) reduction(max:high) reduction(&&:finite)
	for (size_t first = 0; first < w->m; first += ROWS) {
		const size_t rows = min(ROWS, w->m - first);
		float *v = xalloc(rows * w->n, sizeof *v);

		weight_rows(w, first, rows, (float (*)[w->n])v);
		for (size_t i = 0; i < rows * w->n; i++) {
			low = fmin(low, (double)v[i]);
			high = fmax(high, (double)v[i]);
			finite = finite && isfinite(v[i]);
		}
		free(v);
	}
	format_tensor(&f->storage, low, high);
	return finite;
}

/* The losses of rows; whole: tr(W H Wᵀ) of each row, or NULL. */
static void rows_loss(const struct awq_format *f, const struct weight *w, const float *h, size_t first,
	size_t rows, double error[rows], double *whole)
{
	struct rounding r = rounding_of(f, w->n);
	const size_t n = w->n;
	const struct quadratic q = { n, n, h, .block = PANEL };
	float *v = xalloc(2 * rows * n + rows * PANEL, sizeof *v), *e = v + rows * n, *y = e + rows * n;

	weight_rows(w, first, rows, (float (*)[n])v);
	for (size_t i = 0; i < rows; i++) {
		nearest(&r, &f->storage, n, e + i * n, v + i * n);
		for (size_t j = i * n; j < (i + 1) * n; j++)
			e[j] = v[j] - e[j];
		unscale(n, e + i * n, w->s);
		unscale(n, v + i * n, w->s);
	}
	quadratic_rows(&q, rows, e, y, error);
	if (whole)
		quadratic_rows(&q, rows, v, y, whole);
	free(v);
	rounding_free(&r);
}

static double loss_of(const struct awq_format *asked, const struct weight *w, const float *h, double *whole)
{
	struct awq_format f = *asked;
	double *row = xalloc(2 * w->m, sizeof *row), loss = 0, all = 0;
	const bool finite = fit_format(&f, w);

	#pragma omp parallel for num_threads(threads_for(ceil_div(w->m, ROWS))) schedule(dynamic) if (finite)
	for (size_t first = 0; first < (finite ? w->m : 0); first += ROWS)
		rows_loss(&f, w, h, first, min(ROWS, w->m - first), row + first,
			whole ? row + w->m + first : NULL);
	for (size_t i = 0; i < w->m; i++) {
		const double r = w->rows ? w->rows[i] * w->rows[i] : 1;

		loss += r * row[i];
		all += r * row[w->m + i];
	}
	if (whole)
		*whole = all;
	free(row);
	return finite ? loss : NAN;
}

double awq_loss(const struct awq_format *f, const struct linear *l, const double *s, const float *h,
	double *whole)
{
	return loss_of(f, &(struct weight){ l->out, l->in, l, NULL, s, NULL }, h, whole);
}

double awq_loss_scaled(const struct awq_format *f, size_t m, size_t n, const double w[m][n], const double *s,
	const double *rows, const float *h, double *whole)
{
	return loss_of(f, &(struct weight){ m, n, NULL, w[0], s, rows }, h, whole);
}

/* Columns [at, at + n) of some rows: one group of each row. */
struct piece {
	const struct rounding *rounding;
	size_t rows, columns, at, n;
	double *w;			/* [rows][columns] */
	float *e;			/* [rows][AWQ_SHRINKS][n] errors */
	float *y;			/* [rows][AWQ_SHRINKS][PANEL] */
	float *v;			/* [2][n] */
};

/* Copies the group of row i to p->v; returns its max |w|. */
static float take_group(const struct piece *p, size_t i)
{
	float max = 0;

	for (size_t j = 0; j < p->n; j++) {
		p->v[j] = (float)p->w[i * p->columns + p->at + j];
		max = fmaxf(max, fabsf(p->v[j]));
	}
	return max;
}

static float shrunk(float max, size_t k)
{
	return (float)((double)max * (1 - (double)k / AWQ_RATIOS));
}

/* Errors of row i for each limit. s: of the group's columns. */
static void try_limits(const struct piece *p, size_t i, const double *s)
{
	const float max = take_group(p, i);
	float *clipped = p->v + p->n;

	for (size_t k = 0; k < AWQ_SHRINKS; k++) {
		float *e = p->e + (i * AWQ_SHRINKS + k) * p->n;
		const float limit = shrunk(max, k);

		for (size_t j = 0; j < p->n; j++)
			clipped[j] = fminf(fmaxf(p->v[j], -limit), limit);
		nearest(p->rounding, &p->rounding->f->storage, p->n, e, clipped);
		for (size_t j = 0; j < p->n; j++)
			e[j] = p->v[j] - e[j];
		unscale(p->n, e, s);
	}
}

/* Clips row i to the limit with the smallest loss. Returns whether it is not the whole range. */
static bool take_best(const struct piece *p, size_t i, const double loss[AWQ_SHRINKS])
{
	const float max = take_group(p, i);
	double *w = p->w + i * p->columns + p->at;
	size_t best = 0;

	for (size_t k = 1; k < AWQ_SHRINKS; k++)
		if (loss[k] < loss[best])
			best = k;
	for (size_t j = 0; best && j < p->n; j++)
		w[j] = fmin(fmax(w[j], -(double)shrunk(max, best)), (double)shrunk(max, best));
	return best;
}

/* Returns the number of clipped groups. */
static size_t clip_rows(const struct awq_format *f, size_t rows, size_t n, double w[rows][n], const double *s,
	const float *h)
{
	struct rounding r = rounding_of(f, n);
	const size_t tries = rows * AWQ_SHRINKS;
	struct piece p = { &r, rows, n, 0, 0, w[0], NULL, NULL, NULL };
	double *loss = xalloc(tries, sizeof *loss);
	size_t clipped = 0;

	p.e = xalloc(tries * (r.group + PANEL) + 2 * r.group, sizeof *p.e);
	p.y = p.e + tries * r.group;
	p.v = p.y + tries * PANEL;
	for (; p.at < n; p.at += p.n) {
		struct quadratic q = { min(r.group, n - p.at), n, h + p.at * n + p.at,
			.block = PANEL };

		p.n = q.n;
		for (size_t i = 0; i < rows; i++)
			try_limits(&p, i, s ? s + p.at : NULL);
		quadratic_rows(&q, tries, p.e, p.y, loss);
		for (size_t i = 0; i < rows; i++)
			clipped += take_best(&p, i, loss + i * AWQ_SHRINKS);
	}
	free(p.e), free(loss);
	rounding_free(&r);
	return clipped;
}

bool awq_clip(const struct awq_format *asked, size_t m, size_t n, double w[m][n], const double *s,
	const float *h, size_t *clipped)
{
	struct awq_format f = *asked;
	size_t sum = 0;

	if (!fit_format(&f, &(struct weight){ m, n, NULL, w[0], s, NULL }))
		return false;
	#pragma omp parallel for num_threads(threads_for(ceil_div(m, CLIP_ROWS))) schedule(dynamic) \
		reduction(+:sum)
	for (size_t i = 0; i < m; i += CLIP_ROWS)
		sum += clip_rows(&f, min(CLIP_ROWS, m - i), n, &w[i], s, h);
	*clipped = sum;
	return true;
}
