/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_fit.c -- scale and zero of the groups of a panel; see solver_private.h
 *
 * The settings select the weights from which they are computed. With compensation, a group whose columns are
 * adjacent in the order is refined by R. Other groups are refined by H (refine.h).
 */
#include <string.h>
#include "solver/solver_private.h"
#include "num/clones.h"

CLONES(, void, fit_weigh, (double x[LANES], const float w[LANES], const float *d, const double *scale8),
	(x, w, d, scale8))
{
	if (scale8)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			x[l] = w[l] / scale8[l];
	else
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			x[l] = w[l];
	if (d)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			x[l] += d[l];
}

/* Adds a member of a group: its value in float to y, and the value to the range. */
CLONES(static, void, widen, (float y[LANES], double low[LANES], double high[LANES], const double x[LANES]),
	(y, low, high, x))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		y[l] = (float)x[l];
		low[l] = x[l] < low[l] ? x[l] : low[l];
		high[l] = x[l] > high[l] ? x[l] : high[l];
	}
}

CLONES(static, void, narrow, (float y[LANES], const double x[LANES]), (y, x))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		y[l] = (float)x[l];
}

const double *fit_scale8(const struct job *j, const struct workspace *a, size_t l0)
{
	return j->s->compute.kind ? a->scale8 + l0 : NULL;
}

bool fit_is_due(const struct job *j, const struct workspace *a, size_t p)
{
	return j->late && (!j->turns || a->turns->sweep == SWEEP_ALL) &&
		(p == 0 || j->group[p] != j->group[p - 1]);
}

/* Multiplies the range by the learned factors. */
static void shrink(const struct workspace *a, size_t group, size_t l0, double low[LANES], double high[LANES])
{
	for (size_t l = 0; l < LANES; l++) {
		high[l] *= (double)a->clip[group].factor[0][l0 + l];
		low[l] *= (double)a->clip[group].factor[1][l0 + l];
	}
}

static void refine(const struct rows *r, const struct workspace *a, size_t group, size_t l0,
	const double low[LANES], const double high[LANES])
{
	const struct job *j = r->job;
	const struct solver *s = j->s;
	const int32_t *member = j->member + j->first[group];
	const size_t n = (size_t)(j->first[group + 1] - j->first[group]);
	const bool adjacent = n && (size_t)(member[n - 1] - member[0]) == n - 1;
	struct refine form = { .coding = { &r->storage, j->coding.first }, .member = member,
		.sweep = s->compensate != COMPENSATE_NONE && adjacent };

	form.form = form.sweep ? j->r : j->h;
	form.stride = form.sweep ? j->live : j->n;
	form.column = form.sweep ? NULL : j->column;
	if (n && form.form)
		refine_fit(&form, n, a->scale[group] + l0, a->zero[group] + l0,
			(const float (*)[LANES])a->exact, low, high, a->refine);
}

/* Sets a->member to the weights of a group, a->exact for refinement, and low and high to their range. */
static void take_members(const struct rows *r, const struct workspace *a, const struct span *span,
	size_t group, size_t l0, size_t first, size_t last, double low[LANES], double high[LANES])
{
	const struct job *j = r->job;
	const size_t from = (size_t)j->first[group], n = (size_t)j->first[group + 1] - from;
	double x[LANES], rounded[LANES];

	for (size_t i = 0; i < n; i++) {
		size_t p = (size_t)j->member[from + i], c = (size_t)j->column[p];

		if (p >= first && p < last)
			memcpy(x, a->x[p - first], sizeof x);
		else
			fit_weigh(x, a->w[c] + l0, span ? a->d[p - span->first] + l0 : NULL,
				fit_scale8(j, a, l0));
		if (j->s->search == SEARCH_HESSIAN)
			narrow(a->exact[i], x);
		widen(a->member[i], low, high, coding_first(&j->coding, rounded, x));
	}
}

void fit_group(const struct rows *r, const struct workspace *a, const struct span *span, size_t group,
	size_t l0, size_t first, size_t last)
{
	const struct job *j = r->job;
	const enum search search = j->s->search;
	double low[LANES] = { 0 }, high[LANES] = { 0 };

	take_members(r, a, span, group, l0, first, last, low, high);
	if (search == SEARCH_LEARNED)
		shrink(a, group, l0, low, high);
	search_fit(&r->storage, search, (size_t)(j->first[group + 1] - j->first[group]), a->scale[group] + l0,
		a->zero[group] + l0, (const float (*)[LANES])a->member, low, high);
	if (search == SEARCH_HESSIAN)
		refine(r, a, group, l0, low, high);
}

static void learn(const struct rows *r, const struct workspace *a, size_t lanes)
{
	const struct job *j = r->job;
	const struct clip c = { .storage = &r->storage, .n = j->n, .live = j->live, .groups = j->groups,
		.column = j->column, .group = j->group, .h = j->h, .rows = lanes,
		.w = (const float (*)[PANEL_ROWS])a->w, .unit = a->scale8, .steps = CLIP_STEPS,
		.rate = CLIP_RATE };

	clip_learn(&c, a->clip, a->e, a->y);
}

void fit_panel(const struct rows *r, const struct workspace *a, size_t lanes)
{
	const struct job *j = r->job;

	if (j->s->search == SEARCH_LEARNED && j->s->group != -1)
		learn(r, a, lanes);
	for (size_t g = 0; g < j->groups; g++) {
		if (j->s->group == -1) {
			for (size_t l = 0; l < lanes; l++) {
				a->scale[g][l] = r->tensor_scale;
				a->zero[g][l] = r->tensor_zero;
			}
			continue;
		}
		if (!j->late || j->first[g] == j->first[g + 1])
			for (size_t l0 = 0; l0 < lanes; l0 += LANES)
				fit_group(r, a, NULL, g, l0, 0, 0);
	}
}
