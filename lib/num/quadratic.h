/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quadratic.h -- x H xᵀ of rows x, and their sum tr(X H Xᵀ), for a symmetric H
 *
 * Columns go in blocks. The product of a block b takes its own columns once, and those after it, or those
 * before it, twice:
 *	x H xᵀ = Σ_b x_b · (H_bb x_b + 2 H_b,rest x_rest)
 * Products are in float, on the thread that calls; BLAS must be on one thread (linalg_init()). Sums are in
 * double. Results depend on `block` and `after` by rounding.
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
	bool after;			/* with the columns after a block, not those before it */
};

/* sum[i] = x_i H x_iᵀ; x: [rows][n], product: workspace [rows][block]. */
void quadratic_rows(const struct quadratic *q, size_t rows, const float *x, float *product, double sum[rows]);
/* tr(X H Xᵀ), number after number. */
double quadratic_trace(const struct quadratic *q, size_t rows, const float *x, float *product);
/* The same of a transposed X, [n][stride], of which `lanes` numbers a row count; product: [block][stride].
 * It takes the columns after a block. */
double quadratic_lanes(const struct quadratic *q, size_t lanes, size_t stride, const float *x,
	float *product);
#endif
