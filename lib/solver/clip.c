/* SPDX-License-Identifier: GPL-3.0-or-later */
/* clip.c -- see clip.h */
#include "solver/clip.h"
#include <cblas.h>
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "num/clones.h"

enum { ROWS = CLIP_ROWS };

static const double first_decay = 0.9, second_decay = 0.999, tiny = 1e-8, start = 4;

/* Largest value end[0] and smallest value end[1] of a format. */
static void ends_of(const struct format *f, double end[2])
{
	end[0] = f->grid[0], end[1] = f->grid[0];
	for (int c = 0; c < 1 << f->bits; c++) {
		end[0] = fmax(end[0], f->grid[c]);
		end[1] = fmin(end[1], f->grid[c]);
	}
}

/* x = w/unit */
CLONES(static, void, divide, (size_t rows, float x[ROWS], const float w[ROWS], const double unit[ROWS]),
	(rows, x, w, unit))
{
	#pragma omp simd
	for (size_t l = 0; l < rows; l++)
		x[l] = (float)(w[l] / unit[l]);
}

static void take_ends(const struct clip *c, struct clip_group group[])
{
	float x[ROWS];

	for (struct clip_group *g = group; g < group + c->groups; g++) {
		memset(g, 0, sizeof *g);
		for (size_t l = 0; l < ROWS; l++)
			g->u[0][l] = g->u[1][l] = (float)start, g->factor[0][l] = g->factor[1][l] = 1;
	}
	for (size_t p = 0; p < c->live; p++) {
		struct clip_group *g = group + c->group[p];

		divide(c->rows, x, c->w[c->column[p]], c->unit);
		for (size_t l = 0; l < c->rows; l++) {
			const float low = c->storage->asymmetric ? x[l] : 0;
			const float high = c->storage->asymmetric ? x[l] : fabsf(x[l]);

			g->end[0][l] = fmaxf(g->end[0][l], high);
			g->end[1][l] = fminf(g->end[1][l], low);
		}
	}
}

static float factor(double u)
{
	return (float)(1 / (1 + exp(-u)));
}

/* Scale and zero of the shrunk range of each group. */
static void fit(const struct clip *c, struct clip_group group[])
{
	for (struct clip_group *g = group; g < group + c->groups; g++) {
		double low[ROWS], high[ROWS];

		for (size_t l = 0; l < c->rows; l++) {
			high[l] = factor(g->u[0][l]) * (double)g->end[0][l];
			low[l] = factor(g->u[1][l]) * (double)g->end[1][l];
			g->low[l] = (float)low[l];
		}
		format_fit_all(c->storage, c->rows, g->scale, g->zero, low, high);
		memset(g->slope, 0, sizeof g->slope);
	}
}

/* e = x - x̂ */
static void take_errors(const struct clip *c, const struct clip_group group[], float (*e)[ROWS])
{
	for (size_t p = c->live; p < c->n; p++)
		memset(e[c->column[p]], 0, sizeof *e);
	for (size_t p = 0; p < c->live; p++) {
		const struct clip_group *g = group + c->group[p];
		const size_t i = (size_t)c->column[p];
		float x[ROWS], y[ROWS];

		divide(c->rows, x, c->w[i], c->unit);
		format_nearest(c->storage, 1, c->rows, (float (*)[c->rows])y, (const float (*)[c->rows])x,
			g->scale, g->zero);
		for (size_t l = 0; l < c->rows; l++)
			e[i][l] = x[l] - y[l];
	}
}

/*
 * Adds the part of a column to the loss and its derivatives; y = H e in this column. With M the largest
 * value, the derivatives of x̂ by high and by low are r/M and -r/M within the range, (M - ρ)/M and ρ/M above
 * it, -ρ/M and 1 + ρ/M below it. Without a zero point the derivative by high is r/M within the range, v/M
 * outside.
 */
