/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * branch -- the sub-branch methods against their algorithms in plain float64 loops: rounding by its
 * definition, GPTQ by elimination in the inverse of H, low rank by one-sided Jacobi on E L, H = L Lᵀ
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
#include "branch/branch.h"
#include "case.h"
#include "jacobi.h"
#include "num/linalg.h"
#include "transform/quantizer.h"

/* W [m][n], H = Xᵀ X of tokens, in float as the methods read them. */
struct problem {
	size_t m, n;
	float *w, *h;
	struct linear linear;
};

/* dead: the channel with inputs 0; n: none. */
static struct problem problem(size_t m, size_t n, size_t tokens, size_t dead)
{
	const struct random_stream stream = random_open(n, "problem");
	struct problem p = { m, n, xalloc(m * n, sizeof(float)), xalloc(n * n, sizeof(float)), { 0 } };
	float *x = xalloc(tokens * n, sizeof *x);
	uint64_t k = 0;

	for (size_t i = 0; i < m * n; i++)
		p.w[i] = (float)((random_uniform(&stream, k) + random_uniform(&stream, k + 1) - 1) *
			(i % 17 ? 0.1 : 0.3)), k += 2;
	for (size_t t = 0; t < tokens; t++) {
		const double common = random_uniform(&stream, k++) - 0.5;

		for (size_t i = 0; i < n; i++)
			x[t * n + i] = i == dead ? 0 : (float)((random_uniform(&stream, k++) - 0.5 +
				2 * common) * (double)(1 + i % 5));
	}
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

static const struct branch_method *method(const char *name)
{
	const struct branch_method *y = branch_methods;

	while (strcmp(y->name, name))
		y++;
	return y;
}

static struct branch_settings settings(const struct branch_method *y, const char *storage, long group,
	size_t rank, size_t steps)
{
	struct branch_settings s = { .rank = rank, .steps = steps, .rate = 2e-3, .every = 10, .seed = 1,
		.main = { .group = group, .compensate = y->compensate, .damp = 0.01 } };

	assert_true(format_parse(&s.main.storage, storage));
	return s;
}

static struct codes codes(size_t rows, size_t columns, const struct format *f, long group)
{
	struct codes y = codes_make(rows, columns, f, group);

	codes_lay_out(&y, xalloc(codes_lay_out(&y, NULL), 1));
	return y;
}

static struct branch_layer run(const struct problem *p, const struct branch_method *y,
	const struct branch_settings *s, const struct linear *main)
{
	struct branch_layer l = { .weight = &p->linear, .main = main, .settings = s, .name = "layer",
		.h = p->h, .a = xalloc(s->rank * p->n, sizeof(float)),
		.b = xalloc(p->m * s->rank, sizeof(float)) };
	void *workspace;

	if (!main)
		l.codes = codes(p->m, p->n, &s->main.storage, s->main.group);
	if (s->storage.kind) {
		l.code_a = codes(s->rank, p->n, &s->storage, s->group);
		l.code_b = codes(p->m, s->rank, &s->storage, s->group);
	}
	workspace = xalloc(branch_workspace(y, &l), 1);
	branch_run(y, &l, workspace);
	free(workspace);
	return l;
}

static void made_free(struct branch_layer *l)
{
	free(l->a), free(l->b), free(l->codes.memory), free(l->code_a.memory), free(l->code_b.memory);
}

/* The values of codes: (grid[code] - zero) · scale/scale_tensor. */
static void decode(const struct format *f, size_t rows, size_t columns, long group,
	const struct codes *c, double *y)
{
	const size_t each = group > 0 ? (size_t)group : columns, groups = linear_groups(columns, group);

	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++) {
			const size_t g = group == -1 ? 0 : i * groups + j / each;

			y[i * columns + j] = ((double)f->grid[c->codes[i * columns + j]] -
				(f->asymmetric ? c->zero[g] : 0)) *
				((double)c->scale[g] / (double)c->scale_tensor);
		}
}

/* Scale and zero point from the range of n numbers. */
static void range(const struct format *f, size_t n, const double *p, float *scale, uint8_t *zero)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < n; i++)
		low = fmin(low, p[i]), high = fmax(high, p[i]);
	*zero = 0;
	format_fit(f, scale, zero, low, high);
}

