/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_turns.c -- scales for given codes, in closed form; see solver_private.h
 *
 * With the codes of a row fixed, ŵ = C s: column g of C has the values, less the zero, of group g's codes.
 * (w - C s) H' (w - C s)ᵀ, H' = H/mean + λI, is least for
 *
 *	(Cᵀ H' C) s = Cᵀ H' w
 *
 * The solution is rounded to the type of scales. A scale that is not positive stays what it was, and so do
 * all scales of a row whose matrix is not positive definite. H' of live columns in their order is made in
 * blocks of 256 columns; products are in float, sums in double.
 */
#include <cblas.h>
#include <math.h>
#include <string.h>
#include "solver/solver_private.h"
#include "num/clones.h"

enum { TILE = SPAN_COLUMNS };

/* level = value of each code, less the zero. */
static void take_levels(const struct job *j, const struct workspace *a, size_t lanes)
{
	const struct format *f = &j->s->storage;

	for (size_t p = 0; p < j->live; p++) {
		const uint8_t *code = a->code[j->column[p]], *zero = a->zero[j->group[p]];

		for (size_t l = 0; l < lanes; l++)
			a->turns->level[p][l] = f->grid[code[l]] - (f->asymmetric ? (float)zero[l] : 0);
	}
}

/* y = H' C_g, for all positions; to: scratch for a block of H' and for rows of C. */
static void multiply(const struct job *j, const struct workspace *a, size_t group, size_t lanes)
{
	const int32_t *member = j->member + j->first[group];
	const size_t n = (size_t)(j->first[group + 1] - j->first[group]);
	const float scale = (float)(1 / j->mean);
	float (*block)[TILE] = (float (*)[TILE])a->y, (*y)[PANEL_ROWS] = a->e;

	memset(y, 0, j->live * sizeof *y);
	for (size_t q = 0; q < n; q += TILE) {
		const size_t width = min(n - q, TILE);
		float (*c)[PANEL_ROWS] = a->turns->rows;

		for (size_t i = 0; i < width; i++)
			memcpy(c[i], a->turns->level[member[q + i]], lanes * sizeof **c);
		for (size_t p = 0; p < j->live; p += TILE) {
			const size_t height = min(j->live - p, TILE);

			for (size_t k = 0; k < height; k++) {
				const float *h = j->h + (size_t)j->column[p + k] * j->n;

				for (size_t i = 0; i < width; i++)
					block[k][i] = h[j->column[member[q + i]]] * scale +
						(p + k == (size_t)member[q + i] ? (float)j->lambda : 0);
			}
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)height, (int)lanes,
				(int)width, 1, block[0], TILE, c[0], PANEL_ROWS, 1, y[p], PANEL_ROWS);
		}
	}
}

/* sum += x y */
CLONES(static, void, add_product, (size_t lanes, double sum[lanes], const float x[lanes],
	const float y[lanes]), (lanes, sum, x, y))
{
	#pragma omp simd
	for (size_t l = 0; l < lanes; l++)
		sum[l] += (double)x[l] * y[l];
}

/* The element (i, k) of a matrix of lower triangles, k ≤ i, one for each lane. */
static double *element(const struct turns *t, size_t i, size_t k)
{
	return t->matrix[i * (i + 1) / 2 + k];
}

static void make_matrix(const struct job *j, const struct workspace *a, size_t lanes)
{
	const struct turns *t = a->turns;
	float x[PANEL_ROWS];

	memset(t->matrix, 0, j->groups * (j->groups + 1) / 2 * sizeof *t->matrix);
	memset(t->side, 0, j->groups * sizeof *t->side);
	for (size_t g = 0; g < j->groups; g++) {
		multiply(j, a, g, lanes);
		for (size_t p = 0; p < j->live; p++) {
			const float *w = a->w[j->column[p]], *y = a->e[p];

			if ((size_t)j->group[p] <= g)
				add_product(lanes, element(t, g, (size_t)j->group[p]), t->level[p], y);
			for (size_t l = 0; l < lanes; l++)
				x[l] = w[l] / (float)a->scale8[l];
			add_product(lanes, t->side[g], x, y);
		}
		for (size_t l = 0; l < lanes; l++)
			if (element(t, g, g)[l] == 0) {	/* all codes are zero: the scale stays */
				element(t, g, g)[l] = 1;
				t->side[g][l] = a->scale[g][l];
			}
	}
}

