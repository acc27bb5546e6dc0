/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solve.cu -- the solver: factor, and codes of spans and blocks of columns; see device/device.h
 *
 * A thread takes a row, as a lane does in solver/solver.c, with the same numbers in float and in double. A
 * row's errors of a block are in shared memory; blocks are so small that they and the triangle of U fit.
 */
#include <math.h>
#include "cuda/gpu.h"
#include "cuda/growing.h"
#include "cuda/library.h"
#include "cuda/module.h"
#include "cuda/weight_code.h"

enum { WIDE = BLOCK_THREADS, ROWS = 32, SQUARE = 8, PIECE = 32, TILE = 256 };

/* ---- transposition ---- */

struct transpose_of { size_t m, n, stride; float *y; const float *x; };

/* A thread takes SQUARE columns of a row: a sector of memory. */
KERNEL(transpose, struct transpose_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD, first = (size_t)BLOCK_Y * SQUARE;

	for (size_t j = first; i < a.m && j < first + SQUARE && j < a.n; j++)
		a.y[j * a.stride + i] = a.x[i * a.n + j];
}

void gpu_transpose(size_t m, size_t n, size_t stride, float *y, const float *x)
{
	const struct transpose_of a = { m, n, stride, y, x };

	LAUNCH(transpose, blocks_of(m, WIDE), blocks_of(n, SQUARE), WIDE, a);
}

struct transpose_codes_of { size_t m, n; uint8_t *y; const uint8_t *x; };

KERNEL(transpose_codes, struct transpose_codes_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD, first = (size_t)BLOCK_Y * PIECE;

	for (size_t j = first; i < a.m && j < first + PIECE && j < a.n; j++)
		a.y[i * a.n + j] = a.x[j * a.m + i];
}

void gpu_transpose_codes(size_t m, size_t n, uint8_t *y, const uint8_t *x)
{
	const struct transpose_codes_of a = { m, n, y, x };

	LAUNCH(transpose_codes, blocks_of(m, WIDE), blocks_of(n, PIECE), WIDE, a);
}

/* ---- ranges ---- */

struct ranges_of { struct device_solve s; float *low, *high; };

KERNEL(ranges, struct ranges_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD;
	float low = 0, high = 0, nan = 0;

	if (l >= a.s.m)
		return;
	for (size_t p = 0; p < a.s.n; p++) {
		const float w = a.s.w[(size_t)a.s.column[p] * a.s.m + l];

		nan += w - w;
		low = p < a.s.live && w < low ? w : low;
		high = p < a.s.live && w > high ? w : high;
	}
	a.low[l] = nan == 0 ? low : NAN;
	a.high[l] = high;
}

void gpu_ranges(const struct device_solve *s, float *low, float *high)
{
	const struct ranges_of a = { *s, low, high };

	LAUNCH(ranges, blocks_of(s->m, WIDE), 1, WIDE, a);
}

/* ---- factor ---- */

/* The lower triangle of J(PHPᵀ/mean + λ)J, where J reverses the order. */
KERNEL(fill, struct device_factor)
{
	const size_t k = (size_t)BLOCK * THREADS + THREAD, i = BLOCK_Y, last = a.live - 1;
	double x;

	if (k > i)
		return;
	x = a.h[(size_t)a.column[last - i] * a.n + (size_t)a.column[last - k]] / a.mean;
	a.work[i * a.live + k] = (float)(k == i ? x + a.lambda : x);
}

KERNEL(reverse, struct device_factor)
{
	const size_t k = (size_t)BLOCK * THREADS + THREAD, i = BLOCK_Y, last = a.live - 1;

	if (k <= i)
		a.r[(last - i) * a.live + last - k] = a.work[i * a.live + k];
}

size_t gpu_factor(const struct device_factor *f)
{
	size_t info;

	LAUNCH(fill, blocks_of(f->live, WIDE), f->live, WIDE, *f);
	info = library_cholesky(f->live, f->work);
	if (!info)
		LAUNCH(reverse, blocks_of(f->live, WIDE), f->live, WIDE, *f);
	return info;
}

