/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard.cu -- products with Hadamard matrices; see device/device.h
 *
 * Sylvester's have a fast product. A block takes a span of a row, which is one or several vectors of `order`
 * numbers, to shared memory. A pass does up to three of the log₂ order steps: a thread adds and subtracts
 * eight numbers in its registers. An unused number follows each 32, so that threads which read every eighth
 * number do not wait for each other.
 */
#include <math.h>
#include "cuda/gpu.h"
#include "cuda/library.h"
#include "cuda/module.h"

enum { WIDE = 512, SPAN = 4096, EIGHT = 8 };

struct sylvester_of { size_t n, stride, order, span; float by; float *y; const float *x; };

DEVICE_FUNCTION size_t place(size_t i)
{
	return i + i / 32;
}

/* Product of 2^steps numbers with Sylvester's matrix. */
DEVICE_FUNCTION void butterfly(int steps, float v[EIGHT])
{
	UNROLL
	for (int apart = 1; apart < 1 << steps; apart *= 2) {
		UNROLL
		for (int i = 0; i < 1 << steps; i++)
			if (!(i & apart)) {
				const float sum = v[i] + v[i + apart];

				v[i + apart] = v[i] - v[i + apart];
				v[i] = sum;
			}
	}
}

/* Steps of numbers that are `apart`, 2·apart, ... from each other, of the whole span. */
DEVICE_FUNCTION void pass(int steps, size_t span, size_t apart, float *s)
{
	for (size_t i = THREAD; i < span >> steps; i += THREADS) {
		const size_t at = (i / apart * apart << steps) + i % apart;
		float v[EIGHT];

		UNROLL
		for (int k = 0; k < 1 << steps; k++)
			v[k] = s[place(at + (size_t)k * apart)];
		butterfly(steps, v);
		UNROLL
		for (int k = 0; k < 1 << steps; k++)
			s[place(at + (size_t)k * apart)] = v[k];
	}
	BARRIER();
}

KERNEL_OF(WIDE, 1, sylvester, struct sylvester_of)
{
	float *s = (float *)DYNAMIC;
	const float *x = a.x + BLOCK_Y * a.stride + BLOCK * a.span;
	float *y = a.y + BLOCK_Y * a.n + BLOCK * a.span;
	size_t apart = 1;

	for (size_t i = THREAD; i < a.span; i += THREADS)
		s[place(i)] = x[i] * a.by;
	BARRIER();
	for (; apart * EIGHT <= a.order; apart *= EIGHT)
		pass(3, a.span, apart, s);
	if (apart * 4 == a.order)
		pass(2, a.span, apart, s);
	else if (apart * 2 == a.order)
		pass(1, a.span, apart, s);
	for (size_t i = THREAD; i < a.span; i += THREADS)
		y[i] = s[place(i)];
}

static void multiply_sylvester(size_t m, size_t n, size_t stride, size_t order, float *y, const float *x)
{
	struct sylvester_of a = { n, stride, order, order, (float)(1 / sqrt((double)order)), y, x };

	while (a.span < SPAN && n % (2 * a.span) == 0)
		a.span *= 2;
	for (size_t row = 0, rows; row < m; row += rows, a.x += rows * stride, a.y += rows * n) {
		rows = m - row < 65535 ? m - row : 65535;	/* of BLOCK_Y */
		LAUNCH_DYNAMIC(sylvester, n / a.span, rows, WIDE, (a.span + a.span / 32) * sizeof(float), a);
	}
}

void gpu_rotate(size_t m, size_t n, size_t stride, size_t order, float *y, const float *x, const float *h)
{
	const struct gemm g = { .m = m, .n = order, .k = order, .alpha = 1, .a = x, .b = h, .c = y,
		.lda = stride, .ldb = order, .ldc = n, .batch = n / order, .step_a = order, .step_c = order };

	if (h)
		library_gemm(&g);
	else
		multiply_sylvester(m, n, stride, order, y, x);
}
