/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stats -- statistics of a weight and its distance from another weight, against their formulas in long
 * double */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/thread.h"
#include "case.h"
#include "num/linalg.h"
#include "quant/member.h"
#include "quant/stats.h"

enum { M = 131, N = 77 };	/* two tiles of rows and three more rows; not a multiple of a vector */

static float w[M][N], v[M][N], h[N][N];

static struct linear plain(float *x, size_t m, size_t n)
{
	return (struct linear){ .out = m, .in = n, .weight = x, .weight_type = HALF_NONE };
}

/* Not Gaussian, not centred, one channel all zero, a few outliers. */
static int fill(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			w[i][j] = i == 5 ? 0 : (float)(sin((double)(i * N + j)) * (1 + (double)(i % 7)) +
				0.3 + (j == i % 50 ? 9 : 0));
			v[i][j] = w[i][j] + (float)(0.01 * cos((double)(3 * i + 5 * j)));
		}
	for (size_t k = 0; k < 3 * N; k++)	/* Σ x xᵀ of inputs with outliers */
		for (size_t i = 0; i < N; i++)
			for (size_t j = 0; j < N; j++)
				h[i][j] += (float)(sin((double)(k * i + 1)) * sin((double)(k * j + 1)) * (i ==
					3 ? 10 : 1) * (j == 3 ? 10 : 1));
	return 0;
}

static void close_to(double got, long double want, double relative)
{
	if (!(fabs(got - (double)want) <= relative * fabs((double)want)))
		fail_msg("%.17g, expected %.17g", got, (double)want);
}

static void of_weight(size_t m, size_t n, float x[m][n])
{
	struct linear l = plain(x[0], m, n);
	struct weight_stats s;
	void *work = aligned_alloc(64, (stats_workspace(m, n) + 63) & ~(size_t)63);
	long double mean = 0, m2 = 0, m4 = 0, squares = 0, max = 0, sigma = 0, low = INFINITY, high = 0;
	size_t live = 0;

	for (size_t i = 0; i < m; i++) {
		long double row = 0, row2 = 0, row_max = 0;

		for (size_t j = 0; j < n; j++) {
			row += (long double)x[i][j] / n;
			squares += (long double)x[i][j] * x[i][j];
			row_max = fmaxl(row_max, fabsf(x[i][j]));
		}
		for (size_t j = 0; j < n; j++)
			row2 += (x[i][j] - row) * (x[i][j] - row) / n;
		mean += row / m;
		max = fmaxl(max, row_max);
		if (row_max > 0) {
			live++;
			sigma += sqrtl(row2) / row_max;
			low = fminl(low, sqrtl(row2) / row_max);
			high = fmaxl(high, sqrtl(row2) / row_max);
		}
	}
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			m2 += powl(x[i][j] - mean, 2) / (m * n);
			m4 += powl(x[i][j] - mean, 4) / (m * n);
		}
	stats_weight(&l, &s, work);
	/* Sums of m·n positive numbers in double: an error of at most (m·n)·2⁻⁵³, and a few further
	 * operations. */
	close_to(s.sigma, sigma / live, 1e-11);
	close_to(s.sigma_min, low, 1e-11);
	close_to(s.sigma_max, high, 1e-11);
	close_to(s.deviation, sqrtl(m2), 1e-11);
	close_to(s.kurtosis, m4 / (m2 * m2), 1e-11);
	close_to(s.absmax, max, 0);
	close_to(s.incoherence, max * sqrtl((long double)m * n / squares), 1e-11);
	free(work);
}

static void weights(void **unused)
{
	float one[1][4] = { { -1, 1, -1, 1 } }, column[3][1] = { { 2 }, { -3 }, { 5 } };

	(void)unused;
	of_weight(M, N, w);
	of_weight(64, N, w);
	of_weight(1, 4, one);		/* two values: kurtosis 1, sigma 1, incoherence 1 */
	of_weight(3, 1, column);
}

static void degenerate(void **unused)
{
	float same[3][5];
	struct linear l = plain(same[0], 3, 5);
	struct weight_stats s;
	struct weight_difference d;
	void *work = malloc(stats_workspace(3, 5));

	(void)unused;
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 5; j++)
			same[i][j] = 0.1f;
	stats_weight(&l, &s, work);
	assert_true(s.deviation == 0 && s.sigma == 0 && s.sigma_max == 0 && isnan(s.kurtosis) &&
		fabs(s.incoherence - 1) < 1e-15);
	assert_true(stats_difference(&l, &l, NULL, &d, work));
	assert_true(d.mse == 0 && d.error == 0 && d.largest == 0 && isinf(d.sqnr) && d.sqnr > 0 &&
		isnan(d.output));
	memset(same, 0, sizeof same);
	stats_weight(&l, &s, work);
	assert_true(isnan(s.sigma) && isnan(s.sigma_min) && isnan(s.sigma_max) && isnan(s.incoherence) &&
		s.absmax == 0);
	assert_true(stats_difference(&l, &l, NULL, &d, work));
	assert_true(d.mse == 0 && isnan(d.error) && isnan(d.sqnr));
	free(work);
}