static double nearest(const struct format *f, float scale, uint8_t zero, double p)
{
	double best = INFINITY, y = 0;

	for (int c = 0; c <= f->code_last; c++) {
		const double v = ((double)f->grid[c] - (f->asymmetric ? zero : 0)) * (double)scale;

		if (fabs(v - p) < best)
			best = fabs(v - p), y = v;
	}
	return y;
}

/* Q(P) by its definition. */
static void quantized(struct format f, long group, size_t m, size_t n, double *q, const double *p)
{
	const size_t each = group > 0 ? (size_t)group : n;
	double min = 0, max = 0;

	for (size_t i = 0; i < m * n; i++)
		min = fmin(min, p[i]), max = fmax(max, p[i]);
	format_tensor(&f, min, max);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			const size_t first = j / each * each, rest = n - first;
			uint8_t zero;
			float scale;

			range(&f, rest < each ? rest : each, p + i * n + first, &scale, &zero);
			q[i * n + j] = nearest(&f, scale, zero, p[i * n + j]);
		}
}

/* Replaces a positive definite a [n][n] by its inverse: Gauss and Jordan. */
static void invert(size_t n, double *a)
{
	for (size_t k = 0; k < n; k++) {
		const double pivot = a[k * n + k];

		a[k * n + k] = 1;
		for (size_t j = 0; j < n; j++)
			a[k * n + j] /= pivot;
		for (size_t i = 0; i < n; i++) {
			const double factor = a[i * n + k];

			if (i == k)
				continue;
			a[i * n + k] = 0;
			for (size_t j = 0; j < n; j++)
				a[i * n + j] -= factor * a[k * n + j];
		}
	}
}

/* GPTQ: columns one by one, with the inverse of H without the finished columns. The range of a group is taken
 * when its first column is reached. */
static void gptq(const struct format *f, long group, size_t m, size_t n, double *q, const double *p,
	const double *h)
{
	const size_t each = group > 0 ? (size_t)group : n;
	double *v = xalloc(n * n, sizeof *v), *w = xalloc(m * n, sizeof *w);
	float *scale = xalloc(m, sizeof *scale);
	uint8_t *zero = xalloc(m, 1);

	memcpy(v, h, n * n * sizeof *v), memcpy(w, p, m * n * sizeof *w);
	invert(n, v);
	for (size_t j = 0; j < n; j++) {
		for (size_t i = 0; i < m; i++) {
			if (j % each == 0)
				range(f, n - j < each ? n - j : each, w + i * n + j, &scale[i], &zero[i]);
			q[i * n + j] = nearest(f, scale[i], zero[i], w[i * n + j]);
			for (size_t k = j + 1; k < n; k++)
				w[i * n + k] -= (w[i * n + j] - q[i * n + j]) / v[j * n + j] * v[j * n + k];
		}
		for (size_t i = j + 1; i < n; i++)
			for (size_t k = j + 1; k < n; k++)
				v[i * n + k] -= v[i * n + j] * v[j * n + k] / v[j * n + j];
	}
	free(v), free(w), free(scale), free(zero);
}

/* tr(E H Eᵀ) */
static double trace(size_t m, size_t n, const double *e, const double *h)
{
	double y = 0;

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			for (size_t k = 0; k < n; k++)
				y += e[i * n + j] * h[j * n + k] * e[i * n + k];
	return y;
}

/* A [r][n], B [m][r] with the smallest tr((E - B A) H (E - B A)ᵀ), H = L Lᵀ; column k of B and row k of A
 * have the same norm. */
