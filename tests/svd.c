/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * svd -- low-rank approximations against one-sided Jacobi in double; under second moments H = Xᵀ X against
 * the singular values of E Xᵀ, and against the projection on eigenvectors of H and back
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "jacobi.h"
#include "num/linalg.h"
#include "num/svd.h"

static float *random_floats(size_t n, const char *name)
{
	const struct random_stream stream = random_open(n, name);
	float *x = xalloc(n, sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = (float)(random_uniform(&stream, i) - 0.5);
	return x;
}

/* Σ x xᵀ of tokens, with channels of different sizes. */
static float *moments(size_t n, size_t tokens, float *x)
{
	float *h = xalloc(n * n, sizeof *h);

	for (size_t t = 0; t < tokens; t++)
		for (size_t i = 0; i < n; i++)
			x[t * n + i] *= (float)(1 + i % 5) * (i % 7 == 3 ? 8 : 1);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0;

			for (size_t t = 0; t < tokens; t++)
				sum += (double)x[t * n + i] * (double)x[t * n + j];
			h[i * n + j] = (float)sum;
		}
	return h;
}

static struct svd run(size_t m, size_t n, size_t r, const float *e, const float *h)
{
	const struct svd s = { .m = m, .n = n, .r = r, .e = e, .h = h, .seed = 1, .name = "test",
		.a = xalloc(r * n, sizeof(float)), .b = xalloc(m * r, sizeof(float)) };
	void *workspace = xalloc(svd_workspace(&s), 1);

	assert_true(svd_run(&s, workspace));
	free(workspace);
	return s;
}

/* ‖(E - B A) Xᵀ‖², X = I if it is NULL; d: [m][n] E - B A. */
static double left(const struct svd *s, size_t tokens, const float *x, double *d)
{
	double sum = 0;

	for (size_t i = 0; i < s->m; i++) {
		for (size_t j = 0; j < s->n; j++) {
			d[i * s->n + j] = (double)s->e[i * s->n + j];
			for (size_t k = 0; k < s->r; k++)
				d[i * s->n + j] -= (double)s->b[i * s->r + k] * (double)s->a[k * s->n + j];
			sum += x ? 0 : d[i * s->n + j] * d[i * s->n + j];
		}
		for (size_t t = 0; x && t < tokens; t++) {
			double y = 0;

			for (size_t j = 0; j < s->n; j++)
				y += d[i * s->n + j] * (double)x[t * s->n + j];
			sum += y * y;
		}
	}
	return sum;
}

static void even_norms(const struct svd *s)
{
	for (size_t k = 0; k < s->r; k++) {
		double a = 0, b = 0;

		for (size_t j = 0; j < s->n; j++)
			a += (double)s->a[k * s->n + j] * (double)s->a[k * s->n + j];
		for (size_t i = 0; i < s->m; i++)
			b += (double)s->b[i * s->r + k] * (double)s->b[i * s->r + k];
		assert_true(fabs(a - b) <= 1e-5 * a);
	}
}

/*
 * The space of all columns of E: the error equals that of Jacobi, and B A is U Uᵀ E. A and B are floats with
 * a relative error of 2^-24. So an element of B A is within 2^-23 Σ_k ‖b_k‖ ‖a_k‖ ≤ 2^-23 r ‖E‖. The squared
 * error is within twice that times ‖E‖, and H as a float matrix is within n 2^-24 of Xᵀ X.
 */
static void against_jacobi(size_t m, size_t n, size_t r, size_t tokens)
{
	float *e = random_floats(m * n, "e"), *x = tokens ? random_floats(tokens * n, "x") : NULL;
	float *h = tokens ? moments(n, tokens, x) : NULL;
	const size_t wide = tokens ? tokens : n;
	double *y = xalloc(m * wide, sizeof *y), *u = xalloc(m * m, sizeof *u);
	double *square = xalloc(m, sizeof *square), *d = xalloc(m * n, sizeof *d), best = 0, all = 0;
	struct svd s = run(m, n, r, e, h);

	for (size_t i = 0; i < m; i++)
		for (size_t t = 0; t < wide; t++)
			for (size_t j = 0; j < n; j++)
				y[i * wide + t] += (double)e[i * n + j] *
					(tokens ? (double)x[t * n + j] : (double)(t == j));
	jacobi(m, wide, y, u, square);
	for (size_t i = 0; i < m; i++)
		all += square[i], best += i < r ? 0 : square[i];
	assert_true(fabs(left(&s, tokens, x, d) - best) <= 1e-5 * all);
	even_norms(&s);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double p = 0;

			for (size_t k = 0; k < r; k++)
				for (size_t l = 0; l < m; l++)
					p += u[k * m + i] * u[k * m + l] * (double)e[l * n + j];
			/* the precision of a direction depends on the gap of the eigenvalues at the cut */
			if (r == m || square[r - 1] > 1.05 * square[r])
				assert_true(fabs((double)e[i * n + j] - d[i * n + j] - p) < 1e-4);
		}
	free(e), free(x), free(h), free(y), free(u), free(square), free(d), free(s.a), free(s.b);
}

