/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * two_way -- the layout of draws and windows: by hand, against sums in another order, and the share of
 * verdicts in simulations
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "eval/two_way.h"

static void near(double a, double b, double relative)
{
	if (!(fabs(a - b) <= relative * fabs(b)))
		fail_msg("%.17g, expected %.17g", a, b);
}

/*
 * Two draws of three windows: means 2 and 4, and 1.5, 3 and 4.5. A = 3 (1 + 1)/1 = 6, B = 2 (2.25 + 2.25)/2
 * = 4.5, R = 4 · 0.25/2 = 0.5. se² = 10/6, df = 10²/(6² + 4.5²/2 + 0.5²/2). With 2 degrees of freedom the
 * quantile has a closed form, (2p - 1) √(2/(1 - (2p - 1)²)), p = 0.975.
 */
static void by_hand(void **state)
{
	const double d[] = { 1, 2, 3, 2, 4, 6 }, one[] = { 1, 1, 1 };
	const double at2 = 0.95 * sqrt(2 / (1 - 0.95 * 0.95));
	const struct two_way t = two_way_of(2, 3, d, one, 0.95);

	(void)state;
	near(t.mean, 3, 1e-15);
	near(t.se, sqrt(10.0 / 6), 1e-14);
	near(t.se_draws, 1, 1e-14);
	near(t.se_windows, sqrt(4.5 / 6), 1e-14);
	near(t.df, 100 / (36 + 20.25 / 2 + 0.25 / 2), 1e-13);
	assert_true(t.quantile < at2 && t.quantile > 3.182446);	/* of 2 and of 3 degrees */
	assert_false(t.separated);
	assert_true(two_way_of(2, 3, d, one, 0.5).separated);
}

/*
 * Equal means of the draws, 3: A = 0, B = 2 (2 · 2.25 + 9)/2 = 13.5, R = 4 · 0.25/2 = 0.5, and B is more than
 * A + B - R.
 */
static void one_part(void **state)
{
	const double d[] = { 1, 2, 6, 2, 1, 6 }, across[] = { 1, 2, 2, 1, 6, 6 }, one[] = { 1, 1, 1 };
	const struct two_way windows = two_way_of(2, 3, d, one, 0.95);
	const struct two_way draws = two_way_of(3, 2, across, one, 0.95);

	(void)state;
	near(windows.se, sqrt(13.5 / 6), 1e-14);
	near(windows.se_windows, windows.se, 0);
	near(windows.df, 2, 0);
	near(draws.se, windows.se, 1e-14);
	near(draws.se_draws, draws.se, 0);
	near(draws.df, 2, 0);
}

/* One question differs in k draws: A = R, in one draw A = B = R; rounding makes any of them the largest. */
static void tie(void **state)
{
	(void)state;
	for (size_t a = 2; a <= 5; a++)
		for (size_t b = 2; b < 300; b++) {
			double *d = xalloc(a * b, sizeof *d), *one = xalloc(b, sizeof *one);

			CASE("%zu draws, %zu windows", a, b);
			for (size_t k = 0; k < a * b; k++)
				d[k] = 0, one[k % b] = 1;
			for (size_t k = 1; k < a; k++) {	/* A/B = q */
				const double q = (double)(a - k) / (double)(k * (a - 1));
				const double u = (double)(a - 1), v = (double)(b - 1);

				d[k * b - 1] = 1;
				near(two_way_of(a, b, d, one, 0.95).df,
					fmax(1 / (q * q / u + 1 / v + q * q / (u * v)), 1), 1e-9);
			}
			free(d), free(one);
		}
}

/* The same windows, cut into unequal ones: a window of weight 2 is not two windows, but Δ is the same. */
static void weights(void **state)
{
	const double d[] = { 1, 1, 4, 2, 2, 9 }, joined[] = { 1, 4, 2, 9 };
	const double one[] = { 1, 1, 1 }, two[] = { 20, 10 };
	const struct two_way a = two_way_of(2, 3, d, one, 0.95), b = two_way_of(2, 2, joined, two, 0.95);

	(void)state;
	near(b.mean, a.mean, 1e-15);
	near(b.se_draws, a.se_draws, 1e-14);
	/* z = 4/3 (c1 - Δ) and 2/3 (c2 - Δ), Δ = 19/6, c1 = 3/2, c2 = 13/2, so ±20/9: B = 2 · 2 (20/9)² */
	near(b.se_windows, 20.0 / 9, 1e-14);
}

