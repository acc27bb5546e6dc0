/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * feedback -- FBQuant's optimizer against its equations in plain float64 loops: the quantizer by its
 * definition, gradients by hand and by differences of the loss with the feedback term held constant
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
#include "branch/feedback.h"
#include "case.h"
#include "num/linalg.h"

/* W [m][n], X [tokens][n], H = Xᵀ X */
struct problem {
	size_t m, n, tokens;
	float *w, *h;
	struct linear linear;
};

static struct problem problem(size_t m, size_t n, size_t tokens)
{
	const struct random_stream stream = random_open(n, "problem");
	struct problem p = { m, n, tokens, xalloc(m * n, sizeof(float)), xalloc(n * n, sizeof(float)),
		{ 0 } };
	float *x = xalloc(tokens * n, sizeof *x);
	uint64_t k = 0;

	for (size_t i = 0; i < m * n; i++)
		p.w[i] = (float)((random_uniform(&stream, k) + random_uniform(&stream, k + 1) - 1) *
			(i % 17 ? 0.1 : 0.3)), k += 2;
	for (size_t i = 0; i < tokens * n; i++)
		x[i] = (float)(random_uniform(&stream, k++) - 0.5) * (float)(1 + i % n % 5);
	for (size_t t = 0; t < tokens; t++)
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				p.h[i * n + j] += x[t * n + i] * x[t * n + j];
	free(x);
	p.linear = (struct linear){ .out = m, .in = n, .weight = p.w };
	return p;
}

static void problem_free(struct problem *p)
{
	free(p->w), free(p->h);
}

static struct feedback settings(const char *storage, long group, size_t rank, size_t steps)
{
	struct feedback f = { .group = group, .rank = rank, .steps = steps, .rate = 2e-3, .every = 10 };

	assert_true(format_parse(&f.storage, storage));
	return f;
}

/* Q(P) by its definition: scale and zero point from the range of each group, the nearest value of each
 * number. */
static void quantized(const struct feedback *f, size_t m, size_t n, double q[m * n], const double p[m * n])
{
	const size_t group = f->group > 0 ? (size_t)f->group : n;

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j += group) {
			const size_t end = j + group < n ? j + group : n;
			double low = 0, high = 0;
			uint8_t zero = 0;
			float scale;

			for (size_t k = j; k < end; k++)
				low = fmin(low, p[i * n + k]), high = fmax(high, p[i * n + k]);
			format_fit(&f->storage, &scale, &zero, low, high);
			for (size_t k = j; k < end; k++) {
				double best = INFINITY;

				for (int c = 0; c <= f->storage.code_last; c++) {
					const double v = ((double)f->storage.grid[c] -
						(f->storage.asymmetric ? zero : 0)) * (double)scale;

					if (fabs(v - p[i * n + k]) < best)
						best = fabs(v - p[i * n + k]), q[i * n + k] = v;
				}
			}
		}
}

static void minus(const struct problem *p, size_t r, const double *a, const double *b, double *out)
{
	for (size_t i = 0; i < p->m; i++)
		for (size_t j = 0; j < p->n; j++) {
			out[i * p->n + j] = (double)p->w[i * p->n + j];
			for (size_t k = 0; k < r; k++)
				out[i * p->n + j] -= b[i * r + k] * a[k * p->n + j];
		}
}

static double trace_of(const struct problem *p, const double *d)	/* tr(D H Dᵀ) */
{
	double y = 0;

	for (size_t i = 0; i < p->m; i++)
		for (size_t j = 0; j < p->n; j++)
			for (size_t k = 0; k < p->n; k++)
				y += d[i * p->n + j] * (double)p->h[j * p->n + k] * d[i * p->n + k];
	return y;
}

/* tr(Δ H Δᵀ)/mean(diag H), Δ = W - B A - q */
static double loss_of(const struct problem *p, size_t r, const double *a, const double *b, const double *q)
{
	const size_t m = p->m, n = p->n;
	double *d = xalloc(m * n, sizeof *d), y = 0, mean = 0;

	minus(p, r, a, b, d);
	for (size_t i = 0; i < m * n; i++)
		d[i] -= q[i];
	y = trace_of(p, d);
	for (size_t j = 0; j < n; j++)
		mean += (double)p->h[j * n + j] / (double)n;
	free(d);
	return y / mean;
}

