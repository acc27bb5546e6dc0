/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq_search -- the search of AWQ against its equations in plain float64 loops: factors, losses of all
 * ratios, limits of all groups; the quantizer by its definition
 */
#include <float.h>
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
#include "num/linalg.h"
#include "transform/awq_search.h"

/* W [m][n], X [tokens][n] with channels of different sizes, H = Xᵀ X, x̄ = mean |x| */
struct problem {
	size_t m, n;
	float *w, *h;
	double *x;
	struct linear linear;
};

static struct problem problem(size_t m, size_t n, size_t tokens)
{
	const struct random_stream stream = random_open(m * n, "awq");
	struct problem p = { m, n, xalloc(m * n, sizeof(float)), xalloc(n * n, sizeof(float)),
		xalloc(n, sizeof(double)), { 0 } };
	double *h = xalloc(n * n, sizeof *h), *x = xalloc(n, sizeof *x);
	uint64_t k = 0;

	for (size_t i = 0; i < m * n; i++, k += 2)
		p.w[i] = (float)((random_uniform(&stream, k) + random_uniform(&stream, k + 1) - 1) *
			(i % 13 ? 0.1 : 0.4));
	for (size_t t = 0; t < tokens; t++) {
		for (size_t j = 0; j < n; j++)
			x[j] = (random_uniform(&stream, k++) - 0.45) * exp(2.5 * sin((double)j)) *
				(j != 3);		/* dead channel */
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				h[i * n + j] += x[i] * x[j];
		for (size_t j = 0; j < n; j++)
			p.x[j] += fabs(x[j]) / (double)tokens;
	}
	for (size_t i = 0; i < n * n; i++)
		p.h[i] = (float)h[i];
	free(h), free(x);
	p.linear = (struct linear){ .out = m, .in = n, .weight = p.w };
	return p;
}

static void problem_free(struct problem *p)
{
	free(p->w), free(p->h), free(p->x);
}

static struct awq_format format(const char *storage, long group)
{
	struct awq_format f = { .group = group };

	assert_true(format_parse(&f.storage, storage));
	return f;
}

/* Q of a group of n numbers for int<b> and uint<b>, by the equations of their scales. */
static void plain_nearest(const struct format *f, size_t n, double q[n], const float v[n])
{
	double low = 0, high = 0;
	float scale;

	for (size_t j = 0; j < n; j++) {
		low = fmin(low, (double)v[j]);
		high = fmax(high, (double)v[j]);
	}
	scale = (float)(f->asymmetric ? (high - low) / (double)f->max : fmax(high, -low) / (double)f->max);
	for (size_t j = 0; j < n; j++) {
		const double zero = f->asymmetric ? rint(-low * (double)f->max / (high - low)) : 0;
		const double bottom = f->asymmetric ? 0 : -(double)f->max - 1;
		const double code = rint((double)v[j] / (double)scale) + zero;
		const double kept = fmin(fmax(code, bottom), (double)f->max);

		q[j] = scale > 0 ? (double)(float)((kept - zero) * (double)scale) : 0;
	}
}

static void plain_row(const struct awq_format *f, size_t n, double q[n], const float v[n])
{
	const size_t group = f->group ? (size_t)f->group : n;

	for (size_t at = 0; at < n; at += group)
		plain_nearest(&f->storage, n - at < group ? n - at : group, q + at, v + at);
}

static void plain_factors(const struct problem *p, size_t i, double s[])
{
	double low = HUGE_VAL, high = 0;

	for (size_t j = 0; j < p->n; j++) {
		s[j] = pow(p->x[j], 0.05 * (double)i);
		s[j] = s[j] < 1e-4 ? 1e-4 : s[j];
		low = s[j] < low ? s[j] : low;
		high = s[j] > high ? s[j] : high;
	}
	for (size_t j = 0; j < p->n; j++)
		s[j] /= sqrt(low * high);
}

