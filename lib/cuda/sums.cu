/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sums.cu -- sums over the inputs of a layer; see device/device.h
 *
 * The products of a window are in float and are added in double, as in calib/moments.c. Magnitudes are added
 * by column in slices of rows, whose sums are added in order, so that every run has the same result.
 */
#include <math.h>
#include "cuda/gpu.h"
#include "cuda/growing.h"
#include "cuda/library.h"
#include "cuda/module.h"

enum { WIDE = BLOCK_THREADS, SLICES = 32, BINS = 4096 };

struct gram_of { size_t n; double *sum; const float *of_window; };

KERNEL(add_window, struct gram_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD;

	if (i < a.n * a.n && i % a.n >= i / a.n)	/* the upper triangle */
		a.sum[i] += (double)a.of_window[i];
}

static void add_gram(const struct device_moments *s, enum device_type type, size_t rows, const float *x)
{
	static struct growing narrow, window;
	const size_t n = s->in;
	struct gemm g = { .m = n, .n = n, .k = rows, .transpose_a = true, .alpha = 1, .a = x, .b = x,
		.lda = n, .ldb = n, .ldc = n, .type = type };
	struct gram_of a = { n, s->sum, NULL };

	if (type == DEVICE_BF16) {
		g.a = g.b = growing_of(&narrow, rows * n * sizeof(uint16_t));
		gpu_convert(rows * n, narrow.memory, DEVICE_BF16, x, DEVICE_F32);
	}
	g.c = (float *)growing_of(&window, n * n * sizeof(float));
	a.of_window = g.c;
	library_gemm(&g);
	LAUNCH(add_window, blocks_of(n * n, WIDE), 1, WIDE, a);
}

struct magnitudes_of {
	struct device_moments s;
	bool narrow;			/* numbers are rounded to bf16 */
	size_t rows, each;		/* each: rows of a slice */
	double *absolute, *fourth;	/* [SLICES][in] */
	float *absmax;
	const float *x;
};

/* A thread takes a column of a slice. */
KERNEL(slices, struct magnitudes_of)
{
	const size_t column = (size_t)BLOCK * THREADS + THREAD, n = a.s.in;
	const size_t first = BLOCK_Y * a.each, last = first + a.each < a.rows ? first + a.each : a.rows;
	double absolute = 0, fourth = 0;
	float most = 0;

	if (column >= n)
		return;
	for (size_t i = first; i < last; i++) {
		float v = fabsf(a.x[i * n + column]);
		double square;

		v = a.narrow ? bf16_to_float(float_to_bf16(v)) : v;
		square = (double)v * v;
		absolute += v;
		fourth += square * square;
		most = v > most ? v : most;
	}
	a.absolute[BLOCK_Y * n + column] = absolute;
	a.fourth[BLOCK_Y * n + column] = fourth;
	a.absmax[BLOCK_Y * n + column] = most;
}

KERNEL(add_slices, struct magnitudes_of)
{
	const size_t column = (size_t)BLOCK * THREADS + THREAD, n = a.s.in;

	if (column >= n)
		return;
	for (size_t i = 0; i < SLICES; i++) {
		const float most = a.absmax[i * n + column];

		a.s.absolute[column] += a.absolute[i * n + column];
		a.s.fourth[column] += a.fourth[i * n + column];
		a.s.absmax[column] = most > a.s.absmax[column] ? most : a.s.absmax[column];
	}
}

/* A block counts the numbers of a slice of all numbers. */
KERNEL(count_bins, struct magnitudes_of)
{
	SHARED int count[BINS];
	const size_t all = a.rows * a.s.in, step = (size_t)THREADS * GRID;

	for (int b = (int)THREAD; b < a.s.bins; b += (int)THREADS)
		count[b] = 0;
	BARRIER();
	for (size_t i = (size_t)BLOCK * THREADS + THREAD; i < all; i += step) {
		const float v = a.narrow ? bf16_to_float(float_to_bf16(a.x[i])) : a.x[i];
		int b = (int)((bits_of(v) & 0x7fffffff) >> a.s.shift) - a.s.first + 1;

		b = b < 0 ? 0 : b < a.s.bins - 1 ? b : a.s.bins - 1;
		add_int(&count[b], 1);
	}
	BARRIER();
	for (int b = (int)THREAD; b < a.s.bins; b += (int)THREADS)
		if (count[b])
			add_count(&a.s.histogram[b], count[b]);
}

void gpu_moments(const struct device_moments *s, enum device_type type, size_t rows, const float *x)
{
	static struct growing scratch;
	const size_t n = s->in, columns = blocks_of(n, WIDE), all = SLICES * n;
	struct magnitudes_of a = { *s, type == DEVICE_BF16, rows, blocks_of(rows, SLICES), NULL, NULL,
		NULL, x };

	if (s->sum)
		add_gram(s, type, rows, x);
	a.absolute = (double *)growing_of(&scratch, all * (2 * sizeof(double) + sizeof(float)));
	a.fourth = a.absolute + all;
	a.absmax = (float *)(a.fourth + all);
	LAUNCH(slices, columns, SLICES, WIDE, a);
	LAUNCH(add_slices, columns, 1, WIDE, a);
	LAUNCH_TOGETHER(count_bins, rows * n < 512 * WIDE * 16 ? 16 : 512, 1, WIDE, a);
}

struct symmetric_of { size_t n; float *y; const double *sum; };

KERNEL(mirror, struct symmetric_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD, row = i / a.n, column = i % a.n;

	if (row < a.n)
		a.y[i] = (float)a.sum[row <= column ? i : column * a.n + row];
}

void gpu_symmetric(size_t n, float *y, const double *sum)
{
	const struct symmetric_of a = { n, y, sum };

	LAUNCH(mirror, blocks_of(n * n, WIDE), 1, WIDE, a);
}