/* ∂A = -2 Bᵀ Δ H, ∂B = -2 Δ H Aᵀ, over mean(diag H) */
static void gradient_of(const struct problem *p, size_t r, const double *a, const double *b, const double *q,
	double *ga, double *gb)
{
	const size_t m = p->m, n = p->n;
	double *d = xalloc(m * n, sizeof *d), *dh = xalloc(m * n, sizeof *dh), mean = 0;

	minus(p, r, a, b, d);
	for (size_t j = 0; j < n; j++)
		mean += (double)p->h[j * n + j] / (double)n;
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			for (size_t k = 0; k < n; k++)
				dh[i * n + j] += (d[i * n + k] - q[i * n + k]) * (double)p->h[k * n + j] /
					mean;
	memset(ga, 0, r * n * sizeof *ga), memset(gb, 0, m * r * sizeof *gb);
	for (size_t i = 0; i < m; i++)
		for (size_t k = 0; k < r; k++)
			for (size_t j = 0; j < n; j++) {
				ga[k * n + j] -= 2 * b[i * r + k] * dh[i * n + j];
				gb[i * r + k] -= 2 * dh[i * n + j] * a[k * n + j];
			}
	free(d), free(dh);
}

/*
 * The gradient is that of the loss with the feedback term held constant. Differences of the loss are in
 * double and have only rounding errors, since the loss is quadratic in each number. Numbers in float are the
 * result of products of n, m and rank terms in sequence; 1e-6 of the largest number is about 17 roundings of
 * it.
 */
static void gradients(void **unused)
{
	enum { M = 5, N = 24, R = 3 };
	struct problem p = problem(M, N, 40);
	const struct feedback f = settings("uint4", 8, R, 1);
	const struct random_stream stream = random_open(3, "point");
	double a[R * N], b[M * R], d[M * N], q[M * N], numeric[R * N + M * R], largest = 0;
	float fa[R * N], fb[M * R], g[R * N + M * R];
	struct feedback_layer l = { .weight = &p.linear, .settings = &f, .name = "layer", .h = p.h, .a = fa,
		.b = fb };
	void *workspace = xalloc(feedback_workspace(&l), 1);

	(void)unused;
	for (size_t i = 0; i < R * N; i++)
		a[i] = (double)(fa[i] = (float)(random_uniform(&stream, i) - 0.5));
	for (size_t i = 0; i < M * R; i++)
		b[i] = (double)(fb[i] = (float)(0.1 * (random_uniform(&stream, 1000 + i) - 0.5)));
	minus(&p, R, a, b, d);
	quantized(&f, M, N, q, d);
	for (size_t i = 0; i < R * N + M * R; i++) {
		double *x = i < R * N ? &a[i] : &b[i - R * N], at = *x, h = 1e-3;

		*x = at + h, numeric[i] = loss_of(&p, R, a, b, q);
		*x = at - h, numeric[i] -= loss_of(&p, R, a, b, q);
		*x = at;
		numeric[i] /= 2 * h;
		largest = fmax(largest, fabs(numeric[i]));
	}
	feedback_gradients(&l, g, g + R * N, workspace);
	for (size_t i = 0; i < R * N + M * R; i++)
		assert_true(fabs(numeric[i] - (double)g[i]) <= 1e-6 * largest);
	free(workspace);
	problem_free(&p);
}

/* The whole run in double: Adam, new ranges in each step, the smallest loss is kept. */
static double plain(const struct problem *p, const struct feedback *f, double *a, double *b, size_t steps)
{
	const size_t m = p->m, n = p->n, r = f->rank, all = r * n + m * r;
	double *d = xalloc(m * n, sizeof *d), *q = xalloc(m * n, sizeof *q), *g = xalloc(all, sizeof *g);
	double *first = xalloc(all, sizeof *first), *second = xalloc(all, sizeof *second), loss = 0;

	for (size_t t = 0; t <= steps; t++) {
		minus(p, r, a, b, d);
		quantized(f, m, n, q, d);
		loss = loss_of(p, r, a, b, q);
		gradient_of(p, r, a, b, q, g, g + r * n);
		for (size_t i = 0; t < steps && i < all; i++) {
			double *x = i < r * n ? &a[i] : &b[i - r * n];

			first[i] = 0.9 * first[i] + 0.1 * g[i];
			second[i] = 0.999 * second[i] + 0.001 * g[i] * g[i];
			*x -= f->rate * (1 - (double)t / (double)f->steps) *
				(first[i] / (1 - pow(0.9, (double)t + 1))) /
				(sqrt(second[i] / (1 - pow(0.999, (double)t + 1))) + 1e-8);
		}
	}
	free(d), free(q), free(g), free(first), free(second);
	return loss;
}

static double whole_of(const struct problem *p)
{
	double *w = xalloc(p->m * p->n, sizeof *w), y;

	for (size_t i = 0; i < p->m * p->n; i++)
		w[i] = (double)p->w[i];
	y = trace_of(p, w);
	free(w);
	return y;
}

static struct feedback_layer run(const struct problem *p, const struct feedback *f)
{
	struct feedback_layer l = { .weight = &p->linear, .settings = f, .name = "layer", .h = p->h,
		.whole = whole_of(p),
		.a = xalloc(f->rank * p->n, sizeof(float)), .b = xalloc(p->m * f->rank, sizeof(float)) };
	void *workspace = xalloc(feedback_workspace(&l), 1);