/* x H xᵀ over columns [at, at + n) */
static double plain_quadratic(const struct problem *p, size_t at, size_t n, const double x[n])
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			sum += x[i] * (double)p->h[(at + i) * p->n + at + j] * x[j];
	return sum;
}

/* tr(E H Eᵀ). v: rows of W diag(s) as float. whole: tr(W H Wᵀ). */
static double plain_loss(const struct awq_format *f, const struct problem *p, const float *v,
	const double s[], double *whole)
{
	double *q = xalloc(2 * p->n, sizeof *q), *x = q + p->n, loss = 0;

	*whole = 0;
	for (size_t i = 0; i < p->m; i++) {
		const float *row = v + i * p->n;

		plain_row(f, p->n, q, row);
		for (size_t j = 0; j < p->n; j++)
			x[j] = (double)row[j] / s[j];
		*whole += plain_quadratic(p, 0, p->n, x);
		for (size_t j = 0; j < p->n; j++)
			x[j] = ((double)row[j] - q[j]) / s[j];
		loss += plain_quadratic(p, 0, p->n, x);
	}
	free(q);
	return loss;
}

/*
 * Products are in float. The error of a sum of n terms is at most about n·2⁻²⁴ of the sum of their
 * magnitudes, and on average √n·2⁻²⁴. This is 1e-6 for 300 terms, of sums a few times the loss, since
 * channels are nearly independent.
 */
static const double close = 1e-5;

static const struct { const char *storage; long group; size_t m, n; } cases[] = {
	{ "uint4", 16, 70, 64 }, { "uint3", 24, 33, 40 }, { "int4", 0, 9, 48 }, { "uint4", 128, 5, 300 },
	{ "int3", 32, 130, 260 }, { "uint8", 7, 3, 13 }, { "uint2", 1000, 4, 6 },
};
enum { CASES = sizeof cases / sizeof *cases };

static void losses(void **unused)
{
	(void)unused;
	for (size_t c = 0; c < CASES; c++) {
		CASE("cases[%zu] %s", c, cases[c].storage);
		const struct awq_format f = format(cases[c].storage, cases[c].group);
		struct problem p = problem(cases[c].m, cases[c].n, 3 * cases[c].n);
		double *s = xalloc(2 * p.n, sizeof *s), *want = s + p.n;
		float *v = xalloc(p.m * p.n, sizeof *v);

		for (size_t r = 0; r < AWQ_RATIOS; r++) {
			double whole, whole_wanted, loss, loss_wanted;

			awq_factors(p.n, s, p.x, r);
			plain_factors(&p, r, want);
			for (size_t j = 0; j < p.n; j++)
				assert_true(fabs(s[j] - want[j]) <= 1e-14 * want[j]);
			for (size_t i = 0; i < p.m * p.n; i++)
				v[i] = (float)((double)p.w[i] * s[i % p.n]);
			loss_wanted = plain_loss(&f, &p, v, s, &whole_wanted);
			loss = awq_loss(&f, &p.linear, s, p.h, &whole);
			assert_true(loss_wanted > 0 && fabs(loss - loss_wanted) <= close * loss_wanted);
			assert_true(fabs(whole - whole_wanted) <= close * whole_wanted);
			if (!r)
				assert_true(awq_loss(&f, &p.linear, NULL, p.h, NULL) == loss);
		}
		free(s), free(v);
		problem_free(&p);
	}
}

/* The factor with the smallest loss for the group of the row; loss: of all factors. */
static size_t plain_limit(const struct awq_format *f, const struct problem *p, const double *w, size_t at,
	size_t n, const double s[], double loss[AWQ_SHRINKS])
{
	double *q = xalloc(2 * n, sizeof *q), *e = q + n;
	float *v = xalloc(n, sizeof *v), top = 0;
	size_t best = 0;

	for (size_t j = 0; j < n; j++)
		top = fmaxf(top, fabsf((float)w[j]));
	for (size_t k = 0; k < AWQ_SHRINKS; k++) {
		const float limit = (float)((double)top * (1 - (double)k / 20));

		for (size_t j = 0; j < n; j++)
			v[j] = fminf(fmaxf((float)w[j], -limit), limit);
		plain_nearest(&f->storage, n, q, v);
		for (size_t j = 0; j < n; j++)
			e[j] = ((double)(float)w[j] - q[j]) / s[at + j];
		loss[k] = plain_quadratic(p, at, n, e);
		if (loss[k] < loss[best])
			best = k;
	}
	free(q), free(v);
	return best;
}

