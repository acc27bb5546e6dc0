/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linalg -- products, Hessians, norms against sums in double, within bounds of float sums, for any -j; errors
 * of a BLAS that multiplies wrongly
 */
#include <cblas.h>
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/thread.h"
#include "case.h"
#include "num/linalg.h"
#include "num/trial.h"
#include "num/vector.h"

static uint32_t seed = 1;

static float *numbers(size_t n)
{
	float *x = malloc(n * sizeof *x);

	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = ldexpf((float)(int32_t)seed, -30);
	}
	return x;
}

/* A sum of k products in float, in any order, with or without fused products, and one further addition. */
static double bound(size_t k, double size)
{
	return 2 * (double)(k + 2) * 0x1p-24 * size;
}

static void product(size_t m, size_t n, size_t k, bool add, bool with_bias)
{
	size_t stride = n + 3;
	float *x = numbers(m * k), *w = numbers(n * k), *bias = numbers(n), *start = numbers(m * stride),
		*y = numbers(m * stride);

	memcpy(y, start, m * stride * sizeof *y);
	linalg_product(m, n, k, stride, (float (*)[stride])y, (const float (*)[k])x, (const float (*)[k])w,
		with_bias ? bias : NULL, add);
	for (size_t i = 0; i < m; i++) {
		for (size_t j = 0; j < n; j++) {
			double b = with_bias ? (double)bias[j] : 0,
				c = add ? (double)start[i * stride + j] : 0;
			double want = b + c, size = fabs(b) + fabs(c);

			for (size_t p = 0; p < k; p++) {
				want += (double)x[i * k + p] * (double)w[j * k + p];
				size += fabs((double)x[i * k + p] * (double)w[j * k + p]);
			}
			assert_true(fabs((double)y[i * stride + j] - want) <= bound(k, size));
		}
		assert_memory_equal(y + i * stride + n, start + i * stride + n, 3 * sizeof *y);
	}
	free(x), free(w), free(bias), free(start), free(y);
}

static void products(void **unused)
{
	static const size_t size[][3] = { { 1, 1, 1 }, { 1, 400, 3 }, { 257, 1, 5 }, { 9, 385, 700 },
		{ 300, 50, 2 }, { 513, 390, 7 }, { 40, 1100, 9 }, { 513, 1100, 3 } };

	(void)unused;
	for (size_t i = 0; i < sizeof size / sizeof *size; i++)
		for (int how = 0; how < 4; how++) {
			CASE("size[%zu], how %d", i, how);
			product(size[i][0], size[i][1], size[i][2], how & 1, how & 2);
		}
}

static void gram(size_t blocks, size_t m, size_t n)
{
	float *x = numbers(blocks * m * n), *y = malloc(n * n * sizeof *y);
	double *h = malloc(n * n * sizeof *h);

	for (size_t i = 0; i < n * n; i++)
		h[i] = (double)i;
	linalg_gram(blocks, m, n, (double (*)[n])h, (const float (*)[m][n])x);
	linalg_mirror(n, (float (*)[n])y, (const double (*)[n])h);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double want = (double)(i * n + j), size = 0;

			for (size_t r = 0; j >= i && r < blocks * m; r++) {
				want += (double)x[r * n + i] * (double)x[r * n + j];
				size += fabs((double)x[r * n + i] * (double)x[r * n + j]);
			}
			assert_true(fabs(h[i * n + j] - want) <=
				(j >= i ? bound(m, size) + 0x1p-50 * fabs(want) : 0));
			assert_true(y[i * n + j] == (float)(j >= i ? h[i * n + j] : h[j * n + i]));
		}
	free(x), free(y), free(h);
}

/* Beyond a tile of columns, beyond the rows of one product, and both ends of it. */
static void grams(void **unused)
{
	(void)unused;
	gram(1, 1, 1);
	gram(3, 2, 40);
	gram(2, 641, 33);
	gram(1, 1300, 17);
	gram(2, 5, 641);
	gram(1, 3, 1290);
}

/* A window's product loses precision in float once: many windows add up as if each were alone. */
static void windows_are_summed_in_double(void **unused)
{
	enum { WINDOWS = 4096, N = 3 };
	static float x[WINDOWS][1][N];
	double h[N][N] = { { 0x1p30 } };

	(void)unused;
	for (size_t i = 0; i < WINDOWS; i++)
		x[i][0][0] = 1;
	linalg_gram(WINDOWS, 1, N, h, (const float (*)[1][N])x);
	assert_true(h[0][0] == 0x1p30 + WINDOWS && h[0][1] == 0 && h[2][2] == 0);
}

static void same_bits(void **unused)
{
	enum { M = 300, N = 600, K = 700 };
	float *x = numbers(M * K), *w = numbers(N * K), *y[2];
	double *h[2];

	(void)unused;
	for (int i = 0; i < 2; i++) {
		threads = i + 1;
		y[i] = malloc(M * N * sizeof *y[i]);
		h[i] = calloc(K * K, sizeof *h[i]);
		linalg_product(M, N, K, N, (float (*)[N])y[i], (const float (*)[K])x, (const float (*)[K])w,
			NULL, false);
		linalg_gram(2, M / 2, K, (double (*)[K])h[i], (const float (*)[M / 2][K])x);
	}
	threads = 1;
	assert_memory_equal(y[0], y[1], M * N * sizeof *y[0]);
	assert_memory_equal(h[0], h[1], K * K * sizeof *h[0]);
	free(x), free(w);
	for (int i = 0; i < 2; i++)
		free(y[i]), free(h[i]);
}