	feedback_run(&l, workspace);
	free(workspace);
	return l;
}

/* A, B after a few steps from the same start: products are in float, each number moves by at most the
 * rate. */
static void against_plain(size_t m, size_t n, size_t tokens, const char *storage, long group, size_t rank,
	size_t steps)
{
	struct problem p = problem(m, n, tokens);
	struct feedback f = settings(storage, group, rank, steps), none = f;
	struct feedback_layer l, start;
	double *a = xalloc(rank * n, sizeof *a), *b = xalloc(m * rank, sizeof *b), loss, all;
	double *zero = xalloc(m * n, sizeof *zero);

	f.every = steps, f.rate = none.rate = 1e-3;
	none.steps = 0, none.every = 1;
	start = run(&p, &none);
	for (size_t i = 0; i < rank * n; i++)
		a[i] = (double)start.a[i];
	for (size_t i = 0; i < m * rank; i++)
		assert_true(start.b[i] == 0);
	l = run(&p, &f);
	loss = plain(&p, &f, a, b, steps);
	all = loss_of(&p, rank, (double[1000]){ 0 }, (double[1000]){ 0 }, zero);
	assert_true(fabs(l.report.start - start.report.start) <= 1e-6 * l.report.start);
	assert_int_equal(l.report.best, steps);		/* else A and B are not those of the last step */
	for (size_t i = 0; i < rank * n; i++)
		assert_true(fabs((double)l.a[i] - a[i]) < 1e-5);
	for (size_t i = 0; i < m * rank; i++)
		assert_true(fabs((double)l.b[i] - b[i]) < 1e-5);
	assert_true(fabs(l.report.loss - loss / all) < 1e-4 * l.report.loss);
	free(a), free(b), free(zero);
	free(l.a), free(l.b), free(start.a), free(start.b);
	problem_free(&p);
}

static void steps(void **unused)
{
	(void)unused;
	against_plain(2, 4, 3, "uint4", 4, 1, 1);
	against_plain(2, 4, 3, "uint3", 2, 2, 1);
	against_plain(7, 40, 60, "uint4", 16, 3, 3);
	against_plain(9, 30, 60, "e2m2", 0, 2, 3);
	against_plain(6, 24, 50, "int3", 8, 4, 2);
	against_plain(9, 270, 60, "uint4", 16, 3, 2);		/* H in two blocks for the loss */
}

static void falls(void **unused)
{
	struct problem p = problem(96, 128, 300);
	const char *const formats[] = { "uint4", "uint3", "e2m1", "nf4" };

	(void)unused;
	for (size_t i = 0; i < 4; i++) {
		CASE("%s", formats[i]);
		const struct feedback f = settings(formats[i], 32, 8, 120);
		struct feedback_layer l = run(&p, &f), again;
		uint8_t *code = xalloc(96 * 128, 1), zero[96 * 4];
		float *scale = xalloc(96 * 4, sizeof *scale), *w = xalloc(96 * 128, sizeof *w);
		double *work = xalloc(96 * 128, sizeof *work);
		const int many = threads;

		assert_true(l.report.loss < 0.9 * l.report.start);
		assert_true(feedback_codes(&l, 0, 96, code, scale, zero, w, work) <= 1);
		threads = many > 1 ? 1 : 3;
		again = run(&p, &f);
		assert_memory_equal(l.a, again.a, 8 * 128 * sizeof(float));
		assert_memory_equal(l.b, again.b, 96 * 8 * sizeof(float));
		threads = many;
		free(l.a), free(l.b), free(again.a), free(again.b), free(code), free(scale), free(w),
			free(work);
	}
	problem_free(&p);
}

/* A rate at which the loss overflows is halved, and the start remains the best. A rate without effect ends
 * the run. */
static void rates(void **unused)
{
	struct problem p = problem(6, 24, 50);
	struct feedback f = settings("uint4", 8, 2, 200);
	struct feedback_layer l;

	(void)unused;
	f.rate = 1e25;
	l = run(&p, &f);
	assert_true(l.report.halved > 0 && l.report.best == 0 && l.report.loss == l.report.start);
	for (size_t i = 0; i < 6 * 2; i++)
		assert_true(l.b[i] == 0);
	free(l.a), free(l.b);
	f.rate = 1e-30, f.patience = 3;
	l = run(&p, &f);
	assert_true(l.report.halved == 0 && l.report.steps == f.patience * f.every);
	free(l.a), free(l.b);
	problem_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients), cmocka_unit_test(steps), cmocka_unit_test(falls),
		cmocka_unit_test(rates),
	};

	linalg_init();
	threads_init(0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
