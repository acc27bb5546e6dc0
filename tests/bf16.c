/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bf16 -- products and Hessians by both paths, against sums in double, within the bound of num/bf16.h */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "amx.h"
#include "base/thread.h"
#include "case.h"
#include "num/bf16.h"
#include "num/half.h"
#include "num/linalg.h"

static uint32_t seed = 1;

static float draw(void)
{
	seed = seed * 1664525 + 1013904223;
	return ldexpf((float)(int32_t)seed, -30);
}

/* n numbers in an allocation of exactly their size, at an odd multiple of 2 bytes: sanitizers detect a read
 * beyond it. */
static uint16_t *numbers(size_t n, float *wide[])
{
	uint16_t *x = malloc((n + 1) * sizeof *x);

	*wide = malloc(n * sizeof **wide);
	for (size_t i = 0; i < n; i++)
		(*wide)[i] = draw();
	half_narrow(n, x + 1, *wide, HALF_BF16);
	half_widen(n, *wide, x + 1, HALF_BF16);
	return x;
}

static double bound(size_t k, double size)
{
	return 2 * (double)(k + 2) * 0x1p-24 * size + 2 * (double)k * 0x1p-126 * 5;
}

static void product(size_t m, size_t n, size_t k, bool add, bool with_bias)
{
	size_t stride = n + 3;
	float *wx, *ww, *bias = malloc(n * sizeof *bias);
	float *y = malloc(m * stride * sizeof *y), *start = malloc(m * stride * sizeof *y);
	uint16_t *x = numbers(m * k, &wx), *w = numbers(n * k, &ww);
	uint32_t *packed = malloc(bf16_packed(n, k) * sizeof *packed);

	for (size_t j = 0; j < n; j++)
		bias[j] = draw();
	for (size_t i = 0; i < m * stride; i++)
		y[i] = start[i] = draw();
	bf16_pack(n, k, packed, (const uint16_t (*)[k])(w + 1));
	bf16_product(cpu_bf16, m, n, k, stride, (float (*)[stride])y, (const uint16_t (*)[k])(x + 1), packed,
		with_bias ? bias : NULL, add);
	for (size_t i = 0; i < m; i++) {
		for (size_t j = 0; j < n; j++) {
			double b = with_bias ? (double)bias[j] : 0;
			double c = add ? (double)start[i * stride + j] : 0;
			double expected = b + c, size = fabs(b) + fabs(c);

			for (size_t p = 0; p < k; p++) {
				expected += (double)wx[i * k + p] * (double)ww[j * k + p];
				size += fabs((double)wx[i * k + p] * (double)ww[j * k + p]);
			}
			assert_true(fabs((double)y[i * stride + j] - expected) <= bound(k, size));
		}
		assert_memory_equal(y + i * stride + n, start + i * stride + n, 3 * sizeof *y);
	}
	free(x), free(w), free(wx), free(ww), free(bias), free(y), free(start), free(packed);
}

static const size_t sizes[][3] = {
	{ 1, 1, 1 }, { 1, 1, 2 }, { 1, 33, 3 }, { 9, 1, 5 }, { 7, 31, 64 }, { 8, 32, 511 },
	{ 13, 47, 512 }, { 5, 16, 513 }, { 17, 65, 1025 }, { 257, 513, 31 }, { 300, 40, 2 }, { 2, 1030, 7 },
};

static void products(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int how = 0; how < 4; how++) {
			CASE("sizes[%zu], how %d", i, how);
			product(sizes[i][0], sizes[i][1], sizes[i][2], how & 1, how & 2);
		}
}

