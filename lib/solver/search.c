/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * search.c -- see search.h
 *
 * All factors are tried in float. With d = m·2^e, |d|^2.4 = d²·m^0.4·2^(0.4 e) is approximated by
 * polynomials with a relative error of 6e-7; sums of ROWS have an error of 1e-6. A factor whose loss exceeds
 * the best one in every lane is abandoned. Factors with a loss near the best are then compared in double; of
 * factors with the same scale only the first. So the choice is that of the definition, not of the
 * approximation, on any kernels.
 */
#include "solver/search.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "num/clones.h"
#pragma GCC optimize ("fp-contract=fast")	/* it affects approximations only; see above */

enum { LANES = SEARCH_LANES, STEPS = SEARCH_STEPS, ROWS = 16 };

const char *const searches[] = {
	[SEARCH_MINMAX] = "minmax", [SEARCH_MSE] = "mse", [SEARCH_HESSIAN] = "hessian",
	[SEARCH_LEARNED] = "learned", NULL
};

bool search_reads_hessian(enum search how)
{
	return how == SEARCH_HESSIAN || how == SEARCH_LEARNED;
}

/* The errors above, and that of |d| by the rounding of x̂, at most 2ᵇⁱᵗˢ cells of 6e-8. */
double search_near(const struct format *f)
{
	return 1e-5 + 1e-6 * (1 << f->bits);
}

static const double powers[] = { 1, 2, 0.5, 0.25 };

size_t search_steps(const struct format *f)
{
	return scale_kinds[f->scales].power ? sizeof powers / sizeof *powers : STEPS;
}

double search_factor(const struct format *f, size_t i)
{
	return scale_kinds[f->scales].power ? powers[i] : 1 - i / 100.0;
}

void search_pair(const struct format *f, size_t i, float *scale, uint8_t *zero, double min, double max)
{
	float whole;
	uint8_t shrunk;

	format_fit(f, scale, &shrunk, min * search_factor(f, i), max * search_factor(f, i));
	format_fit(f, &whole, zero, min, max);
}

/* d^2.4 for d ≥ 0, with a relative error of 6e-7. Below 1e-18 the result is too small; it is 0 for 0. */
static inline float power(float d)
{
	float a = d > 1e-18f ? d : 1e-18f, m, e, i, f, p, q, two;
	uint32_t u;

	memcpy(&u, &a, sizeof u);
	e = 0.4f * ((int32_t)(u >> 23) - 127);
	u = (u & 0x7fffff) | 0x3f800000;
	memcpy(&m, &u, sizeof m);
	m -= 1.5f;
	/* m^0.4 on [1, 2), a Chebyshev polynomial with an error of 2.5e-7 */
	p = -0.00270909113f;
	p = p * m + 0.00525095316f;
	p = p * m - 0.00962058146f;
	p = p * m + 0.0222231211f;
	p = p * m - 0.0627255908f;
	p = p * m + 0.31362356f;
	p = p * m + 1.17607902f;
	/* 2^f, interpolated at the five possible values of f */
	i = e + 0x1.8p23f - 0x1.8p23f;
	f = e - i;
	q = 0.00964898061f;
	q = q * f + 0.0557712929f;
	q = q * f + 0.240225519f;
	q = q * f + 0.693138628f;
	q = q * f + 1;
	u = (uint32_t)((int32_t)i + 127) << 23;
	memcpy(&two, &u, sizeof two);
	return d * d * (p * q) * two;
}