static void low_rank(size_t m, size_t n, size_t r, double *a, double *b, const double *e, const double *h)
{
	double *l = xalloc(n * n, sizeof *l), *y = xalloc(m * n, sizeof *y), *u = xalloc(m * m, sizeof *u);
	double *square = xalloc(m, sizeof *square);

	for (size_t j = 0; j < n; j++)
		for (size_t i = j; i < n; i++) {
			double sum = h[i * n + j];

			for (size_t k = 0; k < j; k++)
				sum -= l[i * n + k] * l[j * n + k];
			l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
		}
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			for (size_t k = j; k < n; k++)
				y[i * n + j] += e[i * n + k] * l[k * n + j];
	jacobi(m, n, y, u, square);
	for (size_t k = 0; k < r; k++) {
		double norm = 0;

		for (size_t j = 0; j < n; j++) {
			a[k * n + j] = 0;
			for (size_t i = 0; i < m; i++)
				a[k * n + j] += u[k * m + i] * e[i * n + j];
			norm += a[k * n + j] * a[k * n + j];
		}
		for (size_t j = 0; j < n; j++)
			a[k * n + j] /= sqrt(sqrt(norm));
		for (size_t i = 0; i < m; i++)
			b[i * r + k] = u[k * m + i] * sqrt(sqrt(norm));
	}
	free(l), free(y), free(u), free(square);
}

/* E = W - Q - B A; q or a NULL: without that term. */
static void less(const struct problem *p, size_t r, double *e, const double *q, const double *a,
	const double *b)
{
	for (size_t i = 0; i < p->m; i++)
		for (size_t j = 0; j < p->n; j++) {
			double y = (double)p->w[i * p->n + j] - (q ? q[i * p->n + j] : 0);

			for (size_t k = 0; a && k < r; k++)
				y -= b[i * r + k] * a[k * p->n + j];
			e[i * p->n + j] = y;
		}
}

/* The alternating steps of CALDERA: B for A under H, A for B, each rounded; a, b receive the best pair. P is
 * in e. */
static void rounds(const struct problem *p, const struct branch_settings *s, double *a, double *b,
	const double *e, const double *h)
{
	const size_t m = p->m, n = p->n, r = s->rank;
	double *now_a = xalloc(r * n, sizeof *now_a), *now_b = xalloc(m * r, sizeof *now_b), best = INFINITY;
	double *g = xalloc(r * r, sizeof *g), *d = xalloc(m * n, sizeof *d), *t = xalloc(r * n, sizeof *t);
	double *x = xalloc(m * r + r * n, sizeof *x), loss;

	memcpy(now_a, a, r * n * sizeof *a);
	for (int round = 0; round < 5; round++) {
		memset(g, 0, r * r * sizeof *g), memset(t, 0, r * n * sizeof *t);
		for (size_t k = 0; k < r; k++)
			for (size_t j = 0; j < n; j++)
				for (size_t i = 0; i < n; i++)
					t[k * n + j] += now_a[k * n + i] * h[i * n + j];
		for (size_t k = 0; k < r * r; k++)
			for (size_t j = 0; j < n; j++)
				g[k] += t[k / r * n + j] * now_a[k % r * n + j];
		invert(r, g);
		memset(x, 0, m * r * sizeof *x);
		for (size_t i = 0; i < m; i++)
			for (size_t k = 0; k < r; k++)
				for (size_t l = 0; l < r; l++)
					for (size_t j = 0; j < n; j++)
						x[i * r + k] += e[i * n + j] * t[l * n + j] * g[l * r + k];
		quantized(s->storage, s->group, m, r, now_b, x);
		memset(g, 0, r * r * sizeof *g), memset(x, 0, r * n * sizeof *x);
		for (size_t k = 0; k < r * r; k++)
			for (size_t i = 0; i < m; i++)
				g[k] += now_b[i * r + k / r] * now_b[i * r + k % r];
		invert(r, g);
		for (size_t k = 0; k < r; k++)
			for (size_t l = 0; l < r; l++)
				for (size_t i = 0; i < m; i++)
					for (size_t j = 0; j < n; j++)
						x[k * n + j] += g[k * r + l] * now_b[i * r + l] *
							e[i * n + j];
		quantized(s->storage, s->group, r, n, now_a, x);
		memcpy(d, e, m * n * sizeof *d);
		for (size_t i = 0; i < m * n; i++)
			for (size_t k = 0; k < r; k++)
				d[i] -= now_b[i / n * r + k] * now_a[k * n + i % n];
		loss = trace(m, n, d, h);
		if (loss < best) {
			best = loss;
			memcpy(a, now_a, r * n * sizeof *a), memcpy(b, now_b, m * r * sizeof *b);
		}
	}
	free(now_a), free(now_b), free(g), free(d), free(t), free(x);
}

