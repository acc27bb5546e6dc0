/* SPDX-License-Identifier: GPL-3.0-or-later */
/* refine.c -- see refine.h */
#include "solver/refine.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "num/clones.h"

enum { LANES = SEARCH_LANES, CHUNK = 256 };

/* Sums over a group: loss is its cost; the others are products in the quadratic form of weights x, their
 * quantized values q, and a vector of ones. */
struct sums {
	double loss[LANES], qq[LANES], xq[LANES], q1[LANES], x1[LANES], ones;
};

struct work {
	float (*e)[LANES];		/* [n] x - q */
	float (*image)[LANES];		/* [n] x R, or x H */
	float *row;			/* [n] a column of R, or a row of H */
};

size_t refine_workspace(size_t n)
{
	return (2 * LANES + 1) * n;
}

/* sum += Σ_i u_i e_i */
CLONES(static, void, add_products, (size_t n, double sum[LANES], const float e[n][LANES], const float u[n]),
	(n, sum, e, u))
{
	typedef float wide __attribute__((vector_size(64), aligned(4), may_alias));

	for (size_t first = 0; first < n; first += CHUNK) {
		wide part[4] = { 0 };
		float y[LANES];

		for (size_t i = first; i < min(n, first + CHUNK); i++) {
			const wide *v = (const wide *)e[i];

			for (size_t k = 0; k < 4; k++)
				part[k] += v[k] * u[i];
		}
		memcpy(y, part, sizeof y);
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			sum[l] += y[l];
	}
}

/* Sets `row` to the numbers of the form that act on column j of the group; with R, of columns up to j only.
 * Returns their sum. */
static double act(const struct refine *r, size_t n, float *row, size_t j)
{
	const size_t count = r->sweep ? j + 1 : n;
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		const size_t a = (size_t)r->member[i], b = (size_t)r->member[j];

		row[i] = r->column ? r->form[(size_t)r->column[b] * r->stride + (size_t)r->column[a]] :
			r->form[a * r->stride + b];
		sum += row[i];
	}
	return sum;
}

static void take_image(const struct refine *r, size_t n, const struct work *k, const float x[n][LANES])
{
	for (size_t j = 0; j < n; j++) {
		double sum[LANES] = { 0 };

		act(r, n, k->row, j);
		add_products(r->sweep ? j + 1 : n, sum, x, k->row);
		for (size_t l = 0; l < LANES; l++)
			k->image[j][l] = (float)sum[l];
	}
}

/* Codes of one column after the other, with the compensation of GPTQ, and their sums. */
static void take_sweep(const struct refine *r, size_t n, const struct work *k, struct sums *y,
	const float x[n][LANES], const float scale[LANES], const uint8_t zero[LANES])
{
	for (size_t j = 0; j < n; j++) {
		const double one = act(r, n, k->row, j), pivot = k->row[j];
		double left[LANES] = { 0 };
		uint8_t code[LANES];
		float q[LANES];

		add_products(j, left, (const float (*)[LANES])k->e, k->row);
		for (size_t l = 0; l < LANES; l++)
			left[l] = x[j][l] + left[l] / pivot;
		coding_round(&r->coding, code, q, left, scale, zero);
		y->ones += one * one;
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const double b = (left[l] - q[l]) * pivot, image = k->image[j][l], of_q = image - b;

			k->e[j][l] = x[j][l] - q[l];
			y->loss[l] += b * b;
			y->qq[l] += of_q * of_q;
			y->xq[l] += of_q * image;
			y->q1[l] += of_q * one;
			y->x1[l] += image * one;
		}
	}
}

/* The nearest codes, and their sums. */
static void take_nearest(const struct refine *r, size_t n, const struct work *k, struct sums *y,
	const float x[n][LANES], const float scale[LANES], const uint8_t zero[LANES])
{
	for (size_t j = 0; j < n; j++) {
		double wide[LANES];
		uint8_t code[LANES];
		float q[LANES];

		for (size_t l = 0; l < LANES; l++)
			wide[l] = x[j][l];
		coding_round(&r->coding, code, q, wide, scale, zero);
		for (size_t l = 0; l < LANES; l++)
			k->e[j][l] = x[j][l] - q[l];
	}
	for (size_t j = 0; j < n; j++) {
		const double one = act(r, n, k->row, j);
		double of_e[LANES] = { 0 };

		add_products(n, of_e, (const float (*)[LANES])k->e, k->row);
		y->ones += one;
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const double q = (double)x[j][l] - k->e[j][l], of_q = k->image[j][l] - of_e[l];

			y->loss[l] += k->e[j][l] * of_e[l];
			y->qq[l] += of_q * q;
			y->xq[l] += of_q * x[j][l];
			y->q1[l] += one * q;
			y->x1[l] += one * x[j][l];
		}
	}
}

/* The pair of smallest cost |x - (q·by - shift)|² for the codes of a lane. shift is first rounded to whole
 * steps. */
static void improve(const struct format *f, const struct sums *y, size_t l, float *scale, uint8_t *zero)
{
	const double s = *scale, det = y->qq[l] * y->ones - y->q1[l] * y->q1[l];
	double steps = 0, by, next;

	if (f->asymmetric && det > 1e-6 * y->qq[l] * y->ones) {
		const double shift = (y->q1[l] * y->xq[l] - y->qq[l] * y->x1[l]) / det;

		by = (y->xq[l] * y->ones - y->q1[l] * y->x1[l]) / det;
		steps = by > 0 ? nearbyint(shift / (by * s)) : 0;
		steps = fmin(fmax(*zero + steps, 0), f->max) - *zero;
	}
	by = (y->xq[l] - steps * s * y->x1[l]) /
		(y->qq[l] - 2 * steps * s * y->q1[l] + steps * s * steps * s * y->ones);
	next = by * s;
	if (!(next > FLT_MIN && next < FLT_MAX))
		return;
	*scale = format_scale(f, next);
	if (f->asymmetric)
		*zero = (uint8_t)(*zero + steps);
}

void refine_fit(const struct refine *r, size_t n, float scale[LANES], uint8_t zero[LANES],
	const float x[n][LANES], const double low[LANES], const double high[LANES], float *workspace)
{
	const struct format *f = r->coding.storage;
	const struct work k = { (float (*)[LANES])workspace, (float (*)[LANES])(workspace + n * LANES),
		workspace + 2 * n * LANES };
	float trial[LANES];
	uint8_t offset[LANES] = { 0 };
	double best[LANES] = { 0 };

	take_image(r, n, &k, x);
	memcpy(trial, scale, sizeof trial);
	if (f->asymmetric)
		memcpy(offset, zero, sizeof offset);
	for (size_t i = 0; i <= REFINE_ROUNDS; i++) {
		struct sums y = { .ones = 0 };

		(r->sweep ? take_sweep : take_nearest)(r, n, &k, &y, x, trial, offset);
		for (size_t l = 0; l < LANES; l++) {
			if (!i || y.loss[l] < best[l]) {
				best[l] = y.loss[l];
				scale[l] = trial[l];
				if (f->asymmetric)
					zero[l] = offset[l];
			}
			if (!scale_kinds[f->scales].power)
				improve(f, &y, l, &trial[l], &offset[l]);
			else if (i < search_steps(f))
				search_pair(f, i, &trial[l], &offset[l], low[l], high[l]);
		}
	}
}