static void small(void **unused)
{
	const size_t sizes[][3] = { { 2, 4, 1 }, { 4, 2, 1 }, { 2, 4, 2 }, { 1, 5, 1 }, { 5, 1, 1 },
		{ 7, 40, 3 }, { 40, 7, 3 }, { 40, 7, 7 }, { 48, 33, 20 } };

	(void)unused;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t tokens = 0; tokens <= 60; tokens += 60) {
			CASE("sizes[%zu], tokens %zu", i, tokens);
			against_jacobi(sizes[i][0], sizes[i][1], sizes[i][2], tokens);
		}
	against_jacobi(7, 40, 3, 10), against_jacobi(12, 20, 4, 5);	/* H of rank 10 and 5 */
}

/* EoRA as published: E Q Λ^½, its truncated decomposition, back by Λ^-½ Qᵀ. */
static void projection(void **unused)
{
	enum { M = 9, N = 14, R = 3, TOKENS = 40 };
	float *e = random_floats(M * N, "e"), *x = random_floats(TOKENS * N, "x"), *h = moments(N, TOKENS, x);
	double g[N * N], q[N * N], lambda[N], y[M * N] = { 0 }, u[M * M], square[M], back[M * N] = { 0 };
	struct svd s = run(M, N, R, e, h);

	(void)unused;
	for (size_t i = 0; i < N * N; i++)
		g[i] = (double)h[i];
	jacobi(N, N, g, q, lambda);		/* rows of q are eigenvectors, lambda their values squared */
	for (size_t i = 0; i < M; i++)
		for (size_t k = 0; k < N; k++)
			for (size_t j = 0; j < N; j++)
				y[i * N + k] += (double)e[i * N + j] * q[k * N + j] * pow(lambda[k], 0.25);
	jacobi(M, N, y, u, square);		/* y: rows s_k z_kᵀ */
	for (size_t i = 0; i < M * N; i++)
		for (size_t k = 0; k < R; k++)
			for (size_t l = 0; l < N; l++)
				back[i] += u[k * M + i / N] * y[k * N + l] / pow(lambda[l], 0.25) *
					q[l * N + i % N];
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			double p = 0;

			for (size_t k = 0; k < R; k++)
				p += (double)s.b[i * R + k] * (double)s.a[k * N + j];
			assert_true(fabs(p - back[i * N + j]) < 1e-5);
		}
	free(e), free(x), free(h), free(s.a), free(s.b);
}

/* E = C diag(s) Dᵀ of cosines, whose singular values are known. */
static float *cosines(size_t m, size_t n, const double *value)
{
	float *c = xalloc(m * m, sizeof *c), *d = xalloc(n * m, sizeof *d), *e = xalloc(m * n, sizeof *e);
	const double pi = acos(-1);

	for (size_t k = 0; k < m; k++) {
		for (size_t i = 0; i < m; i++)
			c[i * m + k] = (float)(value[k] * sqrt((k ? 2.0 : 1) / (double)m) *
				cos(pi * ((double)i + 0.5) * (double)k / (double)m));
		for (size_t j = 0; j < n; j++)
			d[j * m + k] = (float)(sqrt((k ? 2.0 : 1) / (double)n) *
				cos(pi * ((double)j + 0.5) * (double)k / (double)n));
	}
	linalg_product(m, n, m, n, (float (*)[n])e, (const float (*)[m])c, (const float (*)[m])d, NULL,
		false);
	free(c), free(d);
	return e;
}