/* The loss of a method, each by its paper. */
static double plain(const struct problem *p, const char *name, const struct branch_settings *s, size_t steps)
{
	const size_t m = p->m, n = p->n, r = s->rank;
	const bool caldera = !strcmp(name, "caldera"), svdquant = !strcmp(name, "svdquant");
	double *h = xalloc(n * n, sizeof *h), *in = xalloc(n * n, sizeof *in), *e = xalloc(m * n, sizeof *e);
	double *q = xalloc(m * n, sizeof *q), *a = xalloc(r * n, sizeof *a), *b = xalloc(m * r, sizeof *b);
	double mean = 0, best = INFINITY, kept = NAN, whole, loss;

	for (size_t i = 0; i < n; i++)
		mean += (double)p->h[i * n + i] / (double)n;
	for (size_t i = 0; i < n * n; i++) {
		const bool diagonal = i % (n + 1) == 0;

		h[i] = (double)p->h[i];
		in[i] = caldera ? h[i] + (diagonal ? 0.01 * mean : 0) :
			!strcmp(name, "eora") ? h[i] : diagonal;
	}
	less(p, r, e, NULL, NULL, NULL);
	whole = trace(m, n, e, h);
	for (size_t t = 1; t <= steps; t++)
		for (int u = 0; u < 2; u++) {
			if ((u == 0) == (caldera || svdquant)) {
				less(p, r, e, t == 1 && u == 0 ? NULL : q, NULL, NULL);
				low_rank(m, n, r, a, b, e, in);
				if (s->storage.kind)
					rounds(p, s, a, b, e, in);
			} else {
				less(p, r, e, NULL, t == 1 && u == 0 ? NULL : a, b);
				if (caldera)
					gptq(&s->main.storage, s->main.group, m, n, q, e, in);
				else
					quantized(s->main.storage, s->main.group, m, n, q, e);
			}
			if (t == 1 && u == 0)
				continue;
			less(p, r, e, q, a, b);
			loss = trace(m, n, e, h) / whole;
			if (caldera) {		/* by the loss under H' */
				const double under = trace(m, n, e, in);

				kept = under < best ? loss : kept, best = fmin(best, under);
			} else if (svdquant && u == 1) {
				if (loss > best)
					t = steps;
				kept = best = fmin(best, loss);
			} else if (!svdquant)
				kept = loss;
		}
	free(h), free(in), free(e), free(q), free(a), free(b);
	return kept;
}

/* The loss of the stored layer. */
static double held(const struct problem *p, const struct branch_layer *l, const struct linear *main)
{
	const struct branch_settings *s = l->settings;
	const size_t m = p->m, n = p->n, r = s->rank;
	double *h = xalloc(n * n, sizeof *h), *q = xalloc(m * n, sizeof *q), *e = xalloc(m * n, sizeof *e);
	double *a = xalloc(r * n, sizeof *a), *b = xalloc(m * r, sizeof *b), y;
	float *w = xalloc(n, sizeof *w);

	if (!main)
		decode(&s->main.storage, m, n, s->main.group, &l->codes, q);
	for (size_t i = 0; main && i < m; i++) {
		linear_weight(main, i, 1, (float (*)[n])w);
		for (size_t j = 0; j < n; j++)
			q[i * n + j] = (double)w[j];
	}
	for (size_t i = 0; i < n * n; i++)
		h[i] = (double)p->h[i];
	for (size_t i = 0; i < r * n; i++)
		a[i] = (double)l->a[i];
	for (size_t i = 0; i < m * r; i++)
		b[i] = (double)l->b[i];
	less(p, r, e, q, a, b);
	y = trace(m, n, e, h);
	less(p, r, e, NULL, NULL, NULL);
	y /= trace(m, n, e, h);
	free(h), free(q), free(e), free(a), free(b), free(w);
	return y;
}

/* Products of floats in a loss: each of n terms has a relative error of 2^-24, far less than this. */
static bool near(double x, double y)
{
	return fabs(x - y) <= 1e-4 * fabs(y);
}

