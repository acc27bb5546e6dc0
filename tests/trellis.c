/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trellis -- trellis codes: weights against their definition, codes against the Viterbi algorithm in plain
 * double, and errors of Gaussian numbers. `trellis million` measures the latter on a million numbers each.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "num/code_form.h"
#include "num/format.h"
#include "num/trellis.h"

enum { T = TRELLIS_WEIGHTS, SIDE = TRELLIS_SIDE };
static size_t numbers;			/* of each measurement; 0: few */

static struct format get(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	return f;
}

/* An FP16 number, with an exponent that is not 0. */
static double half(uint32_t x)
{
	return (x >> 15 & 1 ? -1 : 1) * ldexp(1024 + (x & 1023), (int)(x >> 10 & 31) - 25);
}

/* The weight of a state, in double. */
static double value_of(bool three, uint32_t t)
{
	uint32_t z = three ? 89226354u * t + 64248484u : 34038481u * t + 76625530u;
	double sum = 0;
	int e;

	if (!three) {
		for (int i = 0; i < 4; i++)
			sum += z >> 8 * i & 255;
		return (sum - 510) / 147.8005;
	}
	z = (z & 0x8fff8fff) ^ 0x3b603b60;
	sum = half(z & 0xffff) + half(z >> 16);
	if (sum == 0)
		return 0;
	frexp(sum, &e);		/* eleven significant bits */
	return ldexp(nearbyint(ldexp(sum, 11 - e)), e - 11);
}

static void names(void **unused)
{
	static const char *const bad[] = { "1mad", "1mad0", "1mad5", "1mad2-9", "1mad2-17", "3inst2-",
		"2mad2" };
	struct format f;

	(void)unused;
	assert_int_equal(get("1mad2").bits, 512);
	assert_int_equal(get("1mad2").y, 12);
	assert_int_equal(get("3INST3-16").y, 16);
	assert_string_equal(get("3INST3-16").name, "3inst3-16");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CASE("%s", bad[i]);
		assert_false(format_parse(&f, bad[i]));
	}
}

/* State p of a code, from the text of its bits. */
static uint32_t state_of(const uint8_t *code, size_t bits, size_t p, size_t k, size_t l)
{
	uint32_t t = 0;

	for (size_t j = p * k; j < p * k + l; j++)
		t = 2 * t + ((code[j % bits / 8] & 128 >> j % bits % 8) != 0);
	return t;
}

/* Whether w is the weight p of a code, up to three roundings of numbers below 4. */
static bool is_weight(float w, bool three, const uint8_t *code, size_t bytes, size_t p, size_t k, size_t l)
{
	return fabs((double)w - value_of(three, state_of(code, 8 * bytes, p, k, l))) < 4 * 0x1p-23;
}

static void decoded(void **unused)
{
	const struct random_stream stream = random_open(1, "trellis");
	const float scale[2 * SIDE] = { [3] = 2, [20] = 3 };
	const uint8_t zero[2 * SIDE] = { 0 };

	(void)unused;
	for (size_t k = 1; k <= 4; k++)
		for (size_t l = 10; l <= 16; l++)
			for (int three = 0; three < 2; three++) {
				char name[16];
				uint8_t code[2 * TRELLIS_BYTES];
				float w[2 * SIDE], ones[2 * SIDE];
				struct format f;
				size_t bytes;

				snprintf(name, sizeof name, "%s%zu-%zu", three ? "3inst" : "1mad", k, l);
				CASE("%s", name);
				f = get(name), bytes = (size_t)f.bits / 8;
				assert_int_equal(code_bytes(&f), 32 * k);
				for (size_t i = 0; i < sizeof code; i++)
					code[i] = (uint8_t)random_bits(&stream, i + 1000 * l + k);
				for (size_t i = 0; i < 2 * SIDE; i++)
					ones[i] = 1;
				for (size_t p = 0; p < T; p++) {	/* the same row of two tiles */
					const size_t row = p / SIDE, column = p % SIDE;

					code_form(&f)->decode(&f, row, 0, 2 * SIDE, w, code, ones, zero);
					for (size_t tile = 0; tile < 2; tile++)
						assert_true(is_weight(w[tile * SIDE + column], three,
							code + tile * bytes, bytes, p, k, l));
				}
				code_form(&f)->decode(&f, 5, 3, 20, w, code, scale + 3, zero);
				assert_true(is_weight(w[0] / 2, three, code, bytes, 5 * SIDE + 3, k, l));
				assert_true(is_weight(w[17] / 3, three, code + bytes, bytes, 5 * SIDE + 4, k,
					l));
			}
}

/* The least cost and its path. upper < 0: free; else the upper bits of the first and lower of the last. */
static double viterbi(const double *value, size_t k, size_t l, const double x[T], long upper,
	uint32_t path[T])
{
	const size_t n = (size_t)1 << l, low = n >> k;
	double (*cost)[n] = xalloc(T, sizeof *cost), least = INFINITY;
	uint32_t t = 0;

	for (size_t p = 0; p < T; p++)
		for (size_t s = 0; s < n; s++) {
			double before = p || (upper >= 0 && s >> k != (size_t)upper) ? INFINITY : 0;

			for (size_t h = 0; p && h < (size_t)1 << k; h++)
				before = fmin(before, cost[p - 1][(s >> k) + h * low]);
			cost[p][s] = before + (x[p] - value[s]) * (x[p] - value[s]);
		}
	for (size_t s = 0; s < n; s++)
		if ((upper < 0 || s % low == (size_t)upper) && cost[T - 1][s] < least)
			least = cost[T - 1][s], t = (uint32_t)s;
	for (size_t p = T; p-- > 0;) {
		uint32_t best = t >> k;

		path[p] = t;
		for (size_t h = 1; p && h < (size_t)1 << k; h++)
			if (cost[p - 1][(t >> k) + h * low] < cost[p - 1][best])
				best = (uint32_t)((t >> k) + h * low);
		t = best;
	}
	free(cost);
	return least;
}