CLONES(static, void, add_slopes, (const struct format *f, const double end[2], size_t rows,
	struct clip_group *g, double loss[ROWS], const float e[ROWS], const float y[ROWS], const float
		w[ROWS],
	const double unit[ROWS]), (f, end, rows, g, loss, e, y, w, unit))
{
	const double max = f->max;
	const bool two = f->asymmetric;

	#pragma omp simd
	for (size_t l = 0; l < rows; l++) {
		const double s = g->scale[l], x = (float)(w[l] / unit[l]), t = x / s, v = (x - e[l]) / s;
		const double z = two ? g->zero[l] : 0, rho = z + g->low[l] / s, by = -2 / max * y[l];
		const bool above = t > end[0] - z, within = !above && !(t < end[1] - z);

		loss[l] += (double)e[l] * y[l];
		g->slope[0][l] += by * (within ? v - t : !two ? v : above ? max - rho : -rho);
		g->slope[1][l] += by * (within ? t - v : !two ? 0 : above ? rho : max + rho);
	}
}

/* The loss of each row, and the derivatives for all groups. */
static void take_slopes(const struct clip *c, struct clip_group group[], double loss[ROWS],
	const float (*e)[ROWS], float (*product)[ROWS])
{
	const int n = (int)c->n;
	double end[2];

	ends_of(c->storage, end);
	memset(loss, 0, ROWS * sizeof *loss);
	for (size_t b = 0; b < c->n; b += CLIP_TILE) {
		const size_t tile = min(CLIP_TILE, c->n - b);

		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)tile, (int)c->rows, n, 1,
			c->h + b * c->n, n, e[0], ROWS, 0, product[0], ROWS);
		for (size_t p = 0; p < c->live; p++) {
			const size_t i = (size_t)c->column[p];

			if (i >= b && i < b + tile)
				add_slopes(c->storage, end, c->rows, group + c->group[p], loss, e[i],
					product[i - b], c->w[i], c->unit);
		}
	}
}

/* Keeps the factors of rows whose loss is the smallest so far. */
static void keep(const struct clip *c, struct clip_group group[], double best[ROWS], const double loss[ROWS])
{
	for (size_t l = 0; l < c->rows; l++) {
		if (!(loss[l] < best[l]))
			continue;
		best[l] = loss[l];
		for (struct clip_group *g = group; g < group + c->groups; g++) {
			g->factor[0][l] = factor(g->u[0][l]);
			g->factor[1][l] = factor(g->u[c->storage->asymmetric][l]);
		}
	}
}

/* Step t of Adam, counted from 1, on loss/first of each row. */
static void descend(const struct clip *c, struct clip_group *g, size_t t, const double first[ROWS])
{
	const double one = 1 - pow(first_decay, (double)t), two = 1 - pow(second_decay, (double)t);

	for (size_t k = 0; k < (c->storage->asymmetric ? 2 : 1); k++)
		for (size_t l = 0; l < c->rows; l++) {
			const double y = factor(g->u[k][l]), d = first[l] > 0 && isfinite(g->slope[k][l]) ?
				g->slope[k][l] / first[l] * (double)g->end[k][l] * y * (1 - y) : 0;

			g->first[k][l] = (float)(first_decay * (double)g->first[k][l] + (1 - first_decay) *
				d);
			g->second[k][l] = (float)(second_decay * (double)g->second[k][l] +
				(1 - second_decay) * d * d);
			g->u[k][l] = (float)((double)g->u[k][l] - c->rate * ((double)g->first[k][l] / one) /
				(sqrt((double)g->second[k][l] / two) + tiny));
		}
}

void clip_learn(const struct clip *c, struct clip_group group[], float (*e)[ROWS], float (*product)[ROWS])
{
	double first[ROWS], best[ROWS], loss[ROWS];

	take_ends(c, group);
	for (size_t l = 0; l < c->rows; l++)
		best[l] = INFINITY;
	for (size_t t = 0; t <= c->steps; t++) {
		fit(c, group);
		take_errors(c, group, e);
		take_slopes(c, group, loss, (const float (*)[ROWS])e, product);
		if (!t)
			memcpy(first, loss, sizeof first);
		keep(c, group, best, loss);
		for (size_t g = 0; g < c->groups && t < c->steps; g++)
			descend(c, &group[g], t + 1, first);
	}
}
