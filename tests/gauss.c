/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gauss -- exact errors of formats on Gaussian weights against known values, plain quadrature, and samples */
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
#include "num/gauss.h"

static struct format get(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	return f;
}

static double error_of(const char *name, double sigma)
{
	const struct format f = get(name);
	const struct gauss g = gauss_of(&f);

	return gauss_error(&g, sigma);
}

/* Known values, with five digits. */
static void known_values(void **unused)
{
	static const struct { const char *name; double error; } rows[] = {
		{ "int5", 3.7037e-4 }, { "e1m3", 3.7037e-4 }, { "e2m2", 2.1289e-4 }, { "e3m1", 6.6613e-4 },
		{ "e4m0", 2.3606e-3 }, { "nf5", 1.6935e-4 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CASE("rows[%zu] %s", i, rows[i].name);
		assert_true(fabs(error_of(rows[i].name, 0.25) / rows[i].error - 1) < 3e-5);
	}
}

/* The midpoint rule on N slices. The error of each slice is at most its width squared times the curvature. */
static void quadrature(void **unused)
{
	static const char *const names[] = { "int4", "uint4", "e2m1", "mxfp4", "e2m2", "e3m2", "e4m0", "nf3",
		"nf5", "e4m3fn" };
	enum { N = 200000 };

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (double sigma = 0.03; sigma < 3; sigma *= 2.3) {
			CASE("%s, sigma %g", names[k], sigma);
			const struct format f = get(names[k]);
			double sum = 0, mass = 0;
			float scale;
			uint8_t zero = 0;

			format_fit(&f, &scale, &zero, -1, 1);
			for (int i = 0; i < N; i++) {
				double x = (2 * i + 1.0) / N - 1, p = exp(-x * x / (2 * sigma * sigma));
				uint8_t code;
				float y;

				format_quantize(&f, 1, &code, &y, &x, &scale, &zero);
				sum += p * (x - y) * (x - y);
				mass += p;
			}
			assert_true(fabs(error_of(names[k], sigma) / (sum / mass) - 1) < 1e-5);
		}
}

/* Values on [-1, 1] by the definition of each kind; returns their number. Those of nf<N> are floats by
 * definition. */
static int values_of(const char *name, long double v[256])
{
	const struct format f = get(name);
	const int half = 1 << (f.bits - 1);
	int n = 0, a, b;

	if (sscanf(name, "uint%d", &a) == 1) {		/* ⌊top/2⌉, ties to even, is the code of 0 */
		const long double max = (1 << a) - 1, zero = a > 1 ? half : 0;

		for (int c = 0; c < 1 << a; c++)
			v[n++] = (c - zero) * 2 / max;
	} else if (sscanf(name, "int%d", &a) == 1)
		for (int c = 1 - half; c < half; c++)
			v[n++] = (long double)c / (half - 1);
	else if (sscanf(name, "e%dm%d", &a, &b) == 2 || strstr(name, "fp4")) {
		const bool mx = *name == 'm', fp4 = mx || *name == 'n';
		const int m = fp4 ? 1 : b;
		long double max = 0, x[128];

		for (int c = 0; c < half; c++) {
			const int e = c >> m, low = c & ((1 << m) - 1);

			x[c] = e ? ldexpl((1 << m) + low, e - 1) : low;
			max = x[c];
		}
		for (int c = 0; c < half; c++) {	/* mxfp4: 6 of 12, a quarter of the values */
			v[n] = x[c] / (mx ? 8 : max);
			v[n + half] = -v[n];
			n++;
		}
		n = 2 * half;
	} else
		for (int c = 0; c < 1 << f.bits; c++)
			v[n++] = (long double)f.grid[c];
	return n;
}

static int ascending(const void *a, const void *b)
{
	const long double x = *(const long double *)a, y = *(const long double *)b;

	return (x > y) - (x < y);
}

/*
 * ∫ (x - v)² e^(-x²/2σ²) from a to b, or of e^(-x²/2σ²) alone, in pieces of σ/8 by the five-point rule of
 * Gauss and Legendre. Its error is 4e-13 of h¹⁰ times the tenth derivative, 945/σ¹⁰ for the density: 1e-18.
 * All terms are positive. Beyond 12 σ the rest is e⁻⁷² of it.
 */
static long double part(long double a, long double b, long double v, long double sigma, bool alone)
{
	const long double r = 2 * sqrtl(10 / 7.0L), near = sqrtl(5 - r) / 3, far = sqrtl(5 + r) / 3;
	const long double more = (322 + 13 * sqrtl(70)) / 900, less = (322 - 13 * sqrtl(70)) / 900;
	const long double node[] = { 0, near, -near, far, -far };
	const long double weight[] = { 128 / 225.0L, more, more, less, less };
	long double sum = 0, n, h;

	a = fmaxl(a, -12 * sigma);
	b = fminl(b, 12 * sigma);
	if (b <= a)
		return 0;
	n = ceill((b - a) / sigma * 8);
	h = (b - a) / n / 2;
	for (int i = 0; i < (int)n; i++)
		for (int k = 0; k < 5; k++) {
			const long double x = a + h * (2 * i + 1 + node[k]), e = x / sigma;

			sum += h * weight[k] * expl(-e * e / 2) * (alone ? 1 : (x - v) * (x - v));
		}
	return sum;
}

/* To 1e-12: doubles lose 2⁻⁵³ · 2¹⁰ = 1.1e-13 of a cell, since moments may cancel so far (gauss.c). */
static void to_the_last_digits(void **unused)
{
	static const char *const names[] = { "int2", "int4", "int5", "int8", "uint1", "uint4", "uint5",
		"uint8", "e2m1", "e1m2", "e3m0", "e2m2", "e3m2", "e4m1", "e1m6", "e6m1", "mxfp4", "nvfp4",
		"nf4", "nf5", "nf8" };

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (double sigma = 1e-3; sigma <= 10; sigma *= 1.37) {
			CASE("%s, sigma %g", names[k], sigma);
			struct format f = get(names[k]);
			long double v[256], sum = 0, error;
			const int n = values_of(names[k], v);
			struct gauss g;

			format_tensor(&f, -1, 1);
			g = gauss_of(&f);
			qsort(v, (size_t)n, sizeof *v, ascending);
			for (int i = 0; i < n; i++)
				sum += part(i ? fmaxl((v[i - 1] + v[i]) / 2, -1) : -1,
					i + 1 < n ? fminl((v[i] + v[i + 1]) / 2, 1) : 1, v[i],
					(long double)sigma, false);
			error = sum / part(-1, 1, 0, (long double)sigma, true);
			if (fabsl((long double)gauss_error(&g, sigma) / error - 1) >= 1e-12L)
				fail_msg("%s, sigma %g: %.17g, expected %.17Lg", names[k], sigma,
					gauss_error(&g, sigma), error);
		}
}

/* Within five standard errors, 54 times: exceeded once in 30 000 runs by chance, and the seed is fixed. */
static void samples(void **unused)
{
	static const char *const names[] = { "int4", "e2m1", "e2m2", "nf4", "e3m1", "uint4" };

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (double sigma = 0.05; sigma < 0.5; sigma += 0.05) {
			CASE("%s, sigma %g", names[k], sigma);
			const struct format f = get(names[k]);
			double se, mean = gauss_sampled(&f, sigma, 20000, 1, &se);

			assert_true(fabs(mean - error_of(names[k], sigma)) < 5 * se);
			assert_true(se > 0 && se < 0.05 * mean);
		}
}

static void limits(void **unused)
{
	const struct format f = get("int8");
	const struct gauss g = gauss_of(&f);

	(void)unused;
	assert_true(fabs(gauss_second_moment(INFINITY) - 1 / 3.0) < 1e-12);
	assert_true(fabs(gauss_second_moment(0.1) - 0.01) < 1e-9);
	assert_true(fabs(gauss_error(&g, INFINITY) * 12 * 127 * 127 - 1) < 1e-6);	/* s²/12 */
	assert_true(fabs(gauss_error(&g, 1e-4) / 1e-8 - 1) < 1e-6);			/* all become 0 */
}

static void search(void **unused)
{
	const struct format a = get("e2m1"), b = get("e1m2"), c = get("e3m0");
	const struct format e1m3 = get("e1m3"), e2m2 = get("e2m2");
	const struct gauss g = gauss_of(&a), h = gauss_of(&b), k = gauss_of(&c), five = gauss_of(&e1m3),
		float5 = gauss_of(&e2m2);
	double x = gauss_crossover(&g, &h, 0.02, 2), y = gauss_crossover(&g, &k, 0.01, 2),
		best = gauss_best(&g, 2, (const struct gauss *const []){ &h, &k }, 0.01, 2);

	(void)unused;
	assert_true(fabs(gauss_error(&g, x) / gauss_error(&h, x) - 1) < 1e-8);
	assert_true(gauss_error(&g, x * 0.9) < gauss_error(&h, x * 0.9) &&
		gauss_error(&g, x * 1.1) > gauss_error(&h, x * 1.1));
	assert_true(fabs(gauss_error(&g, y) / gauss_error(&k, y) - 1) < 1e-8);
	for (double s = 0.012; s < 2; s *= 1.05)
		assert_true(gauss_error(&g, s) / fmin(gauss_error(&h, s), gauss_error(&k, s)) >=
			gauss_error(&g, best) / fmin(gauss_error(&h, best),
				gauss_error(&k, best)) * (1 - 1e-9));
	assert_true(best > y && best < x);
	assert_true(isnan(gauss_crossover(&g, &g, 0.02, 2)));
	/* Below 0.0022 both round all weights to 0, and the errors differ by rounding alone. */
	assert_true(fabs(gauss_crossover(&five, &float5, 1e-3, 2) - 0.356163) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values), cmocka_unit_test(quadrature),
		cmocka_unit_test(to_the_last_digits), cmocka_unit_test(samples),
		cmocka_unit_test(limits), cmocka_unit_test(search),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
