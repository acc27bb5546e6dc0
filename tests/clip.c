/* SPDX-License-Identifier: GPL-3.0-or-later */
/* clip -- learned clipping against its equations in plain float64: the gradient by differences, the run by
 * loops */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "num/linalg.h"
#include "solver/clip.h"

enum { N = 40, ROWS = 24, GROUP = 16, GROUPS = 3, LIVE = 38 };

static const char *const names[] = { "uint4", "uint2", "int3", "e2m1", "nf4", "nvfp4" };
static float w[N][CLIP_ROWS], h[N][N];
static double unit[CLIP_ROWS];
static int32_t column[N], group[LIVE];
static struct clip_group state[GROUPS];

static double uniform(void)
{
	static uint64_t z = 7;

	z = z * 6364136223846793005u + 1442695040888963407u;
	return (double)(z >> 11) * 0x1p-53 - 0.5;
}

/* Correlated inputs; columns in another order than in storage, without two of them; a row and a group of
 * 0. */
static int make(void **unused)
{
	static double x[200][N];

	(void)unused;
	for (size_t t = 0; t < 200; t++)
		for (size_t i = 0; i < N; i++)
			x[t][i] = uniform() * (1 + i % 5) + (i ? 0.6 * x[t][i - 1] : 0);
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++) {
			double sum = 0;

			for (size_t t = 0; t < 200; t++)
				sum += x[t][i] * x[t][k];
			h[i][k] = (float)sum;
		}
	for (size_t i = 0; i < N; i++)
		for (size_t r = 0; r < ROWS; r++)
			w[i][r] = r == 3 || (r == 5 && i < GROUP) ? 0 :
				(float)(uniform() * uniform() * uniform() * 4 + 0.05);
	for (size_t i = 0; i < N; i++)
		column[i] = (int32_t)((i * 7 + 2) % N);
	for (size_t i = 0; i < LIVE; i++)
		group[i] = column[i] / GROUP;
	for (size_t r = 0; r < ROWS; r++)
		unit[r] = r % 2 ? 0.25 : 1;
	return 0;
}

static void learn(const struct format *f, size_t steps, double rate)
{
	static float e[N][CLIP_ROWS], product[CLIP_TILE][CLIP_ROWS];
	const struct clip c = { .storage = f, .n = N, .live = LIVE, .groups = GROUPS, .column = column,
		.group = group, .h = h[0], .rows = ROWS, .w = (const float (*)[CLIP_ROWS])w, .unit = unit,
		.steps = steps, .rate = rate };

	memset(state, 0xff, sizeof state);
	clip_learn(&c, state, e, product);
}

static struct format format_of(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	format_tensor(&f, -3, 3);
	return f;
}

/* Scale, zero point and rounding of one group of one row, with its shrunk range. */
struct point { double s, z, high, low; };

static struct point point_of(const struct format *f, double high, double low)
{
	float s;
	uint8_t z = 0;

	format_fit(f, &s, &z, low, high);
	return (struct point){ (double)s, f->asymmetric ? z : 0, high, low };
}

/* The nearest value of the format, from the list of values. */
static double value(const struct format *f, double x, struct point p)
{
	double best = INFINITY, y = 0;

	for (int c = 0; c <= f->code_last; c++) {
		const double v = ((double)f->grid[c] - p.z) * p.s;

		if (fabs(v - x) < best)
			best = fabs(v - x), y = v;
	}
	return y;
}

/* The surrogate: the effects of rounding and clipping at the point `at` are constants, the ends of the range
 * are those of p. */
static double surrogate(const struct format *f, double x, struct point at, struct point p)
{
	double bottom = INFINITY, max = -INFINITY, s, z;

	for (int c = 0; c <= f->code_last; c++)
		bottom = fmin(bottom, (double)f->grid[c]), max = fmax(max, (double)f->grid[c]);
	s = at.s + (f->asymmetric ? (p.high - p.low) - (at.high - at.low) : p.high - at.high) /
		(double)f->max;
	z = f->asymmetric ? at.z + at.low / at.s - p.low / s : 0;
	if (x / at.s > max - at.z)
		return (max - z) * s;
	if (x / at.s < bottom - at.z)
		return (bottom - z) * s;
	return (x / s + value(f, x, at) / at.s - x / at.s) * s;
}

/* e H eᵀ of a row. p: the parameters of each group. at: NULL, or the point of the surrogate. */
static double loss_of(const struct format *f, size_t row, const struct point p[GROUPS], const struct point
	*at)
{
	double e[N] = { 0 }, sum = 0;

	for (size_t i = 0; i < LIVE; i++) {
		const double x = (double)(float)((double)w[column[i]][row] / unit[row]);
		const int32_t g = group[i];

		e[column[i]] = x - (at ? surrogate(f, x, at[g], p[g]) : value(f, x, p[g]));
	}
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++)
			sum += e[i] * (double)h[i][k] * e[k];
	return sum;
}

static void ends_of(const struct format *f, size_t row, double end[GROUPS][2])
{
	memset(end, 0, GROUPS * sizeof *end);
	for (size_t i = 0; i < LIVE; i++) {
		const double x = (double)(float)((double)w[column[i]][row] / unit[row]);
		double *y = end[group[i]];

		y[0] = fmax(y[0], f->asymmetric ? x : fabs(x));
		y[1] = fmin(y[1], f->asymmetric ? x : 0);
	}
}

static double sigmoid(double u)
{
	return 1 / (1 + exp(-u));
}

