/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quadratic.c -- see quadratic.h */
#include "num/quadratic.h"
#include <cblas.h>
#include <string.h>
#include "base/size.h"

/* product = or += x_k H_k,b over k columns from `first` on; times 2 if they are the rest, not the block. */
static void times(const struct quadratic *q, size_t rows, const float *x, size_t b, size_t wide, size_t first,
	size_t k, float *product, bool add)
{
	const float *h = q->h + (q->after ? b * q->stride + first : first * q->stride + b);

	if (k)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, q->after ? CblasTrans : CblasNoTrans, (int)rows,
			(int)wide, (int)k, first == b ? 1 : 2, x + first, (int)q->n, h, (int)q->stride, add,
			product, (int)q->block);
}

/* product = x_b H_bb + 2 x_rest H_rest,b, summed in the order of the columns. */
static void multiply(const struct quadratic *q, size_t rows, const float *x, size_t b, size_t wide,
	float *product)
{
	const size_t end = b + wide;

	if (!q->after)
		times(q, rows, x, b, wide, 0, b, product, false);
	times(q, rows, x, b, wide, b, wide, product, !q->after && b);
	if (q->after)
		times(q, rows, x, b, wide, end, q->n - end, product, true);
}

static double dot(size_t n, const float x[n], const float y[n])
{
	double sum = 0;

	#pragma omp simd reduction(+:sum)
	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)y[i];
	return sum;
}

void quadratic_rows(const struct quadratic *q, size_t rows, const float *x, float *product, double sum[rows])
{
	memset(sum, 0, rows * sizeof *sum);
	for (size_t b = 0; b < q->n; b += q->block) {
		const size_t wide = min(q->block, q->n - b);

		multiply(q, rows, x, b, wide, product);
		for (size_t i = 0; i < rows; i++)
			sum[i] += dot(wide, x + i * q->n + b, product + i * q->block);
	}
}

double quadratic_trace(const struct quadratic *q, size_t rows, const float *x, float *product)
{
	double sum = 0;

	for (size_t b = 0; b < q->n; b += q->block) {
		const size_t wide = min(q->block, q->n - b);

		multiply(q, rows, x, b, wide, product);
		for (size_t i = 0; i < rows; i++)
			for (size_t j = 0; j < wide; j++)
				sum += (double)x[i * q->n + b + j] * (double)product[i * q->block + j];
	}
	return sum;
}

double quadratic_lanes(const struct quadratic *q, size_t lanes, size_t stride, const float *x,
	float *product)
{
	double sum = 0;

	for (size_t b = 0; b < q->n; b += q->block) {
		const size_t wide = min(q->block, q->n - b), rest = q->n - b - wide;
		const float *h = q->h + b * q->stride + b;

		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)wide, (int)lanes, (int)wide, 1, h,
			(int)q->stride, x + b * stride, (int)stride, 0, product, (int)stride);
		if (rest)
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)wide, (int)lanes,
				(int)rest, 2, h + wide, (int)q->stride, x + (b + wide) * stride, (int)stride,
				1, product, (int)stride);
		for (size_t k = 0; k < wide; k++) {
			double column = 0;

			for (size_t l = 0; l < lanes; l++)
				column += (double)x[(b + k) * stride + l] * (double)product[k * stride + l];
			sum += column;
		}
	}
	return sum;
}