/* With numbers of the branch as floats. svdquant has few steps, so that no rounding is near a tie. */
static void algorithms(void **unused)
{
	static const struct { const char *name; size_t steps; } rows[] = {
		{ "lowrank", 1 }, { "svdquant", 1 }, { "svdquant", 6 }, { "loftq", 5 }, { "loftq", 1 },
		{ "caldera", 1 }, { "caldera", 4 }, { "eora", 1 },
	};
	static const struct { size_t m, n, r; const char *storage; long group; } sizes[] = {
		{ 7, 40, 3, "uint4", 16 }, { 2, 4, 1, "uint3", 2 }, { 24, 18, 4, "e2m1", 0 },
		{ 9, 32, 2, "nf4", 8 }, { 9, 32, 2, "int3", 32 },
	};

	(void)unused;
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			CASE("sizes[%zu] %s, rows[%zu] %s", k, sizes[k].storage, i, rows[i].name);
			const struct branch_method *y = method(rows[i].name);
			struct problem p = problem(sizes[k].m, sizes[k].n, 60, SIZE_MAX);
			const struct branch_settings s = settings(y, sizes[k].storage, sizes[k].group,
				sizes[k].r, rows[i].steps);
			struct branch_layer l = run(&p, y, &s, NULL);

			assert_int_equal(l.report.status, STATUS_DONE);
			if (!near(l.report.loss, plain(&p, rows[i].name, &s, rows[i].steps)))
				fail_msg("%s of %zu x %zu, %s: %.9g, not %.9g", rows[i].name, p.m, p.n,
					sizes[k].storage, l.report.loss,
					plain(&p, rows[i].name, &s, rows[i].steps));
			made_free(&l), problem_free(&p);
		}
}

/* CALDERA with A and B in a format whose rounding is symmetric in sign, since the sign of a singular vector
 * is not determined. */
static void factors_in_rounds(void **unused)
{
	const struct branch_method *y = method("caldera");
	struct problem p = problem(24, 40, 80, SIZE_MAX);
	struct branch_settings s = settings(y, "uint3", 8, 6, 3);
	struct branch_layer l;

	(void)unused;
	assert_true(format_parse(&s.storage, "int5"));
	for (s.group = 0; s.group < 6; s.group += 3) {
		CASE("group %ld", s.group);
		l = run(&p, y, &s, NULL);
		assert_true(near(l.report.loss, plain(&p, "caldera", &s, 3)));
		made_free(&l);
	}
	problem_free(&p);
}

/* The report equals the stored layer. A and B are numbers of their type or format. */
static void as_stored(void **unused)
{
	const char *const storages[] = { "uint4", "e2m1", "nvfp4", "mxfp4", "int3" };
	const char *const branches[] = { NULL, "int8", "nvfp4", "uint4", "e4m3fn" };
	enum { M = 70, N = 64, R = 5 };
	struct problem p = problem(M, N, 200, SIZE_MAX);

	(void)unused;
	for (const struct branch_method *y = branch_methods; y->name; y++)
		for (size_t i = 0; i < 5; i++) {
			CASE("%s, %s", y->name, storages[i]);
			struct branch_settings s = settings(y, storages[i], 16, R, y->steps > 5 ? 6 : 0);
			struct branch_layer l;
			double a[R * N], b[M * R];

			s.type = i % 2 ? HALF_BF16 : HALF_F16, s.group = i == 2 ? -1 : 16;
			if (branches[i])
				assert_true(format_parse(&s.storage, branches[i]));
			l = run(&p, y, &s, NULL);
			assert_int_equal(l.report.status, STATUS_DONE);
			assert_true(fabs(l.report.loss - held(&p, &l, NULL)) <= 1e-5 * l.report.loss);
			assert_true(l.report.loss <= l.report.start * (1 + 1e-3));
			if (branches[i]) {
				decode(&s.storage, R, N, s.group, &l.code_a, a);
				decode(&s.storage, M, R, s.group, &l.code_b, b);
			}
			for (size_t k = 0; k < R * N + M * R; k++) {
				const float x = k < R * N ? l.a[k] : l.b[k - R * N];
				uint16_t half;
				float back;

				half_narrow(1, &half, &x, s.type), half_widen(1, &back, &half, s.type);
				if (branches[i])
					assert_true(fabs((double)x - (k < R * N ? a[k] : b[k - R * N])) <=
						0x1p-22 * fabs((double)x));
				else
					assert_true(x == back);
			}
			/* ranges of mxfp4 saturate; scales of nvfp4 have few bits */
			assert_true(isnan(l.report.bound) == (strcmp(y->name, "fbquant") &&
				strcmp(y->name, "svdquant")));
			if (!isnan(l.report.bound) && strcmp(storages[i], "mxfp4") &&
				strcmp(storages[i], "nvfp4"))
				assert_true(l.report.bound <= 1 && l.report.bound > 0.5);
			made_free(&l);
		}
	problem_free(&p);
}

