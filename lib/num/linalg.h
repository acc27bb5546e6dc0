/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linalg.h -- matrix products in fixed tiles
 *
 * Work is cut into tiles whose sizes are constants, each tile is one single-threaded BLAS call, and threads
 * take tiles: results do not depend on the number of threads. Matrices are row-major.
 */
#ifndef NUM_LINALG_H
#define NUM_LINALG_H
#include <stdbool.h>
#include <stddef.h>

/*
 * One thread inside BLAS, and its kernels for this processor; call once after option_parse(). Asserts that
 * BLAS is the OpenMP build, whose threads are ours. Dies where it multiplies wrongly (num/trial.h).
 */
void linalg_init(void);

/* y = x wᵀ + bias, or y += with `add`; bias NULL: none. A row of y starts every `stride` ≥ n numbers. */
void linalg_product(size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const float x[m][k], const float w[n][k], const float *bias, bool add);

/* y = x w in double, rows of y and x every so many numbers; on the thread that calls. */
void linalg_product_double(size_t m, size_t n, size_t k, size_t y_stride, double y[m][y_stride],
	size_t x_stride, const double x[m][x_stride], const double w[k][n]);
/* y = x w, or x wᵀ, in double, of a thin x; w [k][n], or [n][k], is turned into doubles on the way. */
void linalg_product_thin(size_t m, size_t n, size_t k, double y[m][n], const double x[m][k], const float w[],
	bool transposed);
/* The largest number of q qᵀ - I, of either sign. */
double linalg_orthogonality(size_t n, const double q[n][n]);

/*
 * Upper triangle of h += Σ_s x_sᵀ x_s over blocks of rows: the product of a block in float, the sum over
 * blocks in double and in their order.
 */
void linalg_gram(size_t blocks, size_t m, size_t n, double h[n][n], const float x[blocks][m][n]);
void linalg_sum(size_t n, double y[restrict n], const float x[restrict n]);	/* y += x */
/* sum += |x|, fourth += x⁴, max = the larger of max and |x|; NaN is never the larger. */
void linalg_magnitude(size_t n, double sum[restrict n], double fourth[restrict n], float max[restrict n],
	const float x[restrict n]);
/* Lower triangle from the upper one, rounded to float. */
void linalg_mirror(size_t n, float y[n][n], const double h[n][n]);
#endif
