/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quadratic.h -- x H xᵀ for rows x, and the sum tr(X H Xᵀ), for a symmetric H
 *
 * Columns are divided into blocks b. The rest of a block is the columns after it, or the columns before it:
 *	x H xᵀ = Σ_b x_b · (H_bb x_b + 2 H_b,rest x_rest)
 * Products are computed in float on the calling thread; BLAS must use one thread (linalg_init()). Sums are
 * computed in double. `block` and `after` change results by rounding.
 *
 *	const struct quadratic q = { .n = n, .stride = n, .h = h, .block = 256 };
 *	float *product = xalloc(rows * q.block, sizeof *product);
 *	double loss = quadratic_trace(&q, rows, e, product);
 */
#ifndef NUM_QUADRATIC_H
#define NUM_QUADRATIC_H
#include <stdbool.h>
#include <stddef.h>

struct quadratic {
	size_t n;			/* columns of X, rows and columns of H */
	size_t stride;			/* numbers from a row of H to the next */
	const float *h;
	size_t block;			/* columns of a block; n or more: one block */
	bool after;			/* the rest is the columns after a block, not the columns before it */
};

/* sum[i] = x_i H x_iᵀ; x: [rows][n], product: workspace [rows][block]. */
void quadratic_rows(const struct quadratic *q, size_t rows, const float *x, float *product, double sum[rows]);
/* tr(X H Xᵀ), summed number by number. */
double quadratic_trace(const struct quadratic *q, size_t rows, const float *x, float *product);
/* tr(X H Xᵀ) for a transposed X: x is [n][lanes], and its rows start every `stride` numbers; product:
 * [block][stride]. The rest is always the columns after a block. */
double quadratic_lanes(const struct quadratic *q, size_t lanes, size_t stride, const float *x,
	float *product);
#endif
