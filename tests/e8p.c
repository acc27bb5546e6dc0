/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * e8p -- the codebook E8P: its points against their definition, nearest codes against a search through all of
 * them, and errors of Gaussian numbers against those of the papers
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "case.h"
#include "num/code_form.h"
#include "num/e8p.h"
#include "num/format.h"

enum { N = E8P_COLUMNS, LANES = E8P_LANES, ALL = 1 << 16, FEW = 256 };
static double all[ALL][N], few[FEW][N];		/* the points of E8P, and of the third bit, by their codes */

/* The 256 patterns: those of norm² up to 10, sorted, then the 29 others, by the positions of their ½. */
static void patterns(double a[FEW][N])
{
	static const int others[29] = { 123, 23, 13, 12, 367, 357, 347, 356, 346, 345, 267, 257, 247, 256,
		246, 245, 167, 157, 147, 156, 146, 45, 67, 57, 47, 56, 46, 14, 237 };
	size_t n = 0;

	for (int i = 0; i < 6561; i++) {	/* 3⁸ */
		double square = 0;

		for (int k = 0, power = 2187; k < N; k++, power /= 3) {
			a[n][k] = 0.5 + i / power % 3;
			square += a[n][k] * a[n][k];
		}
		n += square <= 10;
	}
	assert_int_equal(n, 227);
	for (size_t i = 0; i < 29; i++, n++) {
		for (size_t k = 0; k < N; k++)
			a[n][k] = 1.5;
		a[n][others[i] / 100] = a[n][others[i] / 10 % 10] = a[n][others[i] % 10] = 0.5;
	}
}

static void make_all(void)
{
	static double a[FEW + 1][N];

	patterns(a);
	for (unsigned code = 0; code < ALL; code++) {
		unsigned sign = code % 256, bits = 0;
		double sum = 0;

		for (unsigned k = 0; k < N; k++) {
			bits += sign >> k & 1;
			sum += a[code / 256][k];
		}
		if (bits % 2)
			sign ^= 1;
		if (fmod(sum, 2) != 0)
			sign ^= 128;
		for (unsigned k = 0; k < N; k++)
			all[code][k] = (sign >> k & 1 ? -1 : 1) * a[code / 256][k] +
				(bits % 2 ? -0.25 : 0.25);
	}
}

static void make_few(void)
{
	size_t n = 128;

	for (unsigned code = 0; code < 128; code++) {
		few[code][N - 1] = 0.5;
		for (unsigned k = 0; k < N - 1; k++) {
			few[code][k] = code >> k & 1 ? -0.5 : 0.5;
			few[code][N - 1] *= code >> k & 1 ? -1 : 1;
		}
	}
	for (size_t i = 0; i < N; i++)
		for (size_t k = i + 1; k < N; k++)
			for (unsigned signs = 0; signs < 4; signs++, n++) {
				few[n][i] = signs & 1 ? -1 : 1;
				few[n][k] = signs & 2 ? -1 : 1;
			}
	for (size_t i = 0; i < N; i++, n += 2) {
		few[n][i] = 2;
		few[n + 1][i] = i < N - 1 ? -2 : 0;
	}
	assert_int_equal(n, FEW);
}

static struct format get(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	return f;
}

static void decode(const struct format *f, const uint8_t *code, float w[N])
{
	const float one[N] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	const uint8_t zero[N] = { 0 };

	code_form(f)->decode(f, 0, 0, N, w, code, one, zero);
}

static int by_numbers(const void *a, const void *b)
{
	return memcmp(a, b, N * sizeof(double));
}

/* Points differ, and are in E8 + ¼: less ¼, all numbers are integers, or all are halves; the sum is even. */
static void in_the_lattice(void **unused)
{
	double (*sorted)[N] = malloc(sizeof all);

	(void)unused;
	assert_non_null(sorted);
	for (size_t c = 0; c < ALL; c++) {
		const double part = fabs(fmod(all[c][0] - 0.25, 1));
		double sum = 0;

		assert_true(part == 0 || part == 0.5);
		for (size_t k = 0; k < N; k++) {
			assert_true(fabs(fmod(all[c][k] - 0.25, 1)) == part);
			sum += all[c][k] - 0.25;
		}
		assert_true(fmod(sum, 2) == 0);
	}
	memcpy(sorted, all, sizeof all);
	qsort(sorted, ALL, sizeof *sorted, by_numbers);
	for (size_t c = 1; c < ALL; c++)
		assert_true(by_numbers(sorted[c - 1], sorted[c]));
	free(sorted);
}

