/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_reference.h -- the result of solver_run() (solver/solver.h), in plain float64 loops
 *
 *	struct result want = result_new(&s, d.m, d.n);
 *	bool good = reference(&s, &d, order, &want);	false: H is not positive definite at any damping
 *	... want.codes, .scale, .zero, .scale8, .scale_tensor, .index, .moved, .report.lambda, .report.dead
 *	result_free(&want);
 *
 * Rows and columns are processed one by one, without blocks of columns, with a dense inverse by Gauss-Jordan.
 * Columns are in the order of `order`, dead channels (H_ii = 0) last. For each row w:
 *
 *	UᵀU = (H + λ mean(diag H) I)⁻¹		inverse_factor(); GPTQ. λ: the first of damp · 1, 2, 5 ...
 *						100 for which U exists
 *	s₈ = max|W|/z_max, x = w/s₈		reference(); DPQ eq. 6, of the tensor or of the row
 *	[x ← FP8(x)]				fp8(); eq. 7, with round_first
 *	s = (max - min)/(2ⁿ - 1), z = -min/s	pair_of(), rounded(); eq. 8, of a group when its first
 *						column is next; symmetric: s = max|x|/largest value
 *	code = clamp(round(x/s) + z)		code_of(); eq. 9. ExMy: exmy_code(), FPE2M2 section 3.1;
 *						NF: quantile_code(), the quantiles of QLoRA
 *	y = FP8((code - z) s)			value_of(), fp8(); eq. 10
 *	e = (x_i - y)/U_ii, x_k ← x_k - e U_ik	keep_best(); eq. 12, k > i. DPQ algorithm 1; GPTQ
 *						if nothing is rounded to FP8. With several paths: the K
 *						of least Σ e² of all extensions by two codes
 *
 * Turns: closed_form() has (Cᵀ H' C) s = Cᵀ H' w; reference_turns().
 *
 * Searches of s and z: best_of() has minmax, and mse, the smallest Σ|x̂ - x|^2.4 over smaller ranges (the
 * search of GPTQ's public code). refined() has hessian, the smallest (x - x̂) M (x - x̂)ᵀ (solver/refine.h).
 * The search learned is not implemented here. From lib it uses settings, the facts of a format and
 * linear_groups(), no arithmetic.
 *
 * Numbers that are stored as floats are rounded to float: scales, s₈, and y before FP8.
 *
 * Sources: GPTQ (Frantar et al., 2022); DPQ section 3; FPE2M2 section 3.1; QLoRA (Dettmers et al., 2023).
 */
#ifndef TESTS_SOLVER_REFERENCE_H
#define TESTS_SOLVER_REFERENCE_H
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "num/format.h"
#include "quant/codes.h"
#include "quant/linear.h"
#include "solver/refine.h"
#include "solver/search.h"
#include "solver/solver.h"

/* A weight w [m][n], and the Hessian h [n][n] of its inputs: Σ x xᵀ. */
struct data {
	size_t m, n;
	float *w, *h;
};

/* Nearest value of an 8-bit float format, ties to the even code, from the list of its values. */
static double fp8(const struct format *f, double x, double limit)
{
	static double list[128];
	static char name[12];
	static int n;
	double a = fabs(x);
	int low = 0, high;

	if (strcmp(name, f->name) != 0) {
		strcpy(name, f->name);
		for (n = 0; n < 128; n++) {
			int e = n >> 3, m = n & 7;

			list[n] = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
			if (list[n] > (strcmp(name, "e4m3fn") == 0 ? 448 : 240))
				break;
		}
	}
	high = n - 1;
	if (a >= list[high])
		return copysign(fmin(list[high], limit), x);
	while (high - low > 1) {
		int mid = (low + high) / 2;

		if (list[mid] <= a)
			low = mid;
		else
			high = mid;
	}
	if (a - list[low] > list[high] - a || (a - list[low] == list[high] - a && low % 2))
		low = high;
	return copysign(fmin(list[low], limit), x);
}

/* The scale is s/divisor. */
struct pair {
	double s;
	int z;
	double stored;
};

/* MXFP4 and NVFP4 have the values of E2M1, halved. */
static bool is_fp4(const struct format *f)
{
	return strstr(f->name, "fp4");
}

static double unit_of(const struct format *f)
{
	return is_fp4(f) ? 0.5 : 1;
}

/* FPE2M2 section 3.1: bias 0, every code a number; x = y = 0: no such format. */
static bool is_exmy(const struct format *f, int *x, int *y)
{
	const char *s = is_fp4(f) ? "e2m1" : f->name;

	*x = s[1] - '0';
	*y = s[3] - '0';
	return s[0] == 'e' && s[2] == 'm' && !s[4];
}

static double exmy_value(int y, int code)
{
	int e = code >> y, m = code & ((1 << y) - 1);

	return e ? ldexp(1 + ldexp(m, -y), e) : ldexp(m, 1 - y);
}

/* Q = min(⌊a/v⌉ v, largest), v the step at a, as a code without its sign. */
static int exmy_code(const struct format *f, int x, int y, double a)
{
	int codes = 1 << (x + y), e;
	double v = ldexp(1, ilogb(fmax(a, 2)) - y), steps = f->away ? round(a / v) : nearbyint(a / v);
	double q = fmin(steps * v, exmy_value(y, codes - 1));

	e = q < 2 ? 0 : ilogb(q);
	return e ? (e << y) + (int)ldexp(q / ldexp(1, e) - 1, y) : (int)ldexp(q, y - 1);
}

/* QLoRA's quantiles, ascending. */
static const double *quantiles(const struct format *f)
{
	static double list[256];
	static int n;

	if (n == f->n)
		return list;
	n = f->n;

	int half = 1 << (n - 1);
	double o = 0.5 * ((1 - 1 / (2.0 * (2 * half - 1))) + (1 - 1 / (4.0 * half))),
		top = gsl_cdf_ugaussian_Pinv(o);

	for (int i = 0; i < half; i++)
		list[2 * half - 1 - i] = (float)(gsl_cdf_ugaussian_Pinv(o + (0.5 - o) * i / half) / top);
	list[half - 1] = 0;
	for (int i = 0; i < half - 1; i++)
		list[i] = (float)(-gsl_cdf_ugaussian_Pinv(o + (0.5 - o) * i / (half - 1)) / top);
	return list;
}

/* The nearest value; of two equally near ones the even rank, or the one farther from zero. */
static int quantile_code(const struct format *f, double x)
{
	const double *list = quantiles(f);
	int low = 0, high = (1 << f->n) - 1;

	while (high - low > 1) {
		int mid = (low + high) / 2;

		if (list[mid] <= x)
			low = mid;
		else
			high = mid;
	}

	double gain = fabs(list[low] - x) - fabs(list[high] - x);

	return gain > 0 || (gain == 0 && (f->away ? x > 0 : high % 2 == 0)) ? high : low;
}

/* The largest code of a symmetric integer, relative to the code of 0. */
static int half_of(const struct format *f)
{
	return (1 << (f->n - 1)) - 1;
}

static int code_of(const struct format *f, double value, struct pair p)
{
	double top = (1 << f->n) - 1, q = value / p.s, whole = f->away ? round(q) : nearbyint(q);
	int x, y, code;

	if (is_exmy(f, &x, &y)) {
		code = exmy_code(f, x, y, fabs(q) / unit_of(f));
		return code && q < 0 ? code | 1 << (x + y) : code;
	}
	if (f->name[0] == 'n')
		return quantile_code(f, q);
	if (!f->asymmetric)
		return (int)(fmin(fmax(whole, -half_of(f)), half_of(f)) + half_of(f));
	return (int)fmin(fmax(whole + p.z, 0), top);
}

static double value_of(const struct format *f, int code, struct pair p)
{
	int x, y, size;

	if (is_exmy(f, &x, &y)) {
		size = 1 << (x + y);
		return (code & size ? -1 : 1) * exmy_value(y, code & (size - 1)) * unit_of(f) * p.s;
	}
	if (f->name[0] == 'n')
		return quantiles(f)[code] * p.s;
	return (code - (f->asymmetric ? p.z : half_of(f))) * p.s;
}

/* A scale rounded to its type. A range gives the scale if the format reaches up to `top`. */
static struct pair rounded(const struct format *f, double range, double top, int z)
{
	static const struct { int digits, least; double most; } types[] = {
		[SCALE_BF16] = { 8, -126, 0x1.fep127 }, [SCALE_F16] = { 11, -14, 65504 },
		[SCALE_E4M3FN] = { 4, -6, 448 }, [SCALE_U8] = { 8, 7, 255 } };
	double x = range / top * f->divisor, step, stored;
	int e, of_max;

	if (f->scales == SCALE_F32)
		return (struct pair){ (float)(range / top), z, (float)(range / top) };
	if (f->scales == SCALE_E8M0) {
		frexp(range, &e);
		frexp(top, &of_max);
		stored = ldexp(1, (int)fmin(fmax(e - of_max, -127), 127));
	} else {
		e = (int)fmax(ilogb(x), types[f->scales].least) - types[f->scales].digits + 1;
		step = ldexp(1, e);
		stored = fmin(fmax(nearbyint(x / step) * step, step), types[f->scales].most);
	}
	return (struct pair){ (float)stored / f->divisor, z, stored };
}

static struct pair pair_of(const struct format *f, double min, double max)
{
	double top = (1 << f->n) - 1, half = 1;
	int x, y;

	if (is_exmy(f, &x, &y))
		half = exmy_value(y, (1 << (x + y)) - 1) * unit_of(f);
	else if (f->name[0] != 'n')
		half = half_of(f);
	min = fmin(min, 0);
	max = fmax(max, 0);
	if (max == min)
		return (struct pair){ 1 / f->divisor, 0, 1 };
	if (!f->asymmetric)
		return rounded(f, fmax(-min, max), half, 0);
	return rounded(f, max - min, top, (int)nearbyint(-min * top / (max - min)));
}

static double loss_of(const struct format *f, size_t n, const double x[n], struct pair p, double enough)
{
	double loss = 0;

	for (size_t i = 0; i < n && loss < enough; i++)
		loss += pow(fabs(value_of(f, code_of(f, x[i], p), p) - x[i]), 2.4);
	return loss;
}

static struct pair best_of(const struct solver *s, size_t n, const double x[n])
{
	static const double powers[] = { 1, 2, 0.5, 0.25 };
	const bool power = s->storage.scales == SCALE_E8M0;
	double min = 0, max = 0, least = INFINITY;
	struct pair best = { 1, 0, 1 };

	for (size_t i = 0; i < n; i++) {
		min = fmin(min, x[i]);
		max = fmax(max, x[i]);
	}
	for (int i = 0; i < (s->search == SEARCH_MINMAX ? 1 : power ? 4 : 80); i++) {
		const double factor = power ? powers[i] : 1 - i / 100.0;
		struct pair p = pair_of(&s->storage, min * factor, max * factor);
		double loss;

		p.z = pair_of(&s->storage, min, max).z;		/* without the rounding of p */
		loss = loss_of(&s->storage, n, x, p, least);

		if (loss < least) {
			least = loss;
			best = p;
		}
	}
	return best;
}

/* Codes of x, one after another under the U of the group, or without U each by itself; returns the cost of
 * their error. */
static double codes_of(const struct solver *s, size_t n, const double x[n], const double *m, const double *u,
	struct pair p, double v[n])
{
	const bool first = s->round_first && s->compute.kind;
	double *w = malloc(n * sizeof *w), cost = 0;

	memcpy(w, x, n * sizeof *w);
	for (size_t i = 0; i < n; i++) {
		v[i] = value_of(&s->storage, code_of(&s->storage, first ? fp8(&s->compute, w[i], 1e9) :
			w[i], p), p);
		for (size_t k = i + 1; k < n && u; k++)
			w[k] -= (w[i] - v[i]) / u[i * n + i] * u[i * n + k];
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			cost += (x[i] - v[i]) * m[i * n + k] * (x[k] - v[k]);
	free(w);
	return cost;
}

/* Σ a_i M_ik b_k; NULL: all ones */
static double form_of(size_t n, const double *m, const double *a, const double *b)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			sum += (a ? a[i] : 1) * m[i * n + k] * (b ? b[k] : 1);
	return sum;
}

/* The pair with the smallest cost under the codes: the zero from least squares for s and z·s, rounded, then
 * the scale by trisection. */
static struct pair min_pair(const struct format *f, size_t n, const double *m, const double x[n],
	const double v[n], struct pair p)
{
	const double vv = form_of(n, m, v, v), v1 = form_of(n, m, v, NULL), ones = form_of(n, m, NULL, NULL);
	const double xv = form_of(n, m, x, v), x1 = form_of(n, m, x, NULL), det = vv * ones - v1 * v1;
	double low = 0.2, high = 5, *moved = malloc(n * sizeof *moved), square, product;
	int z = p.z;

	if (f->asymmetric && det > 1e-6 * vv * ones && xv * ones - v1 * x1 > 0)
		z += (int)nearbyint((v1 * xv - vv * x1) / (xv * ones - v1 * x1) / p.s);
	z = (int)fmin(fmax(z, 0), (1 << f->bits) - 1);
	for (size_t i = 0; i < n; i++)
		moved[i] = v[i] - (f->asymmetric ? (z - p.z) * p.s : 0);
	square = form_of(n, m, moved, moved), product = form_of(n, m, x, moved);
	for (int i = 0; i < 100; i++) {	/* of |x - by·moved|², without the constant */
		const double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if (a * a * square - 2 * a * product < b * b * square - 2 * b * product)
			high = b;
		else
			low = a;
	}
	free(moved);
	if (f->scales == SCALE_F32)
		return (struct pair){ (float)(low * p.s), z, (float)(low * p.s) };
	return rounded(f, low * p.s, 1, z);
}

/* The search hessian, for M = (UᵀU)⁻¹ or M = H of the group. */
static struct pair refined(const struct solver *s, size_t n, const double x[n], const double *m,
	const double *u, struct pair p)
{
	static const double powers[] = { 1, 2, 0.5, 0.25 };
	double *v = malloc(n * sizeof *v), least = INFINITY, top = 0;
	struct pair best = p;

	for (size_t i = 0; i < n; i++)
		top = fmax(top, fabs(x[i]));
	for (int i = 0; i <= REFINE_ROUNDS && top > 0; i++) {
		const double cost = codes_of(s, n, x, m, u, p, v);

		if (cost < least)
			least = cost, best = p;
		if (s->storage.scales == SCALE_E8M0)
			p = pair_of(&s->storage, i < 4 ? -top * powers[i] : 0, i < 4 ? top * powers[i] : 0);
		else
			p = min_pair(&s->storage, n, m, x, v, p);
	}
	free(v);
	return best;
}

/* The inverse of a positive definite matrix, by Gauss-Jordan. */
static double *inverse_of(size_t n, const double *a)
{
	double (*w)[2 * n] = malloc(n * sizeof *w), *y = malloc(n * n * sizeof *y);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			w[i][k] = a[i * n + k], w[i][n + k] = i == k;
	for (size_t i = 0; i < n; i++) {
		const double d = w[i][i];

		for (size_t k = 0; k < 2 * n; k++)
			w[i][k] /= d;
		for (size_t r = 0; r < n; r++) {
			const double f = w[r][i];

			for (size_t k = 0; k < 2 * n && r != i; k++)
				w[r][k] -= f * w[i][k];
		}
	}
	for (size_t i = 0; i < n * n; i++)
		y[i] = w[i / n][n + i % n];
	free(w);
	return y;
}

/* The group of position i: its weights x, of `count` live columns; their positions are in `at`. */
static struct pair refined_group(const struct solver *s, size_t live, const double u[live][live],
	const float *h, size_t n, const int32_t column[n], size_t count, const size_t at[count],
	const double x[count], struct pair start)
{
	const bool sweep = s->compensate != COMPENSATE_NONE && at[count - 1] - at[0] == count - 1;
	double *own = calloc(count * count, sizeof *own), *b = calloc(count * count, sizeof *b), *m;
	struct pair p;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			if (!sweep)
				b[i * count + k] = h[(size_t)column[at[i]] * n + (size_t)column[at[k]]];
			else if (k >= i)
				own[i * count + k] = u[at[i]][at[k]];
	for (size_t i = 0; i < count && sweep; i++)
		for (size_t k = 0; k < count; k++)
			for (size_t r = 0; r < count; r++)
				b[i * count + k] += own[r * count + i] * own[r * count + k];
	m = sweep ? inverse_of(count, b) : b;
	p = refined(s, count, x, m, sweep ? own : NULL, start);
	if (sweep)
		free(m);
	free(b);
	free(own);
	return p;
}

static size_t group_columns(const struct solver *s, size_t n)
{
	return s->group <= 0 || (size_t)s->group > n ? n : (size_t)s->group;
}

/* UᵀU = (P (H + λ mean) Pᵀ)⁻¹ by Gauss-Jordan and a plain Cholesky. */
static bool inverse_factor(size_t n, double u[n][n], size_t full, const float h[full][full],
	const int32_t column[n], double lambda)
{
	double mean = 0, (*a)[2 * n] = malloc(n * sizeof *a);
	bool good = true;

	for (size_t i = 0; i < n; i++)
		mean += h[column[i]][column[i]] / (double)n;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			a[i][k] = h[column[i]][column[k]] + (i == k) * lambda * mean;
			a[i][n + k] = i == k;
		}
	/* Pivots of a symmetric matrix without exchanges are positive if and only if the matrix is positive
	 * definite. */
	for (size_t i = 0; i < n && good; i++) {
		double d = a[i][i];

		good = d > 0;
		for (size_t k = 0; k < 2 * n; k++)
			a[i][k] /= d;
		for (size_t r = 0; r < n; r++) {
			double f = a[r][i];

			if (r != i && f != 0)
				for (size_t k = 0; k < 2 * n; k++)
					a[r][k] -= f * a[i][k];
		}
	}
	for (size_t i = 0; i < n && good; i++)
		for (size_t k = 0; k < n; k++) {
			double v = k >= i ? a[i][n + k] : 0;

			for (size_t r = 0; r < i && k >= i; r++)
				v -= u[r][i] * u[r][k];
			u[i][k] = k < i ? 0 : k == i ? sqrt(v) : v / u[i][i];
		}
	free(a);
	return good;
}

struct result {
	uint8_t *codes, *zero;
	float *scale, *scale8, scale_tensor;
	int32_t *index;
	bool moved;
	struct codes made;		/* views of the codes in this struct */
	struct solver_report report;
	size_t groups;
};

static struct result result_new(const struct solver *s, size_t m, size_t n)
{
	struct result a = { .groups = linear_groups(n, s->group) };

	a.codes = calloc(m * n, 1);
	a.zero = calloc(m * a.groups, 1);
	a.scale = calloc(m * a.groups, sizeof *a.scale);
	a.scale8 = calloc(m, sizeof *a.scale8);
	a.index = calloc(n, sizeof *a.index);
	return a;
}

static void result_free(struct result *a)
{
	free(a->codes);
	free(a->zero);
	free(a->scale);
	free(a->scale8);
	free(a->index);
}

/* The code of the next value on the other side of v than the value of `code`, or else on its side. */
static uint8_t other_code(const struct format *f, double v, uint8_t code, struct pair p)
{
	const double y = value_of(f, code, p);

	for (int turn = 0; turn < 2; turn++) {
		const double side = (y < v) == !turn ? 1 : -1;
		double best = INFINITY;
		uint8_t found = code;

		for (int c = 0; c < 1 << f->bits; c++) {
			const double far = side * (value_of(f, (uint8_t)c, p) - y);

			if ((c & f->code_mask) <= f->code_last && far > 0 && far < best)
				best = far, found = (uint8_t)c;
		}
		if (found != code)
			return found;
	}
	return code;
}

/* A path through the columns: the weights that its errors have changed, and Σ e². */
struct path {
	double cost, *w;
	uint8_t *codes;
};

/* Keeps the best of 2K extensions of K paths by the nearest code and the next one. e [k][t]: error/U_ii of
 * extension t of path k. */
static void keep_best(size_t paths, size_t n, size_t i, size_t live, const double u[live][live],
	struct path path[paths], int32_t column, const uint8_t code[paths][2], const double e[paths][2])
{
	struct path next[SOLVER_PATHS];
	bool used[SOLVER_PATHS][2] = { { false } };

	for (size_t k = 0; k < paths; k++) {
		size_t from = 0, t = 0;
		double best = NAN;

		for (size_t c = 0; c < 2 * paths; c++) {
			const double cost = path[c / 2].cost + e[c / 2][c % 2] * e[c / 2][c % 2];

			if (!used[c / 2][c % 2] && !(cost >= best))
				best = cost, from = c / 2, t = c % 2;
		}
		used[from][t] = true;
		next[k] = (struct path){ best, malloc(n * sizeof(double)), malloc(n) };
		memcpy(next[k].w, path[from].w, n * sizeof(double));
		memcpy(next[k].codes, path[from].codes, n);
		next[k].codes[column] = code[from][t];
		for (size_t q = i + 1; q < live; q++)
			next[k].w[q] -= e[from][t] * u[i][q];
	}
	for (size_t k = 0; k < paths; k++) {
		free(path[k].w), free(path[k].codes);
		path[k] = next[k];
	}
}

static void reference_row(const struct solver *s, size_t n, size_t live, const int32_t column[n],
	const int32_t group[n], const double x0[n], const double u[live][live], const float *h,
	uint8_t codes[n], struct pair pair[], size_t groups, bool given)
{
	const bool fp = s->compute.kind, solve = s->compensate != COMPENSATE_NONE;
	const double limit = s->saturate > 0 ? s->saturate : 1e9;
	const size_t paths = solve && s->paths ? s->paths : 1;
	double *seen = malloc(n * sizeof *seen), *x = malloc(n * sizeof *x);
	bool *fitted = calloc(groups, sizeof *fitted);
	size_t count, *at = malloc(n * sizeof *at);
	struct path path[SOLVER_PATHS];

	for (size_t k = 0; k < paths; k++) {
		path[k] = (struct path){ k ? INFINITY : 0, malloc(n * sizeof *x), calloc(n, 1) };
		memcpy(path[k].w, x0, n * sizeof *x);	/* by position */
	}
	memcpy(seen, x0, n * sizeof *seen);	/* the weights for the parameters of groups */
	for (size_t i = 0; i < live; i++) {
		size_t g = (size_t)group[i];
		struct pair *p = &pair[g];
		double e[SOLVER_PATHS][2];
		uint8_t code[SOLVER_PATHS][2];

		if (solve && !s->static_groups && s->group_view == VIEW_EXACT)
			memcpy(seen, path->w, n * sizeof *seen);
		if (solve && !s->static_groups && s->group_view == VIEW_BLOCK && i % 128 == 0)
			memcpy(seen, path->w, n * sizeof *seen);
		if (!given && !fitted[g]) {
			count = 0;
			for (size_t k = 0; k < n; k++)
				if (group[k] == group[i])
					x[count++] = s->round_first && fp ? fp8(&s->compute, seen[k], 1e9) :
						seen[k];
			*p = best_of(s, count, x);
			fitted[g] = true;
			count = 0;
			for (size_t k = 0; k < live; k++)
				if (group[k] == group[i])
					x[count] = seen[k], at[count++] = k;
			if (s->search == SEARCH_HESSIAN)
				*p = refined_group(s, live, u, h, n, column, count, at, x, *p);
		}
		for (size_t k = 0; k < paths; k++) {
			const double w = path[k].w[i];
			const double v = s->round_first && fp ? fp8(&s->compute, w, 1e9) : w;

			code[k][0] = (uint8_t)code_of(&s->storage, v, *p);
			code[k][1] = paths > 1 ? other_code(&s->storage, v, code[k][0], *p) : code[k][0];
			for (size_t t = 0; t < 2 && solve; t++) {
				double y = (float)value_of(&s->storage, code[k][t], *p);

				if (fp && s->compensate == COMPENSATE_BOTH)
					y = fp8(&s->compute, y, limit);
				e[k][t] = (w - y) / u[i][i];
			}
		}
		if (solve)
			keep_best(paths, n, i, live, u, path, column[i], (const uint8_t (*)[2])code,
				(const double (*)[2])e);
		else
			path->codes[column[i]] = code[0][0];
	}
	memcpy(codes, path->codes, n);
	for (size_t i = live; i < n; i++) {
		if (!given && !fitted[group[i]])
			pair[group[i]] = pair_of(&s->storage, 0, 0);
		codes[column[i]] = (uint8_t)code_of(&s->storage, 0, pair[group[i]]);
	}
	for (size_t k = 0; k < paths; k++)
		free(path[k].w), free(path[k].codes);
	free(seen);
	free(x);
	free(fitted);
	free(at);
}

/* H' = H/mean + λI of live columns, from which the costs of turns are computed. */
struct damped {
	size_t live;
	double *h;			/* [live][live] */
};

static struct damped damp(size_t n, size_t live, const int32_t column[n], const float *h, double lambda)
{
	struct damped y = { live, malloc(live * live * sizeof *y.h) };
	double mean = 0;

	for (size_t i = 0; i < live; i++)
		mean += h[(size_t)column[i] * n + (size_t)column[i]] / (double)live;
	for (size_t i = 0; i < live; i++)
		for (size_t k = 0; k < live; k++)
			y.h[i * live + k] = h[(size_t)column[i] * n + (size_t)column[k]] / mean +
				(i == k) * lambda;
	return y;
}

/* Scales of given codes: (Cᵀ H' C) s = Cᵀ H' x, rounded to their type; those that are not positive stay. */
static void closed_form(const struct solver *s, const struct damped *h, const int32_t column[],
	const int32_t group[], size_t groups, const double x[], const uint8_t codes[],
	struct pair pair[groups])
{
	double (*a)[groups] = calloc(groups, sizeof *a), *b = calloc(groups, sizeof *b);
	double *c = malloc(h->live * sizeof *c);

	for (size_t i = 0; i < h->live; i++) {
		const struct pair unit = { 1, pair[group[i]].z, 1 };

		c[i] = value_of(&s->storage, codes[column[i]], unit);
	}
	for (size_t i = 0; i < h->live; i++)
		for (size_t k = 0; k < h->live; k++) {
			a[group[i]][group[k]] += c[i] * h->h[i * h->live + k] * c[k];
			b[group[i]] += c[i] * h->h[i * h->live + k] * x[k];
		}
	for (size_t g = 0; g < groups; g++)
		if (a[g][g] == 0)
			a[g][g] = 1, b[g] = pair[g].s;
	for (size_t i = 0; i < groups; i++)	/* Gauss */
		for (size_t k = i + 1; k < groups; k++) {
			const double f = a[k][i] / a[i][i];

			for (size_t q = i; q < groups; q++)
				a[k][q] -= f * a[i][q];
			b[k] -= f * b[i];
		}
	for (size_t i = groups; i-- > 0;) {
		for (size_t k = i + 1; k < groups; k++)
			b[i] -= a[i][k] * b[k];
		b[i] /= a[i][i];
	}
	for (size_t g = 0; g < groups; g++)
		if (b[g] > 0) {
			struct pair new = rounded(&s->storage, b[g], 1, pair[g].z);

			if (s->storage.scales == SCALE_E8M0) {	/* the nearest power of two */
				new.stored = exp2(floor(log2(b[g] / 1.5)) + 1);
				new.s = (float)new.stored;
			}

			if (new.s > 0)
				pair[g] = new;
		}
	free(a), free(b), free(c);
}

static double cost_of(const struct solver *s, const struct damped *h, const int32_t column[],
	const int32_t group[], const double x[], const uint8_t codes[], const struct pair pair[])
{
	double *e = malloc(h->live * sizeof *e), cost = 0;

	for (size_t i = 0; i < h->live; i++) {
		double y = (float)value_of(&s->storage, codes[column[i]], pair[group[i]]);

		if (s->compute.kind && s->compensate == COMPENSATE_BOTH)
			y = fp8(&s->compute, y, s->saturate > 0 ? s->saturate : 1e9);
		e[i] = x[i] - y;
	}
	for (size_t i = 0; i < h->live; i++)
		for (size_t k = 0; k < h->live; k++)
			cost += e[i] * h->h[i * h->live + k] * e[k];
	free(e);
	return cost;
}

/* Scales for the codes, then codes for the scales, in turns; the best of all stays. */
static void reference_turns(const struct solver *s, const struct damped *h, size_t n, const int32_t column[n],
	const int32_t group[n], const double x[n], const double u[h->live][h->live], const float *hessian,
	uint8_t codes[n], struct pair pair[], size_t groups)
{
	struct pair *now = malloc(groups * sizeof *now);
	uint8_t *of = malloc(n);
	double best = cost_of(s, h, column, group, x, codes, pair);

	memcpy(now, pair, groups * sizeof *now);
	memcpy(of, codes, n);
	for (size_t i = 0; i < 2 * s->turns; i++) {
		double cost;

		if (i % 2)
			reference_row(s, n, h->live, column, group, x, u, hessian, of, now, groups, true);
		else
			closed_form(s, h, column, group, groups, x, of, now);
		cost = cost_of(s, h, column, group, x, of, now);
		if (cost < best) {
			best = cost;
			memcpy(pair, now, groups * sizeof *now);
			memcpy(codes, of, n);
		}
	}
	free(now), free(of);
}

/* The divisor of scales in e4m3fn: the largest possible scale of a group becomes 448. */
static float divisor_of(const struct solver *s, size_t n, const double x[n])
{
	const struct format *f = &s->storage;
	double min = 0, max = 0, top = f->asymmetric ? (1 << f->n) - 1 : is_fp4(f) ? 6 : f->max;

	if (f->scales != SCALE_E4M3FN)
		return 1;
	for (size_t i = 0; i < n; i++) {
		const double v = s->round_first && s->compute.kind ? fp8(&s->compute, x[i], 1e9) : x[i];

		min = fmin(min, v);
		max = fmax(max, v);
	}
	if (max == min)
		return 1;
	return (float)(448 * top / (f->asymmetric ? max - min : fmax(-min, max)));
}

/* The layer by the equations, without blocks; false: H is not positive definite at any damping. */
static bool reference(const struct solver *s, const struct data *d, const int32_t *order, struct result *a)
{
	const size_t m = d->m, n = d->n, size = group_columns(s, n);
	const bool solve = s->compensate != COMPENSATE_NONE;
	static const double ladder[] = { 1, 2, 5, 10, 20, 50, 100 };
	int32_t *column = malloc(n * sizeof *column), *group = malloc(n * sizeof *group);
	bool *seen = calloc(n, sizeof *seen), stand = true, good = !solve;
	struct pair *pair = malloc(a->groups * sizeof *pair), tensor = { 1, 0, 1 };
	struct solver own = *s;
	double *s8 = malloc(m * sizeof *s8), *x, all = 0;
	size_t live = 0, at;

	for (size_t i = 0; i < n; i++) {
		size_t c = order ? (size_t)order[i] : i, g = c / size;

		if (i && order && (size_t)order[i - 1] / size != g && seen[g])
			stand = false;
		seen[g] = true;
		if (!solve || d->h[c * n + c] > 0)
			column[live++] = (int32_t)c;
	}
	at = live;
	for (size_t i = 0; i < n; i++) {
		size_t c = order ? (size_t)order[i] : i;

		if (solve && d->h[c * n + c] == 0)
			column[at++] = (int32_t)c;
	}
	for (size_t i = 0; i < n; i++) {
		group[i] = (int32_t)((stand || s->static_groups ? (size_t)column[i] : i) / size);
		a->index[column[i]] = group[i];
	}
	a->report = (struct solver_report){ .dead = n - live };
	a->moved = !stand && !s->static_groups;

	double (*u)[live] = malloc(live * sizeof *u);

	for (size_t i = 0; !good && i < 7; i++) {
		a->report.lambda = s->damp * ladder[i];
		good = inverse_factor(live, u, n, (const float (*)[n])d->h, column, a->report.lambda);
	}

	x = calloc(m * n, sizeof *x);
	for (size_t r = 0; r < m; r++) {
		double top = 0;

		for (size_t i = 0; i < live; i++)
			top = fmax(top, fabs(d->w[r * n + (size_t)column[i]]));
		s8[r] = top;
		all = fmax(all, top);
	}
	for (size_t r = 0; r < m; r++) {
		if (!s->scale8_channel)
			s8[r] = all;
		s8[r] /= s->z_max;
		if (s->pow2_scale && s8[r] > 0)
			s8[r] = exp2(ceil(log2(s8[r])));
		s8[r] = !s->compute.kind || s8[r] == 0 ? 1 : (float)fmax(s8[r], s->min_scale8);
		a->scale8[r] = (float)s8[r];
		for (size_t i = 0; i < live; i++)
			x[r * n + i] = d->w[r * n + (size_t)column[i]] / s8[r];
	}
	own.storage.divisor = a->scale_tensor = divisor_of(s, m * n, x);
	s = &own;
	if (s->group == -1) {
		double *v = malloc(m * n * sizeof *v);

		for (size_t i = 0; i < m * n; i++)
			v[i] = s->round_first && s->compute.kind ? fp8(&s->compute, x[i], 1e9) : x[i];
		tensor = best_of(s, m * n, v);
		free(v);
	}
	const struct damped h = damp(n, live, column, d->h, a->report.lambda);

	for (size_t r = 0; r < m && good; r++) {
		pair[0] = tensor;
		reference_row(s, n, live, column, group, x + r * n, (const double (*)[live])u, d->h,
			a->codes + r * n, pair, a->groups, s->group == -1);
		if (s->turns)
			reference_turns(s, &h, n, column, group, x + r * n, (const double (*)[live])u, d->h,
				a->codes + r * n, pair, a->groups);
		for (size_t g = 0; g < a->groups; g++) {
			a->scale[r * a->groups + g] = (float)pair[g].stored;
			a->zero[r * a->groups + g] = (uint8_t)pair[g].z;
		}
	}
	free(h.h);
	free(u);
	free(x);
	free(s8);
	free(pair);
	free(column);
	free(group);
	free(seen);
	return good;
}
#endif