static void differences(void **unused)
{
	struct linear a = plain(w[0], M, N), b = plain(v[0], M, N);
	struct weight_difference d;
	void *work = malloc(stats_workspace(M, N));
	long double e2 = 0, w2 = 0, max = 0, ehe = 0, whw = 0, size = 0, w_size = 0;

	(void)unused;
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			long double e = (long double)w[i][j] - v[i][j];

			e2 += e * e;
			w2 += (long double)w[i][j] * w[i][j];
			max = fmaxl(max, fabsl(e));
			for (size_t k = 0; k < N; k++) {
				long double ek = (long double)w[i][k] - v[i][k];

				ehe += e * h[j][k] * ek;
				whw += (long double)w[i][j] * h[j][k] * w[i][k];
				size += fabsl(e * h[j][k] * ek);
				w_size += fabsl((long double)w[i][j] * h[j][k] * w[i][k]);
			}
		}
	assert_true(stats_difference(&a, &b, h[0], &d, work));
	close_to(d.mse, e2 / (M * N), 1e-11);
	close_to(d.error, e2 / w2, 1e-11);
	close_to(d.sqnr, -10 * log10l(e2 / w2), 1e-11);
	close_to(d.largest, max, 0);
	/* Float products: N·2⁻²⁴ of the sum of magnitudes; and E itself is rounded, twice. */
	close_to(d.output, ehe / whw, (N + 4) * 0x1p-24 * (double)(size / ehe + w_size / whw));
	assert_true(stats_difference(&a, &b, NULL, &d, work));
	assert_true(isnan(d.output));
	h[2][3] = NAN;
	assert_false(stats_difference(&a, &b, h[0], &d, work));
	h[2][3] = 0;
	free(work);
}

static void any_number_of_threads(void **unused)
{
	struct linear a = plain(w[0], M, N), b = plain(v[0], M, N);
	struct weight_stats s[2];
	struct weight_difference d[2];

	(void)unused;
	memset(s, 0, sizeof s), memset(d, 0, sizeof d);
	for (int i = 0; i < 2; i++) {
		CASE("%d threads", i ? 3 : 1);
		void *work;

		threads = i ? 3 : 1;
		work = malloc(stats_workspace(M, N));
		stats_weight(&a, &s[i], work);
		assert_true(stats_difference(&a, &b, h[0], &d[i], work));
		free(work);
	}
	threads = 1;
	assert_memory_equal(&s[0], &s[1], sizeof *s);
	assert_memory_equal(&d[0], &d[1], sizeof *d);
}

static void bits(void **unused)
{
	static const int32_t index[256];
	static const uint8_t codes[1], zero[1];
	static const float scale[1];
	struct linear l = { .out = 64, .in = 256, .weight = w, .weight_type = HALF_BF16 };

	(void)unused;
	assert_true(member_bits(members, &l) == 16);
	l.weight_type = HALF_NONE;
	assert_true(member_bits(members, &l) == 32);
	l = (struct linear){ .out = 64, .in = 256, .codes = codes, .scale = scale, .zero = zero, .group = 128,
		.groups = 2 };
	assert_true(format_parse(&l.storage, "uint4"));
	assert_true(member_bits(members, &l) == 4 + (32 + 4) / 128.);
	assert_true(format_parse(&l.compute, "e4m3fn"));
	l.scale8 = scale;
	l.scales8 = 1;
	assert_true(member_bits(members, &l) == 4 + (32 + 4) / 128. + 32. / (64 * 256));
	l.scales8 = 64;
	assert_true(member_bits(members, &l) == 4 + (32 + 4) / 128. + 32. / 256);
	l.group_index = index;		/* one of two groups: one bit per column */
	assert_true(member_bits(members, &l) == 4 + (32 + 4) / 128. + 32. / 256 + 1. / 64);
	l = (struct linear){ .out = 64, .in = 256, .codes = codes, .scale = scale, .group = 0, .groups = 1 };
	assert_true(format_parse(&l.storage, "int3"));
	assert_true(member_bits(members, &l) == 3 + 32 / 256.);
	l.group = -1;
	assert_true(member_bits(members, &l) == 3 + 32. / (64 * 256));

	l = (struct linear){ .out = 64, .in = 256, .codes = codes, .scale = scale, .group = 32, .groups = 8 };
	assert_true(format_parse(&l.storage, "mxfp4"));	/* scales count with the width of their type */
	assert_true(member_bits(members, &l) == 4.25);
	l.group = 16, l.groups = 16, l.scale_tensor = scale;
	assert_true(format_parse(&l.storage, "nvfp4"));
	assert_true(member_bits(members, &l) == 4.5 + 32. / (64 * 256));
	assert_true(format_parse(&l.storage, "int4") && format_scales(&l.storage, SCALE_F16));
	l.scale_tensor = NULL;
	assert_true(member_bits(members, &l) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights), cmocka_unit_test(degenerate), cmocka_unit_test(differences),
		cmocka_unit_test(any_number_of_threads), cmocka_unit_test(bits),
	};

	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, fill, NULL);
}