/* x -= y z */
CLONES(static, void, subtract, (size_t lanes, double x[lanes], const double y[lanes], const double z[lanes]),
	(lanes, x, y, z))
{
	#pragma omp simd
	for (size_t l = 0; l < lanes; l++)
		x[l] -= y[l] * z[l];
}

CLONES(static, void, divide, (size_t lanes, double x[lanes], const double pivot[lanes]), (lanes, x, pivot))
{
	#pragma omp simd
	for (size_t l = 0; l < lanes; l++)
		x[l] /= pivot[l];
}

/* Solves the systems of all lanes by Cholesky's factor: side becomes s, or NaN if a pivot is not positive. */
static void solve_lanes(const struct turns *t, size_t n, size_t lanes)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k <= i; k++) {
			for (size_t q = 0; q < k; q++)
				subtract(lanes, element(t, i, k), element(t, i, q), element(t, k, q));
			if (k < i)
				divide(lanes, element(t, i, k), element(t, k, k));
		}
		for (size_t l = 0; l < lanes; l++)
			element(t, i, i)[l] = sqrt(element(t, i, i)[l]);
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			subtract(lanes, t->side[i], element(t, i, k), t->side[k]);
		divide(lanes, t->side[i], element(t, i, i));
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t k = i + 1; k < n; k++)
			subtract(lanes, t->side[i], element(t, k, i), t->side[k]);
		divide(lanes, t->side[i], element(t, i, i));
	}
}

void turns_rescale(const struct rows *r, const struct workspace *a, size_t lanes)
{
	const struct job *j = r->job;
	const struct turns *t = a->turns;

	take_levels(j, a, lanes);
	make_matrix(j, a, lanes);
	solve_lanes(t, j->groups, lanes);
	for (size_t l = 0; l < lanes; l++) {
		bool good = true;

		for (size_t g = 0; g < j->groups; g++)
			good &= isfinite(t->side[g][l]) != 0;
		for (size_t g = 0; g < j->groups && good; g++)
			if (t->side[g][l] > 0) {
				const float s = format_scale(&r->storage, t->side[g][l]);

				a->scale[g][l] = s > 0 && isfinite(s) ? s : a->scale[g][l];
			}
	}
}

void turns_begin(const struct workspace *a)
{
	for (size_t l = 0; l < PANEL_ROWS; l++)
		a->turns->best[l] = INFINITY;
}

void turns_keep(const struct job *j, const struct workspace *a, size_t rows, bool better[rows])
{
	struct turns *t = a->turns;
	double squares[PANEL_ROWS] = { 0 };

	for (size_t p = 0; p < j->live; p++)
		for (size_t l = 0; l < rows; l++)
			squares[l] += (double)a->e[p][l] * a->e[p][l];
	for (size_t l = 0; l < rows; l++) {
		better[l] = a->cost[l] < t->best[l] || isinf(t->best[l]);
		if (!better[l])
			continue;
		t->best[l] = a->cost[l];
		t->squares[l] = squares[l];
		for (size_t c = 0; c < j->n; c++)
			t->kept[c][l] = a->w[c][l];
	}
}

double turns_take(const struct job *j, const struct workspace *a, size_t rows, double *damped)
{
	double squares = 0;

	*damped = 0;
	for (size_t l = 0; l < rows; l++) {
		*damped += a->turns->best[l] * a->scale8[l] * a->scale8[l];
		squares += a->turns->squares[l] * a->scale8[l] * a->scale8[l];
	}
	for (size_t c = 0; c < j->n; c++)
		memcpy(a->w[c], a->turns->kept[c], rows * sizeof **a->w);
	return squares;
}