/* The parameters of a row from its u. */
static void points_of(const struct format *f, size_t row, const double u[GROUPS][2], struct point p[GROUPS])
{
	double end[GROUPS][2];

	ends_of(f, row, end);
	for (size_t g = 0; g < GROUPS; g++)
		p[g] = point_of(f, (double)(float)sigmoid(u[g][0]) * end[g][0],
			(double)(float)sigmoid(u[g][1]) * end[g][1]);
}

/* ∂ loss / ∂ one end of a group, by differences of the surrogate. */
static double slope_of(const struct format *f, size_t row, const struct point at[GROUPS], size_t g, size_t k)
{
	struct point p[2][GROUPS];
	const double step = 1e-5 * at[g].s;

	for (size_t i = 0; i < 2; i++) {
		memcpy(p[i], at, sizeof p[i]);
		*(k ? &p[i][g].low : &p[i][g].high) += i ? step : -step;
	}
	return (loss_of(f, row, p[1], at) - loss_of(f, row, p[0], at)) / (2 * step);
}

/* Float products of e H cancel in a sum over a group's columns: an error relative to the largest slope. */
static void gradient(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t steps = 0; steps <= 20; steps += 10) {
			CASE("%s, steps %zu", names[i], steps);
			const struct format f = format_of(names[i]);
			double max = 0, off = 0;

			learn(&f, steps, 0.3);
			for (size_t row = 0; row < ROWS; row++) {
				struct point at[GROUPS];
				double u[GROUPS][2];

				for (size_t g = 0; g < GROUPS; g++)
					for (size_t k = 0; k < 2; k++)
						u[g][k] = (double)state[g].u[k][row];
				points_of(&f, row, u, at);
				for (size_t g = 0; g < GROUPS; g++) {
					assert_true((double)state[g].scale[row] == at[g].s);
					for (size_t k = 0; k < (f.asymmetric ? 2 : 1); k++) {
						const double want = slope_of(&f, row, at, g, k);

						max = fmax(max, fabs(want));
						off = fmax(off, fabs(want - state[g].slope[k][row]));
					}
				}
			}
			fprintf(stderr, "# %s after %zu steps: slopes off by %.1e of the largest\n",
				names[i], steps,
				off / max);
			assert_true(off < 1e-5 * max);
		}
}

/* Adam in double on the slopes by differences: the u of a row after each step; returns the smallest loss. */
static double descend(const struct format *f, size_t row, size_t steps, double rate, double kept[GROUPS][2],
	double *start)
{
	double u[GROUPS][2], first[GROUPS][2] = { 0 }, second[GROUPS][2] = { 0 }, end[GROUPS][2], min =
		INFINITY;

	ends_of(f, row, end);
	for (size_t g = 0; g < GROUPS; g++)
		u[g][0] = u[g][1] = 4;
	for (size_t t = 0; t <= steps; t++) {
		struct point at[GROUPS];
		double loss, d[GROUPS][2];

		points_of(f, row, (const double (*)[2])u, at);
		loss = loss_of(f, row, at, NULL);
		*start = t ? *start : loss;
		if (loss < min) {
			min = loss;
			for (size_t g = 0; g < GROUPS; g++)
				for (size_t k = 0; k < 2; k++)
					kept[g][k] = sigmoid(u[g][f->asymmetric ? k : 0]);
		}
		for (size_t g = 0; g < GROUPS; g++)
			for (size_t k = 0; k < 2; k++)
				d[g][k] = !(*start > 0) || !(end[g][0] - end[g][1] > 0) ? 0 :
					slope_of(f, row, at, g, k) / *start * end[g][k] * sigmoid(u[g][k]) *
					(1 - sigmoid(u[g][k]));
		for (size_t g = 0; g < GROUPS; g++)
			for (size_t k = 0; k < 2; k++) {
				first[g][k] = 0.9 * first[g][k] + 0.1 * d[g][k];
				second[g][k] = 0.999 * second[g][k] + 0.001 * d[g][k] * d[g][k];
				u[g][k] -= rate * first[g][k] / (1 - pow(0.9, (double)(t + 1))) /
					(sqrt(second[g][k] / (1 - pow(0.999, (double)(t + 1)))) + 1e-8);
			}
	}
	return min;
}

/* A weight within rounding of a tie may send a row another way: one of 24 rows. */
static void few_steps(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		CASE("%s", names[i]);
		const struct format f = format_of(names[i]);
		size_t astray = 0, better = 0;

		learn(&f, 8, 0.3);
		for (size_t row = 0; row < ROWS; row++) {
			double kept[GROUPS][2], start, min = descend(&f, row, 8, 0.3, kept, &start), off
				= 0;
			double end[GROUPS][2];
			struct point p[GROUPS];

			ends_of(&f, row, end);
			for (size_t g = 0; g < GROUPS; g++) {
				for (size_t k = 0; k < 2 && end[g][k] != 0; k++)
					off = fmax(off, fabs(kept[g][k] - (double)state[g].factor[k][row]));
				p[g] = point_of(&f, (double)state[g].factor[0][row] * end[g][0],
					(double)state[g].factor[1][row] * end[g][1]);
			}
			astray += off > 1e-4;
			assert_true(fabs(loss_of(&f, row, p, NULL) - min) <= 1e-5 * start || off > 1e-4);
			assert_true(loss_of(&f, row, p, NULL) <= start * (1 + 1e-5));
			better += min < 0.999 * start;
		}
		fprintf(stderr, "# %s: %zu rows go another way, %zu of %d gain\n", names[i], astray,
			better, ROWS);
		assert_true(astray <= 1);
		assert_true(better > ROWS / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(gradient), cmocka_unit_test(few_steps) };

	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make, NULL);
}