static void magnitudes(void **unused)
{
	enum { N = 37 };
	float x[N], max[N] = { 0 };
	double sum[N] = { 0 }, fourth[N] = { 0 };

	(void)unused;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < N; i++)
			x[i] = (float)(i - 18) * (pass ? -0.5f : 1);
		linalg_magnitude(N, sum, fourth, max, x);
	}
	for (int i = 0; i < N; i++)
		assert_true(sum[i] == 1.5 * abs(i - 18) && max[i] == (float)abs(i - 18) &&
			fourth[i] == (1 + 1.0 / 16) * pow(i - 18, 4));
	x[0] = NAN;
	linalg_magnitude(1, sum, fourth, max, x);
	assert_true(isnan(sum[0]) && isnan(fourth[0]) && max[0] == 18);
}

/* Sums over n numbers in float, then a root, a division and two products. */
static void norms(void **unused)
{
	enum { M = 5, N = 531 };
	float *x = numbers(M * N), *gain = numbers(N), *shift = numbers(N), *y = numbers(M * N);

	(void)unused;
	for (int how = 0; how < 4; how++) {
		CASE("how %d", how);
		const float *with = how & 1 ? shift : NULL;

		(how & 2 ? vector_layernorm : vector_rmsnorm)(M, N, (float (*)[N])y, (const float (*)[N])x,
			gain, with, 1e-5);
		for (size_t i = 0; i < M; i++) {
			const float *row = x + i * N;
			double mean = 0, square = 0;

			for (size_t j = 0; how & 2 && j < N; j++)
				mean += (double)row[j] / N;
			for (size_t j = 0; j < N; j++)
				square += ((double)row[j] - mean) * ((double)row[j] - mean) / N;
			for (size_t j = 0; j < N; j++) {
				double want = ((double)row[j] - mean) / sqrt(square + 1e-5) *
					(double)gain[j] + (with ? (double)shift[j] : 0);

				/* |x - mean| ≤ 4, the root ≥ 1, gain and shift ≤ 2: |y| ≤ 10 */
				assert_true(fabs((double)y[i * N + j] - want) <=
					(N / 16 + 24) * 0x1p-24 * 10);
			}
		}
	}
	free(x), free(gain), free(shift), free(y);
}

/* Each exponential alone, the sums of many with a tail, and the same bits with every kind of kernels. */
static void exponentials_in_double(void **unused)
{
	enum { N = 531 };
	const enum cpu kind = cpu;
	float *x = numbers(N), *y = numbers(N), zero = 0;
	double sum[3], first[3] = { 0 }, want[3] = { 0 };

	(void)unused;
	for (int i = 0; i < 70800; i++) {
		CASE("i %d", i);
		float u = -0.01f * (float)i, v = -700 - u;

		vector_sum_exp_pair(1, sum, &u, 0, &v, 0);
		assert_true(fabs(sum[0] / exp((double)u) - 1) <= 0x1p-51 &&
			fabs(sum[1] / exp((double)v) - 1) <= (v > -708 ? 0x1p-51 : 1e-3));
		assert_true(sum[2] == sum[0] * ((double)u - (double)v));
		if (v > 0)
			break;
	}
	vector_sum_exp_pair(1, sum, &zero, 1e4f, &(float){ -INFINITY }, 0);
	/* bounded from below, never zero */
	assert_true(sum[0] > 0 && sum[0] < 1e-307 && sum[1] > 0 && sum[1] < 1e-307);
	for (size_t i = 0; i < N; i++) {
		double e = exp((double)x[i] - 2);

		want[0] += e, want[1] += exp((double)y[i] - 3), want[2] += e * ((double)x[i] - (double)y[i]);
	}
	for (cpu = CPU_PLAIN; cpu <= cpu_widest; cpu++) {
		CASE("cpu %d", (int)cpu);
		vector_sum_exp_pair(N, sum, x, 2, y, 3);
		for (int k = 0; k < 3; k++)
			assert_true(fabs(sum[k] - want[k]) <= N * 0x1p-52 * (k < 2 ? want[k] : 4 * want[0]));
		if (cpu > CPU_PLAIN)
			assert_memory_equal(sum, first, sizeof sum);
		memcpy(first, sum, sizeof sum);
	}
	cpu = kind;
	free(x), free(y);
}

/* ---- a BLAS that multiplies wrongly: its calls go through the wrappers here ---- */

static const char *wrong;		/* the call that multiplies wrongly */
static int min_wrong;			/* if its largest extent is at least this */