/*
 * Costs are sums of 256 squares below 50 in float: they err by less than 256 · 2⁻²⁴ of the sum, and the least
 * path in float costs at most twice that more. Where the ring is closed depends on a path that may be another
 * if two cost nearly the same, which happens to few tiles.
 */
static void against_double(void **unused)
{
	enum { TILES = 6 };
	static const char *const formats[] = { "1mad2-10", "3inst2-10", "1mad1-11", "3inst3-10", "1mad4-12" };
	const struct random_stream stream = random_open(3, "trellis");
	size_t same = 0, all = 0;
	uint64_t at = 0;

	(void)unused;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		const struct format f = get(formats[i]);
		const size_t k = (size_t)f.x, l = (size_t)f.y;
		double *value = xalloc((size_t)1 << l, sizeof *value);
		void *workspace = xalloc(trellis_workspace(&f), 1);

		for (uint32_t t = 0; t < 1u << l; t++)
			value[t] = value_of(formats[i][0] == '3', t);
		for (size_t n = 0; n < TILES; n++, all++) {
			uint8_t code[TRELLIS_BYTES];
			uint32_t path[T], upper;
			float x[T], y[T];
			double given[T], turned[T], found = 0, least;

			CASE("%s, tile %zu", formats[i], n);
			for (size_t p = 0; p < T; p++)
				given[p] = (double)(x[p] = (float)random_normal(&stream, at++));
			for (size_t p = 0; p < T; p++)
				turned[p] = given[(p + T / 2) % T];
			trellis_nearest(&f, code, y, x, workspace);
			for (size_t p = 0; p < T; p++) {
				const double v = value[state_of(code, (size_t)f.bits, p, k, l)];

				assert_true(fabs((double)y[p] - v) < 4 * 0x1p-23);
				found += (given[p] - v) * (given[p] - v);
			}
			upper = state_of(code, (size_t)f.bits, 0, k, l) >> k;
			least = viterbi(value, k, l, given, upper, path);
			assert_true(found >= least * (1 - 1e-9) && found <= least * (1 + 3 * 256 * 0x1p-24));
			viterbi(value, k, l, turned, -1, path);
			same += path[T / 2] >> k == upper;
		}
		free(value), free(workspace);
	}
	assert_true(same * 10 >= all * 9);
}

/*
 * Mean squared errors of the unit Gaussian, relative to those of an independent program, which have four
 * decimals. Few numbers have standard errors of about 1.6/√numbers, and five of them are allowed; 1 % with a
 * million, and half of the last decimal.
 */
static void gaussian_errors(void **unused)
{
	static const struct { const char *name; double error; size_t few; } rows[] = {
		{ "1mad2-10", 0.0785, 1 << 16 }, { "1mad2", 0.0749, 1 << 16 }, { "3inst2", 0.0730, 1 << 16 },
		{ "1mad2-16", 0.0686, 1 << 13 }, { "3inst2-16", 0.0688, 1 << 13 },
		{ "1mad3-16", 0.0175, 1 << 14 }, { "1mad4-16", 0.0045, 1 << 14 },
	};
	const struct random_stream stream = random_open(4, "trellis");

	(void)unused;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct format f = get(rows[i].name);
		const size_t n = numbers ? numbers : rows[i].few;
		const double scale = 1 / trellis_rms(&f), bound = numbers ? 0.01 : 8 / sqrt((double)n);
		void *workspace = xalloc(trellis_workspace(&f), 1);
		const clock_t start = clock();
		double sum = 0, squares = 0, error;
		size_t blocks = 0;

		CASE("%s", rows[i].name);
		for (; blocks * T < n; blocks++) {
			uint8_t code[TRELLIS_BYTES];
			float x[T], y[T];
			double block = 0;

			for (size_t p = 0; p < T; p++)
				x[p] = (float)(random_normal(&stream, blocks * T + p) / scale);
			trellis_nearest(&f, code, y, x, workspace);
			for (size_t p = 0; p < T; p++)
				block += pow((double)(x[p] - y[p]) * scale, 2) / T;
			sum += block, squares += block * block;
		}
		free(workspace);
		sum /= (double)blocks;
		error = sqrt((squares / (double)blocks - sum * sum) / (double)blocks);
		print_message("# %s: %.5f ± %.5f, %.3g state updates a second\n", f.name, sum, error,
			(double)blocks * T * 2 * ldexp(1, f.y) * CLOCKS_PER_SEC / (double)(clock() - start));
		assert_true(sum > ldexp(1, -2 * f.x));
		if (fabs(sum - rows[i].error) > fmax(bound * rows[i].error, 0.00005))
			fail_msg("%s: %g, expected %g", f.name, sum, rows[i].error);
	}
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(decoded), cmocka_unit_test(against_double),
		cmocka_unit_test(gaussian_errors),
	};

	numbers = argc > 1 && !strcmp(argv[1], "million") ? 1000000 : 0;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
