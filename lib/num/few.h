/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * few.h -- products of few rows with a matrix, whose time is that of reading the matrix
 *
 * The sum of an output is over lanes, column i in lane i mod 16 (AVX2 and others: 8), then over the lanes.
 * So it depends on its row of x and its row of w only: not on the other rows, their number, or threads. A
 * BLAS copies w before it multiplies, and its sums depend on the number of rows.
 */
#ifndef NUM_FEW_H
#define NUM_FEW_H
#include <stdbool.h>
#include <stddef.h>

/* y = x wᵀ + bias, with `add` y += x wᵀ + bias; bias NULL: no bias. Rows of y start every `stride` ≥ n
 * numbers. Faster than linalg_product() for up to about 16 rows. */
void few_product(size_t m, size_t n, size_t k, size_t stride, float y[m][stride], const float x[m][k],
	const float w[n][k], const float *bias, bool add);
#endif