CLONES(static, void, add_powers, (size_t n, float sum[LANES], const float y[n][LANES],
	const float x[n][LANES], const float unit[LANES]), (n, sum, y, x, unit))
{
	for (size_t k = 0; k < n; k++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			sum[l] += power(fabsf(y[k][l] - x[k][l]) * unit[l]);
}

static bool all_beyond(const double loss[LANES], const double limit[LANES])
{
	bool yes = true;

	for (size_t l = 0; l < LANES; l++)
		yes &= loss[l] > limit[l];
	return yes;
}

void search_loss(const struct format *f, size_t n, double loss[LANES], const float x[n][LANES],
	const float scale[LANES], const uint8_t zero[LANES], const float unit[LANES], const double *limit)
{
	float y[ROWS][LANES], sum[LANES];
	bool subnormal = false;

	for (size_t l = 0; l < LANES; l++)
		subnormal |= scale[l] < FLT_MIN;
	memset(loss, 0, LANES * sizeof *loss);
	for (size_t k = 0; k < n && !(limit && all_beyond(loss, limit)); k += ROWS) {
		size_t c = n - k < ROWS ? n - k : ROWS;

		memset(sum, 0, sizeof sum);
		format_nearest(f, c, LANES, y, x + k, scale, zero);
		if (subnormal)
			format_nearest_subnormal(f, c, LANES, y, x + k, scale, zero);
		add_powers(c, sum, (const float (*)[LANES])y, x + k, unit);
		for (size_t l = 0; l < LANES; l++)
			loss[l] += sum[l];
	}
}

static double exact_loss(const struct format *f, size_t n, size_t lane, const float x[n][LANES], float scale,
	uint8_t zero)
{
	double loss = 0;

	for (size_t k = 0; k < n; k++) {
		uint8_t code, z = f->asymmetric ? zero : 0;

		format_encode(f, 1, &code, &x[k][lane], &scale, &zero);
		loss += pow(fabs((f->grid[code] - z) * (double)scale - x[k][lane]), 2.4);
	}
	return loss;
}

/* Scales of all lanes for their ranges times the i-th factor. */
static void shrink(const struct format *f, size_t i, float scale[LANES], const double low[LANES],
	const double high[LANES])
{
	double min[LANES], max[LANES];
	uint8_t zero[LANES];

	for (size_t l = 0; l < LANES; l++) {
		min[l] = low[l] * search_factor(f, i);
		max[l] = high[l] * search_factor(f, i);
	}
	format_fit_all(f, LANES, scale, zero, min, max);
}

/* The factors of one lane with a loss within the limit. Of factors with the same scale only the first is
 * listed. */
static size_t candidates(const struct format *f, size_t lane, const double loss[STEPS][LANES], double limit,
	double low, double high, size_t list[STEPS])
{
	float scale = 0, last;
	uint8_t zero;
	size_t n = 0;

	for (size_t i = 0; i < search_steps(f); i++) {
		if (!(loss[i][lane] <= limit))
			continue;
		last = scale;
		search_pair(f, i, &scale, &zero, low, high);
		if (!n || scale != last)
			list[n++] = i;
	}
	return n;
}

/* The best factor of one lane. */
static size_t choose_step(const struct format *f, size_t n, size_t lane, const double loss[STEPS][LANES],
	const float x[n][LANES], double low, double high)
{
	double min = INFINITY, exact = INFINITY;
	size_t best = 0, list[STEPS], found;

	for (size_t i = 0; i < search_steps(f); i++)
		if (loss[i][lane] < min) {
			min = loss[i][lane];
			best = i;
		}
	found = candidates(f, lane, loss, min * (1 + search_near(f)), low, high, list);
	if (found < 2 || min == 0)
		return best;
	for (const size_t *i = list; i < list + found; i++) {
		float scale;
		uint8_t zero = 0;
		double e;

		search_pair(f, *i, &scale, &zero, low, high);
		e = exact_loss(f, n, lane, x, scale, zero);
		if (e < exact) {
			exact = e;
			best = *i;
		}
	}
	return best;
}

void search_fit(const struct format *f, enum search how, size_t n, float scale[LANES], uint8_t zero[LANES],
	const float x[n][LANES], const double low[LANES], const double high[LANES])
{
	double loss[STEPS][LANES], limit[LANES];
	float unit[LANES], shrunk[LANES];

	format_fit_all(f, LANES, scale, zero, low, high);
	if (how == SEARCH_MINMAX || how == SEARCH_LEARNED)
		return;
	for (size_t l = 0; l < LANES; l++) {
		unit[l] = fminf(16 / f->max / scale[l], FLT_MAX);
		limit[l] = INFINITY;
	}
	for (size_t i = 0; i < search_steps(f); i++) {
		shrink(f, i, shrunk, low, high);
		search_loss(f, n, loss[i], x, shrunk, zero, unit, limit);
		for (size_t l = 0; l < LANES; l++)
			limit[l] = fmin(limit[l], loss[i][l] * (1 + search_near(f)));
	}
	for (size_t l = 0; l < LANES; l++) {
		size_t i = choose_step(f, n, l, (const double (*)[LANES])loss, x, low[l], high[l]);

		search_pair(f, i, &scale[l], &zero[l], low[l], high[l]);
	}
}