/* The limit of each group has the smallest loss, or one that is equal in float. */
static void clipping(void **unused)
{
	size_t all = 0, all_clipped = 0;

	(void)unused;
	for (size_t c = 0; c < CASES; c++) {
		CASE("cases[%zu] %s", c, cases[c].storage);
		const struct awq_format f = format(cases[c].storage, cases[c].group);
		struct problem p = problem(cases[c].m, cases[c].n, 3 * cases[c].n);
		const size_t group = f.group ? (size_t)f.group : p.n;
		double *s = xalloc(p.n, sizeof *s), *w = xalloc(2 * p.m * p.n, sizeof *w), *y = w + p.m * p.n;
		size_t clipped, changed = 0;

		awq_factors(p.n, s, p.x, 7);
		for (size_t i = 0; i < p.m * p.n; i++)
			w[i] = y[i] = (double)p.w[i] * s[i % p.n];
		assert_true(awq_clip(&f, p.m, p.n, (double (*)[p.n])y, s, p.h, &clipped));
		for (size_t i = 0; i < p.m; i++)
			for (size_t at = 0; at < p.n; at += group) {
				const size_t n = p.n - at < group ? p.n - at : group;
				const double *before = w + i * p.n + at, *after = y + i * p.n + at;
				double loss[AWQ_SHRINKS], top = 0, limit = 0;
				const size_t best = plain_limit(&f, &p, before, at, n, s, loss);
				size_t k;

				for (size_t j = 0; j < n; j++) {
					top = fmax(top, (double)fabsf((float)before[j]));
					limit = fmax(limit, fabs(after[j]));
				}
				k = (size_t)lrint(20 * (1 - limit / top));
				assert_true(k < AWQ_SHRINKS);
				assert_true(k == best || loss[k] <= loss[best] * (1 + close));
				for (size_t j = 0; j < n; j++) {
					const double most = (double)(float)(top * (1 - (double)k / 20));
					const double want = fmin(fmax(before[j], -most), most);

					assert_true(k ? after[j] == want : after[j] == before[j]);
				}
				changed += k > 0;
				all++;
			}
		assert_int_equal(changed, clipped);
		all_clipped += clipped;
		free(s), free(w);
		problem_free(&p);
	}
	assert_true(all_clipped > all / 10 && all_clipped < all);	/* both cases occur */
}

/* A weight that is scaled already has the loss of the layer with the same factors. */
static void scaled(void **unused)
{
	const struct awq_format f = format("uint4", 32);
	struct problem p = problem(90, 300, 900);
	double *s = xalloc(p.n, sizeof *s), *w = xalloc(p.m * p.n, sizeof *w);
	double *rows = xalloc(p.m, sizeof *rows), loss, whole, other;

	(void)unused;
	awq_factors(p.n, s, p.x, 11);
	for (size_t i = 0; i < p.m * p.n; i++)
		w[i] = (double)p.w[i] * s[i % p.n];
	loss = awq_loss(&f, &p.linear, s, p.h, &whole);
	assert_true(loss == awq_loss_scaled(&f, p.m, p.n, (const double (*)[p.n])w, s, NULL, p.h, &other));
	assert_true(whole == other);
	for (size_t i = 0; i < p.m * p.n; i++)
		w[i] /= rows[i / p.n] = i / p.n % 2 ? 0.25 : 8;
	assert_true(fabs(awq_loss_scaled(&f, p.m, p.n, (const double (*)[p.n])w, s, rows, p.h, &other) -
		loss) < 1e-12 * loss && fabs(other - whole) < 1e-12 * whole);
	free(s), free(w), free(rows);
	problem_free(&p);
}