/* The functions of the library. */
#define OWN(call) ((__typeof__(&cblas_##call))dlsym(RTLD_NEXT, "cblas_" #call))
#define SPOIL(call, max, y) \
	if (wrong && !strcmp(wrong, #call) && (max) >= min_wrong) \
		(y) += 1

void cblas_sgemm(CBLAS_ORDER o, CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, blasint m, blasint n, blasint k,
	float alpha, const float *x, blasint ldx, const float *w, blasint ldw, float beta, float *y,
	blasint ldy)
{
	OWN(sgemm)(o, a, b, m, n, k, alpha, x, ldx, w, ldw, beta, y, ldy);
	SPOIL(sgemm, k, y[(m - 1) * ldy + n - 1]);
}

void cblas_dgemm(CBLAS_ORDER o, CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, blasint m, blasint n, blasint k,
	double alpha, const double *x, blasint ldx, const double *w, blasint ldw, double beta, double *y,
	blasint ldy)
{
	OWN(dgemm)(o, a, b, m, n, k, alpha, x, ldx, w, ldw, beta, y, ldy);
	SPOIL(dgemm, k, y[(m - 1) * ldy + n - 1]);
}

void cblas_ssyrk(CBLAS_ORDER o, CBLAS_UPLO u, CBLAS_TRANSPOSE t, blasint n, blasint k, float alpha,
	const float *x, blasint ldx, float beta, float *y, blasint ldy)
{
	OWN(ssyrk)(o, u, t, n, k, alpha, x, ldx, beta, y, ldy);
	SPOIL(ssyrk, k, y[(n - 1) * (ldy + 1)]);
}

void cblas_strmm(CBLAS_ORDER o, CBLAS_SIDE s, CBLAS_UPLO u, CBLAS_TRANSPOSE t, CBLAS_DIAG d, blasint m,
	blasint n, float alpha, const float *l, blasint ldl, float *y, blasint ldy)
{
	OWN(strmm)(o, s, u, t, d, m, n, alpha, l, ldl, y, ldy);
	SPOIL(strmm, m, y[ldy]);
}

void cblas_strsm(CBLAS_ORDER o, CBLAS_SIDE s, CBLAS_UPLO u, CBLAS_TRANSPOSE t, CBLAS_DIAG d, blasint m,
	blasint n, float alpha, const float *l, blasint ldl, float *y, blasint ldy)
{
	OWN(strsm)(o, s, u, t, d, m, n, alpha, l, ldl, y, ldy);
	SPOIL(strsm, m, y[ldy]);
}

void cblas_dtrsm(CBLAS_ORDER o, CBLAS_SIDE s, CBLAS_UPLO u, CBLAS_TRANSPOSE t, CBLAS_DIAG d, blasint m,
	blasint n, double alpha, const double *l, blasint ldl, double *y, blasint ldy)
{
	OWN(dtrsm)(o, s, u, t, d, m, n, alpha, l, ldl, y, ldy);
	SPOIL(dtrsm, m, y[ldy]);
}

void cblas_dgemv(CBLAS_ORDER o, CBLAS_TRANSPOSE t, blasint m, blasint n, double alpha, const double *a,
	blasint lda, const double *x, blasint stepx, double beta, double *y, blasint stepy)
{
	OWN(dgemv)(o, t, m, n, alpha, a, lda, x, stepx, beta, y, stepy);
	SPOIL(dgemv, m, y[0]);
}

static void wrong_products_are_found(void **unused)
{
	static const char *const calls[] = { "sgemm", "dgemm", "ssyrk", "strmm", "strsm", "dtrsm", "dgemv" };

	(void)unused;
	assert_null(trial_failed());
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		CASE("%s", calls[i]);
		wrong = calls[i];
		assert_string_equal(trial_failed(), calls[i]);
	}
	for (size_t i = 0; i < 2; i++) {	/* only those that are packed */
		CASE("%s", calls[i]);
		wrong = calls[i], min_wrong = 100;
		assert_string_equal(trial_failed(), calls[i]);
	}
	wrong = NULL, min_wrong = 0;
}

/* A tool ends with a message that names the remedy. */
static void wrong_products_end_the_tool(void **unused)
{
	int fd[2], status;
	char said[256] = "", wanted[256];
	pid_t child;

	(void)unused;
	assert_int_equal(pipe(fd), 0);
	child = fork();
	if (!child) {
		dup2(fd[1], 2);
		wrong = "ssyrk";
		linalg_init();
		_exit(0);
	}
	close(fd[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(read(fd[0], said, sizeof said - 1) > 0);
	close(fd[0]);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	snprintf(wanted, sizeof wanted, "OpenBLAS multiplies wrongly on this processor: ssyrk of its kernels "
		"%s; set OPENBLAS_CORETYPE=", openblas_get_corename());
	assert_non_null(strstr(said, wanted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(grams), cmocka_unit_test(windows_are_summed_in_double),
		cmocka_unit_test(same_bits), cmocka_unit_test(magnitudes), cmocka_unit_test(norms),
		cmocka_unit_test(exponentials_in_double), cmocka_unit_test(wrong_products_are_found),
		cmocka_unit_test(wrong_products_end_the_tool),
	};

	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
