/* SPDX-License-Identifier: GPL-3.0-or-later */
/* histogram -- counts of magnitudes against a search over the edges, percentiles against plain counts */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/random.h"
#include "calib/histogram.h"
#include "case.h"

enum { N = 4001 };

/* Magnitudes from 2^-30 to 2^30, all octaves equally likely, of both signs; the first ones are special. */
static void draw(float x[N])
{
	static const float special[] = { 0, -0.0f, FLT_MIN / 8, FLT_MAX, INFINITY, NAN, 1, -0x1p-24f, 0x1p24f,
		0x1.fffffep23f };
	const struct random_stream stream = random_open(1, "histogram");

	for (uint64_t i = 0; i < N; i++)
		x[i] = (float)(exp2(60 * random_uniform(&stream, 2 * i) - 30) *
			(random_uniform(&stream, 2 * i + 1) < 0.5 ? -1 : 1));
	memcpy(x, special, sizeof special);
}

static void edges(void **unused)
{
	(void)unused;
	assert_true(histogram_edge(0) == 0 && histogram_edge(1) == 0x1p-24f);
	assert_true(histogram_edge(HISTOGRAM_BINS - 1) == 0x1p24f && isinf(histogram_edge(HISTOGRAM_BINS)));
	for (size_t b = 1; b + 1 < HISTOGRAM_BINS; b++) {
		CASE("bin %zu", b);
		const float low = histogram_edge(b), high = histogram_edge(b + 1);

		assert_true(high > low && high - low <= low / HISTOGRAM_STEPS);
	}
}

static void counts(void **unused)
{
	const enum cpu native = cpu;
	static int64_t want[HISTOGRAM_BINS];
	static float x[N];

	(void)unused;
	draw(x);
	for (size_t i = 0; i < N; i++) {
		size_t b = HISTOGRAM_BINS - 1;		/* NaN too */

		for (size_t k = 0; k < HISTOGRAM_BINS; k++)
			if (fabsf(x[i]) >= histogram_edge(k) && fabsf(x[i]) < histogram_edge(k + 1))
				b = k;
		want[b]++;
	}
	for (int c = CPU_PLAIN; c <= (int)native; c++) {
		CASE("cpu %d", c);
		int64_t got[HISTOGRAM_BINS] = { 0 };

		cpu = (enum cpu)c;
		for (size_t i = 0; i < N; i += 1000)	/* in chunks; the last is short */
			histogram_add(N - i < 1000 ? N - i : 1000, got, x + i);
		assert_memory_equal(got, want, sizeof want);
	}
	cpu = native;
}

static size_t below(const float x[N], float edge)
{
	size_t n = 0;

	for (size_t i = 0; i < N; i++)
		n += fabsf(x[i]) < edge;
	return n;
}

static void percentiles(void **unused)
{
	static const double some[] = { 0.01, 1, 50, 75, 90, 99, 99.9 };
	int64_t whole[HISTOGRAM_BINS] = { 0 };
	double count[HISTOGRAM_BINS] = { 0 };
	static float x[N];

	(void)unused;
	assert_true(histogram_percentile(count, 99) == 0);
	draw(x);
	for (size_t i = 0; i < N; i++)
		x[i] = fmodf(isfinite(x[i]) ? x[i] : 1, 1000);
	histogram_add(N, whole, x);
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		count[b] = 0.3 * (double)whole[b];	/* weights have no effect */
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		CASE("some[%zu]", i);
		const float edge = histogram_percentile(count, some[i]);
		size_t b = 0;

		while (histogram_edge(b) < edge)
			b++;
		assert_true(b > 0 && histogram_edge(b) == edge);
		assert_true((double)below(x, edge) * 100 >= some[i] * N);
		assert_true((double)below(x, histogram_edge(b - 1)) * 100 < some[i] * N);
	}
	assert_true(below(x, histogram_percentile(count, 100)) == N);
	count[HISTOGRAM_BINS - 1] = 1;
	assert_true(isinf(histogram_percentile(count, 100)) && isfinite(histogram_percentile(count, 99)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges), cmocka_unit_test(counts), cmocka_unit_test(percentiles),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