/* A given main path is kept. A main path that is fitted under H is at least as good under H. */
static void given(void **unused)
{
	enum { M = 70, N = 64, R = 6 };
	struct problem p = problem(M, N, 200, SIZE_MAX);
	struct branch_settings s = settings(method("lowrank"), "uint3", 16, R, 0);
	struct branch_layer low = run(&p, method("lowrank"), &s, NULL), l;
	const struct linear main = { .out = M, .in = N, .codes = low.codes.codes, .scale = low.codes.scale,
		.zero = low.codes.zero, .storage = s.main.storage, .group = 16, .groups = N / 16 };
	const char *const others[] = { "eora", "caldera", "fbquant" };

	(void)unused;
	s.type = HALF_F16;
	for (const struct branch_method *y = branch_methods; y->name; y++)
		if (quantizer_named(y->name)->keeps_main) {
			CASE("%s", y->name);
			l = run(&p, y, &s, &main);
			assert_int_equal(l.report.status, STATUS_DONE);
			assert_true(fabs(l.report.loss - held(&p, &l, &main)) <= 1e-5 * l.report.loss);
			assert_true(fabs(l.report.start - low.report.start) <= 1e-6 * low.report.start);
			assert_true(l.report.loss <= low.report.loss * (1 + 1e-3));
			made_free(&l);
		}
	for (size_t i = 0; i < 3; i++) {
		CASE("%s", others[i]);
		s.main.compensate = method(others[i])->compensate, s.steps = i == 2 ? 300 : 0;
		l = run(&p, method(others[i]), &s, NULL);
		assert_true(l.report.loss < low.report.loss);
		made_free(&l);
	}
	made_free(&low), problem_free(&p);
}

/* Fewer tokens than channels, a channel without input, no H for methods that need none, W = 0. */
static void singular(void **unused)
{
	enum { M = 40, N = 48, R = 8 };
	struct problem p = problem(M, N, 5, 7);

	(void)unused;
	for (const struct branch_method *y = branch_methods; y->name; y++)
		for (int in_format = 0; in_format < 2; in_format++) {
			CASE("in_format %d", in_format);
			struct branch_settings s = settings(y, "uint4", 16, R, y->steps > 20 ? 20 : 0);
			struct branch_layer l;

			s.type = HALF_F16;
			if (in_format)
				assert_true(format_parse(&s.storage, "int4"));
			l = run(&p, y, &s, NULL);
			assert_int_equal(l.report.status, STATUS_DONE);
			assert_true(fabs(l.report.loss - held(&p, &l, NULL)) <= 1e-5 * l.report.start);
			for (size_t i = 0; i < R * N; i++)
				assert_true(isfinite(l.a[i]));
			made_free(&l);
		}
	memset(p.w, 0, M * N * sizeof *p.w);
	for (const struct branch_method *y = branch_methods; y->name; y++) {
		CASE("%s", y->name);
		const struct branch_settings s = settings(y, "uint4", 16, R, 2);
		struct branch_layer l = run(&p, y, &s, NULL);

		assert_true(l.report.status == STATUS_DONE && isnan(l.report.loss));
		made_free(&l);
	}
	problem_free(&p);
}