static void decoded(void **unused)
{
	const struct format two = get("e8p"), three = get("e8p3"), four = get("E8P4");
	const float scale[3] = { 2, 3, 0.5f };
	const uint8_t zero[3] = { 0 };
	float w[N];

	(void)unused;
	assert_int_equal(two.bits, 16);
	assert_int_equal(three.bits, 24);
	assert_int_equal(four.bits, 32);
	assert_false(format_has_grid(&two) || code_packs(&two));
	for (unsigned c = 0; c < ALL; c++) {
		const unsigned d = (c * 7919 + 3) % ALL;
		const uint8_t code[4] = { (uint8_t)c, (uint8_t)(c >> 8), (uint8_t)d, (uint8_t)(d >> 8) };

		CASE("code %u", c);
		decode(&two, code, w);
		for (size_t k = 0; k < N; k++)
			assert_true((double)w[k] == all[c][k]);
		decode(&three, code, w);	/* three roundings of numbers of at most 4 */
		for (size_t k = 0; k < N; k++)
			assert_true(fabs((double)w[k] - (all[c][k] + few[d % FEW][k] / 2.04)) < 4 * 0x1p-23);
		decode(&four, code, w);
		for (size_t k = 0; k < N; k++)
			assert_true(fabs((double)w[k] - (all[c][k] + all[d][k] / 3.45)) < 4 * 0x1p-23);
	}
	/* columns of two neighbouring tiles, with scales of their own */
	code_form(&two)->decode(&two, 0, 6, 3, w, (const uint8_t[]){ 1, 2, 3, 4 }, scale, zero);
	assert_true((double)w[0] == 2 * all[0x201][6] && (double)w[1] == 3 * all[0x201][7] &&
		(double)w[2] == 0.5 * all[0x403][0]);
}

static double distance(const double a[N], const double b[N])
{
	double sum = 0;

	for (size_t k = 0; k < N; k++)
		sum += (a[k] - b[k]) * (a[k] - b[k]);
	return sum;
}

/*
 * Asserts that no point is nearer to x than that of the code. Products of eight numbers of at most 6 |x| err
 * by 16 roundings in float, relative to ‖x‖ ‖g‖ < 6 ‖x‖. Squared distances have twice these products, and
 * two of them are compared.
 */
static void assert_nearest(size_t n, const double point[n][N], const double x[N], size_t code)
{
	const double origin[N] = { 0 }, bound = 4 * 16 * 0x1p-24 * 6 * (sqrt(distance(x, origin)) + 6);
	double least = INFINITY;

	for (size_t c = 0; c < n; c++)
		least = fmin(least, distance(x, point[c]));
	assert_true(distance(x, point[code]) <= least + bound);
}

static void nearest(void **unused)
{
	static const double sizes[] = { 1, 0.2, 4 };
	const struct random_stream stream = random_open(1, "e8p");
	static float x[N][LANES], y[N][LANES];
	uint8_t code[LANES][E8P_BYTES];
	uint64_t k = 0;

	(void)unused;
	for (int bits = 2; bits <= 4; bits++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			const struct format f = get(bits == 2 ? "e8p" : bits == 3 ? "e8p3" : "e8p4");

			CASE("%d bits, size %g", bits, sizes[s]);
			for (size_t i = 0; i < N; i++)
				for (size_t l = 0; l < LANES; l++)
					x[i][l] = l || s ? (float)(random_normal(&stream, k++) * sizes[s]) :
						0;
			e8p_nearest(&f, code, y, (const float (*)[LANES])x);
			for (size_t l = 0; l < LANES; l++) {
				const size_t first = code[l][0] + 256u * code[l][1];
				double v[N], rest[N];
				float w[N];

				for (size_t i = 0; i < N; i++) {
					v[i] = (double)x[i][l];
					rest[i] = (v[i] - all[first][i]) * (bits == 3 ? 2.04 : 3.45);
				}
				assert_nearest(ALL, all, v, first);
				if (bits == 3)
					assert_nearest(FEW, few, rest, code[l][2]);
				if (bits == 4)
					assert_nearest(ALL, all, rest, code[l][2] + 256u * code[l][3]);
				decode(&f, code[l], w);
				for (size_t i = 0; i < N; i++)
					assert_true(w[i] == y[i][l]);
			}
		}
}

/*
 * Mean squared errors of a million numbers of the unit Gaussian, within 1 % of those of an independent
 * program. That is five standard errors with 2 bits, four with 3, and two with 4, of a fixed sample.
 */
static void gaussian_errors(void **unused)
{
	static const double known[] = { 0.0917, 0.0296, 0.0097 };
	const struct random_stream stream = random_open(2, "e8p");
	static float x[N][LANES], y[N][LANES];
	uint8_t code[LANES][E8P_BYTES];
	uint64_t k = 0;

	(void)unused;
	for (int bits = 2; bits <= 4; bits++) {
		const struct format f = get(bits == 2 ? "e8p" : bits == 3 ? "e8p3" : "e8p4");
		const double scale = 1 / e8p_rms(&f);
		double sum = 0, squares = 0, error;
		size_t blocks = 0;

		for (; blocks * N * LANES < 1000000; blocks++) {
			double block = 0;

			for (size_t i = 0; i < N; i++)
				for (size_t l = 0; l < LANES; l++)
					x[i][l] = (float)(random_normal(&stream, k++) / scale);
			e8p_nearest(&f, code, y, (const float (*)[LANES])x);
			for (size_t i = 0; i < N; i++)
				for (size_t l = 0; l < LANES; l++)
					block += pow((double)(x[i][l] - y[i][l]) * scale, 2) / (N * LANES);
			sum += block, squares += block * block;
		}
		sum /= (double)blocks;
		error = sqrt((squares / (double)blocks - sum * sum) / (double)blocks);
		print_message("# %s: %.5f ± %.5f\n", f.name, sum, error);
		assert_true(fabs(sum / known[bits - 2] - 1) < 0.01);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_lattice), cmocka_unit_test(decoded), cmocka_unit_test(nearest),
		cmocka_unit_test(gaussian_errors),
	};

	make_all();
	make_few();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