static void same_for_all_threads(void **unused)
{
	const struct awq_format f = format("uint3", 32);
	struct problem p = problem(200, 96, 200);
	double *s = xalloc(p.n, sizeof *s), *y[2], loss[2], whole[2];
	size_t clipped[2];
	const int before = threads;

	(void)unused;
	awq_factors(p.n, s, p.x, 5);
	for (int t = 0; t < 2; t++) {
		CASE("%d threads", t ? 3 : 1);
		threads = t ? 3 : 1;
		y[t] = xalloc(p.m * p.n, sizeof *y[t]);
		for (size_t i = 0; i < p.m * p.n; i++)
			y[t][i] = (double)p.w[i] * s[i % p.n];
		loss[t] = awq_loss(&f, &p.linear, s, p.h, &whole[t]);
		assert_true(awq_clip(&f, p.m, p.n, (double (*)[p.n])y[t], s, p.h, &clipped[t]));
	}
	threads = before;
	assert_true(loss[0] == loss[1] && whole[0] == whole[1]);
	assert_int_equal(clipped[0], clipped[1]);
	assert_memory_equal(y[0], y[1], p.m * p.n * sizeof *y[0]);
	free(s), free(y[0]), free(y[1]);
	problem_free(&p);
}

/* Every type of format and of scales works. */
static void every_format(void **unused)
{
	static const char *const names[] = { "nf4", "e2m1", "mxfp4", "nvfp4", "e4m3fn", "uint1" };
	struct problem p = problem(40, 64, 100);

	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		CASE("%s", names[i]);
		const struct awq_format f = format(names[i], 16);
		double *w = xalloc(p.m * p.n, sizeof *w), whole;
		const double loss = awq_loss(&f, &p.linear, NULL, p.h, &whole);
		size_t clipped;

		for (size_t k = 0; k < p.m * p.n; k++)
			w[k] = (double)p.w[k];
		assert_true(loss > 0 && isfinite(loss) && loss < whole);
		assert_true(awq_clip(&f, p.m, p.n, (double (*)[p.n])w, NULL, p.h, &clipped));
		assert_true(clipped <= p.m * p.n / 16);
		free(w);
	}
	problem_free(&p);
}

/* Weights and factors out of range; inputs that are all zero. */
static void limits(void **unused)
{
	const struct awq_format f = format("uint4", 8);
	struct problem p = problem(4, 24, 30);
	double *s = xalloc(p.n, sizeof *s), w[4][24] = { { 1 } }, whole;
	size_t clipped = 7;

	(void)unused;
	for (size_t j = 0; j < p.n; j++)
		s[j] = 0;
	awq_factors(p.n, s, (const double[24]){ 0 }, 9);
	for (size_t j = 0; j < p.n; j++)
		assert_true(fabs(s[j] - 1) < 1e-12);
	awq_factors(p.n, s, (const double[24]){ FLT_MAX, 1 }, 19);
	for (size_t j = 0; j < p.n; j++)
		assert_true(s[j] > 0 && isfinite(s[j]));
	p.w[0] = FLT_MAX / 2;
	assert_true(isnan(awq_loss(&f, &p.linear, s, p.h, &whole)));
	w[2][5] = NAN;
	assert_false(awq_clip(&f, 4, 24, w, NULL, p.h, &clipped));
	assert_true(clipped == 7 && w[0][0] == 1);
	free(s);
	problem_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses),
		cmocka_unit_test(clipping),
		cmocka_unit_test(scaled),
		cmocka_unit_test(same_for_all_threads),
		cmocka_unit_test(every_format),
		cmocka_unit_test(limits),
	};

	threads_init(0);
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