struct inverse_of { size_t live; const float *r; const struct device_span *span; };

/* A thread computes a column of the inverse t of the diagonal block of R, from below. v = tᵀ. */
KERNEL(inverse, struct inverse_of)
{
	const size_t j = (size_t)BLOCK * THREADS + THREAD;
	const struct device_span s = a.span[BLOCK_Y];
	const size_t n = s.last - s.first;
	const float *r = a.r + s.first * (a.live + 1);

	if (j >= n)
		return;
	for (size_t i = j + 1; i-- > 0;) {
		double sum = i == j ? 1 : 0;

		for (size_t k = i + 1; k <= j; k++)
			sum -= (double)r[i * a.live + k] * s.work[k * n + j];
		sum /= (double)r[i * a.live + i];
		s.work[i * n + j] = sum;
		s.v[j * n + i] = (float)sum;
	}
	for (size_t i = j + 1; i < n; i++)
		s.v[j * n + i] = 0;
}

void gpu_inverse(size_t live, const float *r, size_t n, const struct device_span *span, size_t widest)
{
	const struct inverse_of a = { live, r, span };

	LAUNCH(inverse, blocks_of(widest, ROWS), n, ROWS, a);
}

/* ---- columns ---- */

/* d = Uᵀ R_earlier,span e_earlier */
void gpu_span(const struct device_solve *s, const struct device_span *span)
{
	const size_t m = s->m, width = span->last - span->first;
	const struct gemm earlier = { .m = width, .n = m, .k = span->first, .transpose_a = true, .alpha = 1,
		.a = s->r + span->first, .b = s->e, .c = s->d_before, .lda = s->live, .ldb = m, .ldc = m };
	const struct gemm inside = { .m = width, .n = m, .k = width, .alpha = 1, .a = span->v,
		.b = s->d_before, .c = s->d, .lda = width, .ldb = m, .ldc = m };

	if (!span->first) {
		library_clear(s->d, width * m * sizeof *s->d);
		return;
	}
	library_gemm(&earlier);
	library_gemm(&inside);
}

struct block_of { struct device_solve s; struct device_span span; size_t first, last; };

/* Codes the weight x at position p; as errors() of solver/solver.c. Returns its error over the pivot. */
DEVICE_FUNCTION float code_weight(const struct device_solve *s, size_t p, size_t l, double x, double sum[3])
{
	const size_t column = (size_t)s->column[p], at = (size_t)s->group[p] * s->m + l;
	float *w = s->w + column * s->m + l, value, y, dual, target, b, e;
	const float scale = s->scale[at], scale8 = s->scale8 ? s->scale8[l] : 1;

	s->code[column * s->m + l] = code_of(&s->storage, weight_first(s, x), scale, s->zero[at], &value);
	y = value * scale;
	dual = s->compute ? value_of(s->compute, y, s->saturate) : y;
	target = s->of_storage ? y : dual;
	b = (float)((x - (double)target) * (double)s->r[p * (s->live + 1)]);
	e = (float)(*w / (double)scale8 - (double)target);
	*w -= dual * scale8;
	s->e[p * s->m + l] = e;
	sum[0] += (double)b * b;
	sum[1] += (double)e * e;
	sum[2] += (double)*w * *w;
	return b;
}