/* From a sketch: a spectrum as flat as that of noise, for which a sketch is least precise, and one that
 * falls. */
static void sketched(void **unused)
{
	enum { M = 1030, N = 1100, R = 24 };
	double *value = xalloc(M, sizeof *value), *d = xalloc(M * N, sizeof *d);

	(void)unused;
	for (int falling = 0; falling < 2; falling++) {
		CASE("falling %d", falling);
		double best = 0, got;
		struct svd s;
		float *e;

		for (size_t k = 0; k < M; k++) {
			value[k] = falling ? 1 / (1 + (double)k) : 1 - (double)k / M;
			best += k < R ? 0 : value[k] * value[k];
		}
		e = cosines(M, N, value);
		s = run(M, N, R, e, NULL);
		got = left(&s, 0, NULL, d);
		assert_true(got >= best * (1 - 1e-4) && got <= best * (falling ? 1.0001 : 1.01));
		even_norms(&s);
		free(e), free(s.a), free(s.b);
	}
	free(value), free(d);
}

static void same_bits(void **unused)
{
	const size_t sizes[][3] = { { 90, 130, 9 }, { 130, 90, 9 }, { 1040, 1030, 6 } };
	const int many = threads;

	(void)unused;
	for (size_t i = 0; i < 3; i++) {
		CASE("sizes[%zu]", i);
		const size_t m = sizes[i][0], n = sizes[i][1], r = sizes[i][2];
		float *e = random_floats(m * n, "e"), *x = random_floats(20 * n, "x"), *h = moments(n, 20, x);
		struct svd s, again;

		threads = 1, s = run(m, n, r, e, h);
		threads = 3, again = run(m, n, r, e, h);
		assert_memory_equal(s.a, again.a, r * n * sizeof(float));
		assert_memory_equal(s.b, again.b, m * r * sizeof(float));
		free(e), free(x), free(h), free(s.a), free(s.b), free(again.a), free(again.b);
	}
	threads = many;
}

static void borders(void **unused)
{
	(void)unused;
	for (int tall = 0; tall < 2; tall++) {
		CASE("tall %d", tall);
		float *e = random_floats(6 * 8, "e"), a[16], b[16], zero[8 * 8] = { 0 };
		struct svd s = { .m = tall ? 8 : 6, .n = tall ? 6 : 8, .r = 2, .e = zero, .name = "test",
			.a = a, .b = b };
		void *workspace = xalloc(svd_workspace(&s), 1);

		assert_true(svd_run(&s, workspace));
		for (size_t i = 0; i < 2 * s.n; i++)
			assert_true(a[i] == 0);
		s.e = e, s.h = zero;
		assert_true(svd_run(&s, workspace));
		for (size_t i = 0; i < 2 * s.n; i++)
			assert_true(isfinite(a[i]));
		for (size_t i = 0; i < 2 * s.m; i++)
			assert_true(isfinite(b[i]));
		e[17] = NAN;
		assert_false(svd_run(&s, workspace));
		e[17] = INFINITY, s.h = NULL;
		assert_false(svd_run(&s, workspace));
		free(e), free(workspace);
	}
}

/* y = x w and x wᵀ with parts that do not fill a tile. */
static void thin(void **unused)
{
	enum { M = 3, N = 70, K = 530 };
	float *w = random_floats(K * N, "w"), *x = random_floats(M * K, "x");
	double wide[M * K], y[2][M * N];

	(void)unused;
	for (size_t i = 0; i < M * K; i++)
		wide[i] = (double)x[i];
	linalg_product_thin(M, N, K, (double (*)[N])y[0], (const double (*)[K])wide, w, false);
	linalg_product_thin(M, N, K, (double (*)[N])y[1], (const double (*)[K])wide, w, true);
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < M; i++)
			for (size_t j = 0; j < N; j++) {
				double sum = 0;

				for (size_t k = 0; k < K; k++)
					sum += wide[i * K + k] * (double)w[t ? j * K + k : k * N + j];
				assert_true(fabs(sum - y[t][i * N + j]) < 1e-12);
			}
	free(w), free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small), cmocka_unit_test(projection), cmocka_unit_test(sketched),
		cmocka_unit_test(same_bits), cmocka_unit_test(borders), cmocka_unit_test(thin),
	};

	linalg_init();
	threads_init(0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