static void gram(size_t blocks, size_t m, size_t n)
{
	float *wx;
	uint16_t *x = numbers(blocks * m * n, &wx);
	double *h = malloc(n * n * sizeof *h);
	void *workspace;

	for (size_t i = 0; i < n * n; i++)
		h[i] = (double)i;
	workspace = aligned_alloc(64, bf16_gram_workspace(m, n) + 64);
	bf16_gram(blocks, m, n, (double (*)[n])h, (const uint16_t (*)[m][n])(x + 1), workspace);
	free(workspace);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double expected = (double)(i * n + j), size = 0;

			for (size_t r = 0; j >= i && r < blocks * m; r++) {
				expected += (double)wx[r * n + i] * (double)wx[r * n + j];
				size += fabs((double)wx[r * n + i] * (double)wx[r * n + j]);
			}
			if (j >= i)
				assert_true(fabs(h[i * n + j] - expected) <=
					bound(m, size) + 0x1p-50 * fabs(expected));
			else
				assert_true(h[i * n + j] == expected);
		}
	free(x), free(wx), free(h);
}

static void grams(void **unused)
{
	(void)unused;
	gram(1, 1, 1);
	gram(2, 3, 1);
	gram(3, 1, 40);
	gram(2, 7, 33);
	gram(1, 513, 65);
	gram(2, 1030, 31);
	gram(2, 5, 400);
	gram(1, 2, 800);
}

static void same_bits(void **unused)
{
	enum { M = 600, N = 700, K = 513 };
	float *wx, *ww;
	uint16_t *x = numbers(M * K, &wx), *w = numbers(N * K, &ww);
	uint32_t *packed = malloc(bf16_packed(N, K) * sizeof *packed);
	float *y[2];
	double *h[2];
	void *workspace = aligned_alloc(64, bf16_gram_workspace(M / 2, K) + 64);

	(void)unused;
	for (int i = 0; i < 2; i++) {
		threads = i + 1;
		y[i] = malloc(M * N * sizeof *y[i]);
		h[i] = calloc(K * K, sizeof *h[i]);
		bf16_pack(N, K, packed, (const uint16_t (*)[K])(w + 1));
		bf16_product(cpu_bf16, M, N, K, N, (float (*)[N])y[i], (const uint16_t (*)[K])(x + 1), packed,
			NULL, false);
		bf16_gram(2, M / 2, K, (double (*)[K])h[i], (const uint16_t (*)[M / 2][K])(x + 1), workspace);
	}
	assert_memory_equal(y[0], y[1], M * N * sizeof *y[0]);
	assert_memory_equal(h[0], h[1], K * K * sizeof *h[0]);
	threads = 1;
	free(x), free(w), free(wx), free(ww), free(packed), free(workspace);
	for (int i = 0; i < 2; i++)
		free(y[i]), free(h[i]);
}

static enum cpu wide;			/* the features of the processor */
static bool pairs;

static int by_blas(void **unused)
{
	(void)unused;
	cpu = CPU_PLAIN;
	cpu_bf16 = false;
	return 0;
}

static int by_floats(void **unused)
{
	(void)unused;
	cpu = wide;
	cpu_bf16 = false;
	return 0;
}

static int by_pairs(void **unused)
{
	(void)unused;
	cpu = wide;
	cpu_bf16 = pairs;
	return 0;
}

/* Hessians only; tests/tile.c tests products by tiles. */
static void grams_by_tiles(void **unused)
{
	if (!amx_on())
		return;
	grams(unused);
	same_bits(unused);
	cpu_amx = false;
}

#define EACH(test) \
	{ #test " by BLAS", test, by_blas, NULL, NULL }, \
	{ #test " by fused products of floats", test, by_floats, NULL, NULL }, \
	{ #test " by dot products of pairs", test, by_pairs, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = { EACH(products), EACH(grams), EACH(same_bits),
		cmocka_unit_test(grams_by_tiles) };

	cpu_amx = false;
	wide = cpu;
#ifdef __x86_64__
	pairs = cpu == CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
#endif
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (wide < CPU_AVX512)
		printf("# SKIP fused products of floats: this processor, or PTQ_CPU, has no AVX-512\n");
	if (!pairs)
		printf("# SKIP dot products of pairs: this processor, or PTQ_CPU, has no AVX512_BF16\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