static void ends(void **state)
{
	const double d[] = { 1, 3, 8, 1, 3, 8 }, one[] = { 1, 1, 1 }, same[] = { 5, 5, 5, 5, 5, 5 };
	const struct two_way single = two_way_of(1, 3, d, one, 0.95), equal = two_way_of(2, 3, d, one, 0.95);
	const struct two_way window = two_way_of(3, 1, d, one, 0.95);
	const struct two_way none = two_way_of(2, 3, same, one, 0.95);
	double tenths[21], roots[21], cancelled[21], ones[7];
	struct two_way rounded, equal_roots, equal_sums, small;

	(void)state;
	for (int i = 0; i < 21; i++) {
		tenths[i] = 0.1, ones[i % 7] = 1;
		roots[i] = sqrt(i % 7 + 2);
		cancelled[i] = i % 7 == 3 ? -0.6 : 0.1 * (i % 7 + 1) * (i % 7 < 3);
	}
	rounded = two_way_of(3, 7, tenths, ones, 0.95);
	equal_sums = two_way_of(3, 7, cancelled, ones, 0.95);
	equal_roots = two_way_of(3, 7, roots, ones, 0.95);
	for (int i = 0; i < 7; i++)
		roots[i] += 1e-12;	/* r = 1e-12 (2, -1, -1)/3, A = 7e-24/3 */
	small = two_way_of(3, 7, roots, ones, 0.95);
	near(single.se, sqrt((9 + 1 + 16) / 6.0), 1e-14);	/* s/√b */
	near(single.se_windows, single.se, 0);
	assert_true(isnan(single.df) && isnan(single.se_draws) && !single.separated);
	/* draws without an effect: the error over windows, with their degrees of freedom */
	near(equal.se, single.se, 1e-14);
	near(equal.df, 2, 1e-12);
	near(equal.quantile, 4.302652729911275, 1e-9);
	assert_true(equal.se_draws == 0 && !equal.separated);
	assert_true(equal_sums.se_draws == 0 && equal_sums.se_windows > 0);	/* their mean is 0 */
	assert_true(equal_roots.se_draws == 0 && equal_roots.se_windows > 0);
	near(small.se_draws, 1e-12 / 3, 1e-3);
	assert_true(rounded.se == 0 && rounded.se_draws == 0 && rounded.se_windows == 0);
	near(window.se, single.se, 1e-14);
	near(window.se_draws, single.se, 1e-14);
	assert_true(isnan(window.se_windows) && isnan(window.df) && !window.separated);
	assert_true(isnan(rounded.df) && !rounded.separated);	/* the mean of 21 times 0.1 is not 0.1 */
	assert_true(none.mean == 5 && none.se == 0 && isnan(none.df) && !none.separated);
}

/* Weighted sums in long double, in another order, without z. */
static void reference(void **state)
{
	enum { DRAWS = 4, WINDOWS = 7 };
	const struct random_stream r = random_open(1, "two_way");
	double d[DRAWS * WINDOWS], weight[WINDOWS];
	long double w = 0, mean = 0, a = 0, b = 0, rest = 0, sum, se2;
	struct two_way t;

	(void)state;
	for (size_t k = 0; k < DRAWS * WINDOWS; k++)
		d[k] = random_normal(&r, k);
	for (size_t j = 0; j < WINDOWS; j++)
		w += weight[j] = (double)(10 + j * j);
	t = two_way_of(DRAWS, WINDOWS, d, weight, 0.95);
	for (size_t j = 0; j < WINDOWS; j++)
		for (size_t i = 0; i < DRAWS; i++)
			mean += weight[j] * (long double)d[i * WINDOWS + j] / (w * DRAWS);
	for (size_t i = 0; i < DRAWS; i++) {
		long double row = 0;

		for (size_t j = 0; j < WINDOWS; j++)
			row += weight[j] * (long double)d[i * WINDOWS + j] / w;
		a += WINDOWS * (row - mean) * (row - mean) / (DRAWS - 1);
		for (size_t j = 0; j < WINDOWS; j++) {
			long double column = 0, u = weight[j] * WINDOWS / w, e;

			for (size_t k = 0; k < DRAWS; k++)
				column += d[k * WINDOWS + j] / (long double)DRAWS;
			if (!i)
				b += DRAWS * u * u * (column - mean) * (column - mean) / (WINDOWS - 1);
			e = u * (d[i * WINDOWS + j] - column) - (row - mean);
			rest += e * e / ((DRAWS - 1) * (WINDOWS - 1));
		}
	}
	sum = a + b - rest;
	se2 = fmaxl(sum, fmaxl(a, b)) / (DRAWS * WINDOWS);
	near(t.mean, (double)mean, 1e-12);
	near(t.se, sqrt((double)se2), 1e-12);
	near(t.se_draws, sqrt((double)(a / (DRAWS * WINDOWS))), 1e-12);
	near(t.df, sum < fmaxl(a, b) ? (a > b ? DRAWS - 1 : WINDOWS - 1) :
		fmax((double)(sum * sum / (a * a / (DRAWS - 1) + b * b / (WINDOWS - 1) +
			rest * rest / ((DRAWS - 1) * (WINDOWS - 1)))), 1), 1e-11);
}