static void without_hessian(void **unused)
{
	enum { M = 12, N = 20 };
	struct problem p = problem(M, N, 30, SIZE_MAX), none = p;

	(void)unused;
	for (size_t i = 0; i < N * N; i++)
		p.h[i] = i % (N + 1) == 0;
	none.h = NULL;
	for (const struct branch_method *y = branch_methods; y->name; y++)
		if (!quantizer_named(y->name)->needs_hessian) {
			CASE("%s", y->name);
			const struct branch_settings s = settings(y, "uint4", 5, 3, 0);
			struct branch_layer l = run(&p, y, &s, NULL), other = run(&none, y, &s, NULL);

			assert_memory_equal(l.a, other.a, 3 * N * sizeof(float));
			assert_memory_equal(l.codes.codes, other.codes.codes, M * N);
			assert_true(fabs(l.report.loss - other.report.loss) <= 1e-6 * l.report.loss);
			made_free(&l), made_free(&other);
		}
	problem_free(&p);
}

static void same_bits(void **unused)
{
	enum { M = 150, N = 96, R = 7 };
	struct problem p = problem(M, N, 150, 11);
	const int many = threads;

	(void)unused;
	for (const struct branch_method *y = branch_methods; y->name; y++) {
		CASE("%s", y->name);
		struct branch_settings s = settings(y, "uint4", 32, R, y->steps > 5 ? 5 : 0);
		struct branch_layer l, again;

		s.type = HALF_F16;
		if (!strcmp(y->name, "caldera"))
			assert_true(format_parse(&s.storage, "int6"));
		threads = 1, l = run(&p, y, &s, NULL);
		threads = 3, again = run(&p, y, &s, NULL);
		assert_memory_equal(l.a, again.a, R * N * sizeof(float));
		assert_memory_equal(l.b, again.b, M * R * sizeof(float));
		assert_memory_equal(l.codes.codes, again.codes.codes, M * N);
		assert_memory_equal(l.codes.scale, again.codes.scale, M * 3 * sizeof(float));
		assert_true(l.report.loss == again.report.loss && l.report.best == again.report.best);
		made_free(&l), made_free(&again);
	}
	threads = many;
	problem_free(&p);
}

static void refused(void **unused)
{
	struct problem p = problem(6, 16, 30, SIZE_MAX);
	float bad[6 * 16] = { [4 * 16] = INFINITY };
	const struct linear main = { .out = 6, .in = 16, .weight = bad };

	(void)unused;
	for (const struct branch_method *y = branch_methods; y->name; y++) {
		CASE("%s", y->name);
		struct branch_settings s = settings(y, "uint4", 8, 2, 2);
		const float w = p.w[3 * 16 + 2], h = p.h[5 * 16 + 1];
		struct branch_layer l;

		p.w[3 * 16 + 2] = NAN, l = run(&p, y, &s, NULL), p.w[3 * 16 + 2] = w;
		assert_true(l.report.status == STATUS_BAD_WEIGHT && l.report.index == 3);
		made_free(&l);
		p.h[5 * 16 + 1] = INFINITY, l = run(&p, y, &s, NULL), p.h[5 * 16 + 1] = h;
		assert_true(l.report.status == STATUS_BAD_HESSIAN && l.report.index == 5);
		made_free(&l);
		if (quantizer_named(y->name)->keeps_main) {
			l = run(&p, y, &s, &main);
			assert_true(l.report.status == STATUS_BAD_MAIN && l.report.index == 4);
			made_free(&l);
		}
		/* products of A and B have the size of W: beyond 65504² they do not fit f16 */
		for (size_t i = 0; i < 6 * 16; i++)
			p.w[i] *= 1e12f;
		s.type = HALF_F16, l = run(&p, y, &s, NULL);
		assert_true(l.report.status == STATUS_OVERFLOW || !strcmp(y->name, "fbquant"));
		made_free(&l);
		for (size_t i = 0; i < 6 * 16; i++)
			p.w[i] /= 1e12f;
	}
	problem_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(algorithms), cmocka_unit_test(factors_in_rounds),
		cmocka_unit_test(as_stored), cmocka_unit_test(given), cmocka_unit_test(singular),
		cmocka_unit_test(without_hessian), cmocka_unit_test(same_bits), cmocka_unit_test(refused)
	};

	linalg_init();
	threads_init(0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
