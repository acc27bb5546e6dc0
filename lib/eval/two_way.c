/* SPDX-License-Identifier: GPL-3.0-or-later */
/* two_way.c -- see two_way.h */
#include "eval/two_way.h"
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include "base/error.h"

/* The mean squares A, B and R of z. column: [b] memory. */
struct squares { double rows, columns, rest; };

static struct squares squares_of(size_t a, size_t b, const double z[a * b], double column[b])
{
	struct squares s = { 0, 0, 0 };
	double *row = xalloc(a, sizeof *row);

	for (size_t j = 0; j < b; j++)
		column[j] = 0;
	for (size_t i = 0; i < a; i++) {
		row[i] = 0;
		for (size_t j = 0; j < b; j++) {
			row[i] += z[i * b + j] / (double)b;
			column[j] += z[i * b + j] / (double)a;
		}
		s.rows += row[i] * row[i] * (double)b / (double)(a - 1);
	}
	for (size_t j = 0; j < b; j++)
		s.columns += column[j] * column[j] * (double)a / (double)(b - 1);
	for (size_t i = 0; i < a; i++)
		for (size_t j = 0; j < b; j++) {
			const double e = z[i * b + j] - row[i] - column[j];

			s.rest += e * e / (double)(a - 1) / (double)(b - 1);
		}
	free(row);
	return s;
}

/* rounding: a bound of the rounding error of an se. What is not above it is 0. */
static void judge(struct two_way *t, size_t draws, size_t windows, const struct squares *s, double rounding,
	double confidence)
{
	const double a = (double)draws, b = (double)windows, sum = s->rows + s->columns - s->rest;
	const double larger = fmax(s->rows, s->columns);
	/* with few differences R = A or R = B may hold; rounding, of a b ε, decides nothing */
	const bool both = sum >= (1 - 1e-9) * larger;
	const double parts = s->rows * s->rows / (a - 1) + s->columns * s->columns / (b - 1) +
		s->rest * s->rest / ((a - 1) * (b - 1));

	t->se_draws = sqrt(s->rows / (a * b));
	t->se_draws *= t->se_draws > rounding;
	t->se_windows = sqrt(s->columns / (a * b));
	t->se_windows *= t->se_windows > rounding;
	t->se = sqrt(fmax(sum, larger) / (a * b));
	t->se *= t->se > rounding;
	if (t->se_draws == 0 && t->se_windows == 0)
		return;
	if (both)
		t->df = fmax(sum * sum / parts, 1);
	else
		t->df = s->rows > s->columns ? a - 1 : b - 1;
	t->quantile = gsl_cdf_tdist_Pinv((1 + confidence) / 2, t->df);
	t->separated = fabs(t->mean) > t->quantile * t->se;
}

struct two_way two_way_of(size_t draws, size_t windows, const double d[draws * windows],
	const double weight[windows], double confidence)
{
	struct two_way t = { .se = NAN, .se_draws = NAN, .se_windows = NAN, .df = NAN, .quantile = NAN };
	const size_t n = draws * windows;
	double *z = xalloc(n, sizeof *z), *column = xalloc(windows, sizeof *column), sum = 0;
	double largest = 0;

	for (size_t j = 0; j < windows; j++)
		sum += weight[j];
	for (size_t k = 0; k < n; k++)
		t.mean += weight[k % windows] * d[k], largest = fmax(largest, fabs(d[k]));
	t.mean /= sum * (double)draws;
	for (size_t k = 0; k < n; k++)
		z[k] = weight[k % windows] / sum * (double)windows * (d[k] - t.mean);
	if (windows > 1 && draws > 1) {
		const struct squares s = squares_of(draws, windows, z, column);

		judge(&t, draws, windows, &s, (double)n * DBL_EPSILON * largest, confidence);
	} else if (n > 1) {
		sum = 0;
		for (size_t k = 0; k < n; k++)
			sum += z[k] * z[k];
		t.se = sqrt(sum / (double)(n - 1) / (double)n);
		*(windows > 1 ? &t.se_windows : &t.se_draws) = t.se;
	}
	free(z), free(column);
	return t;
}