/* Standard deviations of α, β and ε, and the mean of the numbers. */
struct parts { double draws, windows, both, mean; };

/* The share of layouts that are separated from 0. */
static double verdicts(size_t draws, const struct parts *p)
{
	enum { WINDOWS = 40, TRIALS = 4000 };
	const struct random_stream r = random_open(draws, "verdicts");
	double *d = xalloc(draws * WINDOWS, sizeof *d), weight[WINDOWS], column[WINDOWS];
	size_t count = 0;
	uint64_t k = 0;

	for (size_t j = 0; j < WINDOWS; j++)
		weight[j] = 1;
	for (size_t trial = 0; trial < TRIALS; trial++) {
		for (size_t j = 0; j < WINDOWS; j++)
			column[j] = p->mean + p->windows * random_normal(&r, k++);
		for (size_t i = 0; i < draws; i++) {
			const double row = p->draws * random_normal(&r, k++);

			for (size_t j = 0; j < WINDOWS; j++)
				d[i * WINDOWS + j] = row + column[j] + p->both * random_normal(&r, k++);
		}
		count += two_way_of(draws, WINDOWS, d, weight, 0.95).separated;
	}
	free(d);
	return (double)count / TRIALS;
}

/*
 * False verdicts. 5 % are meant; the degrees of freedom are estimated, so a few draws have more, and a layout
 * without effects, where the larger part counts, has fewer. The error of 5 % of 4000 is 0.35 %.
 */
static void simulated(void **state)
{
	static const struct parts only_draws = { 1, 0, 1, 0 }, only_windows = { 0, 1, 1, 0 };
	static const struct parts neither = { 0, 0, 1, 0 }, alike = { 0.2, 1, 1, 0 };
	static const struct parts more_draws = { 0.35, 1, 1, 0 }, no_rest = { 1, 1, 0.05, 0 };
	static const size_t draws[] = { 2, 3, 5 };
	/* least, most: of 2, 3 and 5 draws */
	const struct { const struct parts *parts; double least[3], most[3]; } cases[] = {
		{ &only_draws, { 0.03, 0.03, 0.035 }, { 0.14, 0.07, 0.06 } },
		{ &only_windows, { 0.02, 0.03, 0.04 }, { 0.07, 0.07, 0.06 } },
		{ &neither, { 0.01, 0.01, 0.01 }, { 0.05, 0.05, 0.05 } },
		{ &alike, { 0.03, 0.03, 0.03 }, { 0.14, 0.085, 0.065 } },
		{ &more_draws, { 0.03, 0.03, 0.03 }, { 0.14, 0.085, 0.065 } },
		{ &no_rest, { 0.05, 0.05, 0.04 }, { 0.15, 0.085, 0.07 } },
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
		const double share = verdicts(draws[i % 3], cases[i / 3].parts);

		CASE("%zu draws, case %zu: %.2f %%", draws[i % 3], i / 3, 100 * share);
		assert_true(share >= cases[i / 3].least[i % 3] && share <= cases[i / 3].most[i % 3]);
	}
}

/* Means of 4 and 8 standard errors, by the variances of the model. */
static void found(void **state)
{
	struct parts p = { 0.2, 1, 1, 0 };
	const double se = sqrt(0.04 / 5 + 1.0 / 40 + 1.0 / 200);

	(void)state;
	p.mean = 4 * se;
	assert_in_range(100 * verdicts(5, &p), 80, 99);
	p.mean = -8 * se;
	assert_in_range(100 * verdicts(5, &p), 98, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(one_part), cmocka_unit_test(tie),
		cmocka_unit_test(weights),
		cmocka_unit_test(ends),
		cmocka_unit_test(reference),
		cmocka_unit_test(simulated),
		cmocka_unit_test(found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
