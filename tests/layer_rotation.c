/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer_rotation -- rotated weights and Hessians against products with dense matrices in double; the rotated
 * layer is the layer; signs
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "model/dense.h"
#include "num/hadamard.h"
#include "transform/layer_rotation.h"

enum { MOST = 96 };
struct square { double x[MOST][MOST]; };

/* R = diag(signs) H/√b as a matrix of n x n. */
static struct square dense(size_t n, const struct linear_rotation *r)
{
	struct square y = { 0 };
	struct hadamard h;
	void *memory;

	assert_true(hadamard_choose(&h, n, r->hadamard));
	memory = xalloc(hadamard_bytes(&h), 1);
	hadamard_build(&h, memory);
	for (size_t i = 0; i < n; i++)
		y.x[i][i] = r->signs[i];
	hadamard_product_double(&h, false, n, MOST, y.x);
	free(memory);
	return y;
}

/* aᵀ w b of an m x n matrix. */
static struct square between(size_t m, size_t n, const struct square *a, const struct square *w,
	const struct square *b)
{
	struct square half = { 0 }, y = { 0 };

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			for (size_t k = 0; k < m; k++)
				half.x[i][j] += a->x[k][i] * w->x[k][j];
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			for (size_t k = 0; k < n; k++)
				y.x[i][j] += half.x[i][k] * b->x[k][j];
	return y;
}

/* tr(W H Wᵀ) */
static double energy(size_t m, size_t n, const struct square *w, const struct square *h)
{
	double sum = 0;

	for (size_t o = 0; o < m; o++)
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				sum += w->x[o][i] * h->x[i][j] * w->x[o][j];
	return sum;
}

/* Each number errs by less than 40 roundings of numbers that are at most the norm of a row or column. */
static void assert_near(size_t m, size_t n, const float *x, const struct square *want)
{
	double square = 0;

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			square += want->x[i][j] * want->x[i][j];
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			assert_true(fabs((double)x[i * n + j] - want->x[i][j]) < 40 * 0x1p-24 * sqrt(square));
}

static struct square read_square(size_t m, size_t n, const float *x)
{
	struct square y = { 0 };

	for (size_t i = 0; i < m * n; i++)
		y.x[i / n][i % n] = (double)x[i];
	return y;
}

static void rotated(void **unused)
{
	static const size_t extents[][2] = { { 32, 64 }, { 44, 20 }, { 96, 90 }, { 15, 12 } };
	const struct random_stream stream = random_open(1, "rotation");

	(void)unused;
	for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
		const size_t m = extents[e][0], n = extents[e][1];
		struct square w = { 0 }, h = { 0 }, g = { 0 }, in, out, want, want_h, want_g, ours, ours_h;
		float (*weight)[n] = xalloc(m, sizeof *weight), (*back)[n] = xalloc(m, sizeof *back);
		float (*hessian)[n] = xalloc(n, sizeof *hessian), *turned;
		float (*cross)[n] = xalloc(n, sizeof *cross), *crossed, *same;
		struct linear l = { .out = m, .in = n, .weight = weight };
		struct layer_rotation r;

		CASE("%zu x %zu", m, n);
		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < n; j++)
				w.x[i][j] = (double)(weight[i][j] = (float)random_normal(&stream, i * n + j));
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j <= i; j++) {
				hessian[i][j] = hessian[j][i] = (float)((i == j ? (double)n : 0) +
					random_normal(&stream, 10000 + i * n + j));
				h.x[i][j] = h.x[j][i] = (double)hessian[i][j];
			}
		for (size_t i = 0; i < n; i++)		/* not symmetric */
			for (size_t j = 0; j < n; j++) {
				cross[i][j] = hessian[i][j] +
					(float)random_normal(&stream, 30000 + i * n + j);
				g.x[i][j] = (double)cross[i][j];
			}
		layer_rotation_make(&r, m, n, 1);
		layer_rotation_weight(&r, &l);
		turned = layer_rotation_hessian(&r, n, hessian[0]);
		in = dense(n, &r.in), out = dense(m, &r.out);
		want = between(m, n, &out, &w, &in);
		want_h = between(n, n, &in, &h, &in);
		assert_near(m, n, r.linear.weight, &want);
		assert_near(n, n, turned, &want_h);
		crossed = layer_rotation_cross(&r, n, cross[0], hessian[0], turned);
		want_g = between(n, n, &in, &g, &in);
		assert_near(n, n, crossed, &want_g);
		same = layer_rotation_cross(&r, n, hessian[0], hessian[0], turned);
		assert_memory_equal(same, turned, n * n * sizeof *same);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				assert_true(turned[i * n + j] == turned[j * n + i]);
		ours = read_square(m, n, r.linear.weight), ours_h = read_square(n, n, turned);
		assert_true(fabs(energy(m, n, &ours, &ours_h) / energy(m, n, &w, &h) - 1) < 1e-5);
		l = r.linear, l.rotation_in = r.in, l.rotation_out = r.out;
		linear_dense(&l, back);
		assert_near(m, n, back[0], &w);
		free(weight), free(back), free(hessian), free(turned);
		free(cross), free(crossed), free(same);
		layer_rotation_free(&r);
	}
}

/* Signs depend on the side, the seed and the number of a channel only. */
static void signs(void **unused)
{
	struct layer_rotation a, b, other;
	int sum = 0;

	(void)unused;
	layer_rotation_make(&a, 64, 1024, 1);
	layer_rotation_make(&b, 1024, 1024, 1);
	layer_rotation_make(&other, 1024, 1024, 2);
	assert_memory_equal(a.signs[0], b.signs[0], 1024);
	assert_memory_equal(a.signs[1], b.signs[1], 64);
	assert_memory_not_equal(b.signs[0], b.signs[1], 1024);
	assert_memory_not_equal(b.signs[0], other.signs[0], 1024);
	for (size_t i = 0; i < 1024; i++) {
		assert_true(a.signs[0][i] == 1 || a.signs[0][i] == -1);
		sum += a.signs[0][i];
	}
	assert_true(abs(sum) < 160);	/* five standard deviations */
	layer_rotation_free(&a), layer_rotation_free(&b), layer_rotation_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rotated), cmocka_unit_test(signs) };

	threads_init(0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
