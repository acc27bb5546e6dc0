/* SPDX-License-Identifier: GPL-3.0-or-later */
/* order -- DPQ figure 1, every kind and key, ties, a shorter last group */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "solver/order.h"

static void check(size_t n, const float diag[n], enum order_kind kind, enum order_key key, size_t group,
	const int32_t want[n])
{
	int32_t order[n];
	void *work = malloc(order_workspace(n));

	assert_int_equal(order_columns(n, order, diag, kind, key, group, work), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(order[i] + 1, want[i]);
	free(work);
}

#define CHECK(diag, kind, key, group, ...) \
	check(sizeof diag / sizeof *diag, diag, kind, key, group, (const int32_t []){ __VA_ARGS__ })

static void figure_1(void **unused)
{
	const float d[] = { 3, 4, 2, 1, 5, 6 };

	(void)unused;
	CHECK(d, ORDER_GAR, ORDER_MAX, 2, 6, 5, 2, 1, 3, 4);
	CHECK(d, ORDER_NONE, ORDER_MAX, 2, 1, 2, 3, 4, 5, 6);
	CHECK(d, ORDER_FULL, ORDER_MAX, 2, 6, 5, 2, 1, 3, 4);
	CHECK(d, ORDER_GAR, ORDER_MAX, 0, 6, 5, 2, 1, 3, 4);
	CHECK(d, ORDER_GAR, ORDER_MAX, 100, 6, 5, 2, 1, 3, 4);
	CHECK(d, ORDER_GAR, ORDER_MAX, 1, 6, 5, 2, 1, 3, 4);
}

static void ties(void **unused)
{
	const float d[] = { 1, 2, 2, 1, 2, 1, 1, 2 }, same[] = { 0, 0, 0, 0, 0 };

	(void)unused;
	CHECK(d, ORDER_FULL, ORDER_MAX, 2, 2, 3, 5, 8, 1, 4, 6, 7);
	for (int key = ORDER_MAX; key <= ORDER_TOP10; key++)
		CHECK(d, ORDER_GAR, (enum order_key)key, 2, 2, 1, 3, 4, 5, 6, 8, 7);
	CHECK(same, ORDER_FULL, ORDER_MAX, 2, 1, 2, 3, 4, 5);
	CHECK(same, ORDER_GAR, ORDER_SUM, 2, 1, 2, 3, 4, 5);
}

/* Each key ranks another group first. */
static void keys(void **unused)
{
	/* max 9 8 7, mean 4 5.25 3.67, sum 16 21 11, median 2.5 6 2; the last group has three columns */
	const float d[] = { 9, 2, 3, 2, 1, 6, 8, 6, 7, 2, 2 };
	const float e[] = { 9, 2, 3, 2, 8, 6, 1, 0, 7, 2, 2 };

	(void)unused;
	CHECK(d, ORDER_GAR, ORDER_MAX, 4, 1, 3, 2, 4, 7, 6, 8, 5, 9, 10, 11);
	CHECK(d, ORDER_GAR, ORDER_MEAN, 4, 7, 6, 8, 5, 1, 3, 2, 4, 9, 10, 11);
	CHECK(d, ORDER_GAR, ORDER_SUM, 4, 7, 6, 8, 5, 1, 3, 2, 4, 9, 10, 11);
	CHECK(d, ORDER_GAR, ORDER_MEDIAN, 4, 7, 6, 8, 5, 1, 3, 2, 4, 9, 10, 11);
	CHECK(d, ORDER_GAR, ORDER_TOP10, 4, 1, 3, 2, 4, 7, 6, 8, 5, 9, 10, 11);
	/* sums 16 15 11, means 4 3.75 3.67, medians 2.5 3.5 2 */
	CHECK(e, ORDER_GAR, ORDER_SUM, 4, 1, 3, 2, 4, 5, 6, 7, 8, 9, 10, 11);
	CHECK(e, ORDER_GAR, ORDER_MEDIAN, 4, 5, 6, 7, 8, 1, 3, 2, 4, 9, 10, 11);
}

/* A short group is first by its mean and last by its sum. */
static void tail(void **unused)
{
	const float d[] = { 3, 3, 3, 3, 5 };

	(void)unused;
	CHECK(d, ORDER_GAR, ORDER_MEAN, 4, 5, 1, 2, 3, 4);
	CHECK(d, ORDER_GAR, ORDER_MEDIAN, 4, 5, 1, 2, 3, 4);
	CHECK(d, ORDER_GAR, ORDER_SUM, 4, 1, 2, 3, 4, 5);
}

/* top10 of 11 to 20 columns is the mean of two columns. */
static void top10(void **unused)
{
	float d[24] = { 0 };
	int32_t order[24];
	void *work = malloc(order_workspace(24));

	(void)unused;
	d[3] = 10;
	d[12] = 6;
	d[20] = 5;
	assert_int_equal(order_columns(24, order, d, ORDER_GAR, ORDER_TOP10, 12, work), 0);
	assert_int_equal(order[0], 12);
	assert_int_equal(order[1], 20);
	assert_int_equal(order[12], 3);
	assert_int_equal(order_columns(24, order, d, ORDER_GAR, ORDER_MAX, 12, work), 0);
	assert_int_equal(order[0], 3);
	free(work);
}

/* Every kind and key gives a permutation; gar keeps groups together. */
static void permutations(void **unused)
{
	enum { N = 1000, GROUP = 48 };
	static float d[N];
	static int32_t order[N];
	void *work = malloc(order_workspace(N));

	(void)unused;
	for (int i = 0; i < N; i++)
		d[i] = (float)((i * 7919) % 101);
	for (int kind = 0; order_kinds[kind]; kind++)
		for (int key = 0; order_keys[key]; key++) {
			CASE("%s, %s", order_kinds[kind], order_keys[key]);
			char seen[N] = { 0 };

			assert_int_equal(order_columns(N, order, d, (enum order_kind)kind,
				(enum order_key)key, GROUP, work), 0);
			for (int i = 0; i < N; i++) {
				assert_false(seen[order[i]]);
				seen[order[i]] = 1;
			}
			for (int i = 1, runs = 1; kind == ORDER_GAR && i < N; i++) {
				runs += order[i] / GROUP != order[i - 1] / GROUP;
				assert_true(order[i] / GROUP != order[i - 1] / GROUP ||
					d[order[i]] <= d[order[i - 1]]);
				assert_true(i < N - 1 || runs == (N + GROUP - 1) / GROUP);
			}
		}
	free(work);
}

static void bad_diagonal(void **unused)
{
	float d[] = { 1, 2, NAN, 3 };
	int32_t order[4];
	void *work = malloc(order_workspace(4));

	(void)unused;
	assert_int_equal(order_columns(4, order, d, ORDER_FULL, ORDER_MAX, 2, work), 3);
	d[2] = -1;
	assert_int_equal(order_columns(4, order, d, ORDER_GAR, ORDER_MAX, 2, work), 3);
	free(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figure_1), cmocka_unit_test(ties), cmocka_unit_test(keys),
		cmocka_unit_test(tail), cmocka_unit_test(top10), cmocka_unit_test(permutations),
		cmocka_unit_test(bad_diagonal),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
