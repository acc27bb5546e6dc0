/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * few.h -- products of a few rows with a matrix, limited by the time to read the matrix
 *
 * An output is summed in 16 lanes (AVX-512) or 8 lanes (AVX2 and others), column i in lane i mod 16 or 8, and
 * then over the lanes; AVX2 adds the last k mod 8 columns after that. So it depends only on its row of x and
 * its row of w: not on the other rows, on their number, or on threads. A BLAS copies w before it multiplies,
 * and its sums depend on the number of rows.
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