KERNEL(quantize, struct block_of)
{
	SHARED float u[DEVICE_BLOCK][DEVICE_BLOCK], b[DEVICE_BLOCK][ROWS];
	SHARED double x[DEVICE_BLOCK][ROWS];
	const size_t l = (size_t)BLOCK * ROWS + THREAD, m = a.s.m, n = a.last - a.first;
	const size_t width = a.span.last - a.span.first, at = a.first - a.span.first;
	double sum[3] = { 0, 0, 0 };

	for (size_t i = THREAD; i < n * n; i += ROWS)
		u[i / n][i % n] = a.span.v[(at + i / n) * width + at + i % n];
	BARRIER();
	if (l >= m)
		return;
	for (size_t k = 0; k < n; k += READ_AHEAD) {
		double y[READ_AHEAD];

		for (size_t i = 0; i < READ_AHEAD; i++) {
			const size_t j = k + i < n ? k + i : k;

			y[i] = weight_at(&a.s, a.first + j, l, a.s.d + (at + j) * m);
		}
		for (size_t i = 0; i < READ_AHEAD && k + i < n; i++)
			x[k + i][THREAD] = y[i];
	}
	for (size_t k = 0; k < n; k++) {
		float before = 0;

		for (size_t i = 0; i < k; i++)
			before += u[k][i] * b[i][THREAD];
		b[k][THREAD] = code_weight(&a.s, a.first + k, l, x[k][THREAD] - (double)before, sum);
		a.s.b[k * m + l] = b[k][THREAD];
	}
	a.s.cost[l] += sum[0];
	a.s.square[l] += sum[1];
	a.s.error[l] += sum[2];
}

void gpu_block(const struct device_solve *s, const struct device_span *span, size_t first, size_t last)
{
	const struct block_of a = { *s, *span, first, last };
	const size_t m = s->m, at = first - span->first, n = last - first, width = span->last - span->first;
	const size_t rest = span->last - last;
	const struct gemm g = { .m = rest, .n = m, .k = n, .alpha = -1, .beta = 1,
		.a = span->v + (at + n) * width + at, .b = s->b, .c = s->d + (at + n) * m, .lda = width,
		.ldb = m, .ldc = m };

	LAUNCH_TOGETHER(quantize, blocks_of(m, ROWS), 1, ROWS, a);
	if (rest)
		library_gemm(&g);
}

/* Dead columns have weight 0. */
KERNEL(dead, struct device_solve)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD, m = a.m;
	float value;

	if (l >= m)
		return;
	for (size_t p = a.live; p < a.n; p++) {
		const size_t column = (size_t)a.column[p], at = (size_t)a.group[p] * m + l;
		const double w = a.w[column * m + l];

		a.code[column * m + l] = code_of(&a.storage, 0, a.scale[at], a.zero[at], &value);
		a.error[l] += w * w;
	}
}

void gpu_dead(const struct device_solve *s)
{
	LAUNCH(dead, blocks_of(s->m, WIDE), 1, WIDE, *s);
}

/* ---- quadratic forms, as num/quadratic.c ---- */

struct dot_of { size_t m, n; double *sum; const float *x, *y; };

KERNEL(add_dots, struct dot_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD;
	double sum = 0;

	if (l >= a.m)
		return;
	for (size_t k = 0; k < a.n; k++)
		sum += (double)a.x[k * a.m + l] * (double)a.y[k * a.m + l];
	a.sum[l] += sum;
}

void gpu_quadratic(size_t m, size_t n, double *sum, const float *x, const float *h)
{
	static struct growing scratch;
	float *y = (float *)growing_of(&scratch, TILE * m * sizeof *y);

	library_clear(sum, m * sizeof *sum);
	for (size_t b = 0; b < n; b += TILE) {
		const size_t wide = n - b < TILE ? n - b : TILE, rest = n - b - wide;
		const float *of = h + b * n + b;
		const struct gemm block = { .m = wide, .n = m, .k = wide, .alpha = 1, .a = of,
			.b = x + b * m, .c = y, .lda = n, .ldb = m, .ldc = m };
		const struct gemm after = { .m = wide, .n = m, .k = rest, .alpha = 2, .beta = 1,
			.a = of + wide, .b = x + (b + wide) * m, .c = y, .lda = n, .ldb = m, .ldc = m };
		const struct dot_of a = { m, wide, sum, x + b * m, y };

		library_gemm(&block);
		if (rest)
			library_gemm(&after);
		LAUNCH(add_dots, blocks_of(m, WIDE), 1, WIDE, a);
	}
}
