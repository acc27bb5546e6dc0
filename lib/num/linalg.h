/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linalg.h -- matrix products in fixed tiles
 *
 * A product is divided into tiles of constant sizes. Each tile is one single-threaded BLAS call, and threads
 * take tiles: results do not depend on the number of threads. Matrices are row-major. Call linalg_init()
 * first.
 */
#ifndef NUM_LINALG_H
#define NUM_LINALG_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Sets BLAS to one thread and to kernels for this processor; call it once after option_parse(). Asserts that
 * BLAS is the OpenMP build, which uses our threads. Fatal error if there is not enough memory, or if BLAS
 * gives wrong products (num/trial.h).
 */
void linalg_init(void);

/* y = x wᵀ + bias, with `add` y += x wᵀ + bias; bias NULL: no bias. Rows of y start every `stride` ≥ n
 * numbers. */
void linalg_product(size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const float x[m][k], const float w[n][k], const float *bias, bool add);

/* y = x w in double, on the calling thread. Rows of y and x start every `y_stride` and `x_stride` numbers. */
void linalg_product_double(size_t m, size_t n, size_t k, size_t y_stride, double y[m][y_stride],
	size_t x_stride, const double x[m][x_stride], const double w[k][n]);
/* y = x w, transposed: x wᵀ, in double, for an x of few rows; w is [k][n], transposed: [n][k]. */
void linalg_product_thin(size_t m, size_t n, size_t k, double y[m][n], const double x[m][k], const float w[],
	bool transposed);
/* max |q qᵀ - I|; infinity if a number is NaN. */
double linalg_orthogonality(size_t n, const double q[n][n]);

/*
 * Upper triangle of h += Σ_s x_sᵀ x_s over blocks of rows. The product of a block is computed in float. The
 * sum over blocks is computed in double, in their order.
 */
void linalg_gram(size_t blocks, size_t m, size_t n, double h[n][n], const float x[blocks][m][n]);
/* c += Σ_s x_sᵀ y_s over blocks of rows, with the same rounding; c is not symmetric. */
void linalg_cross(size_t blocks, size_t m, size_t n, double c[n][n], const float x[blocks][m][n],
	const float y[blocks][m][n]);
/*
 * Tiles of the upper triangle of an n × n matrix, for a loop of threads over `tiles`. gram_tile_at() sets the
 * first row i and column j ≥ i of tile t. Tiles have one width, except the last. Those of the diagonal, which
 * are half the work, come last, so that threads end at about the same time.
 */
struct gram_tiles { size_t width, per_side, tiles; };
struct gram_tiles gram_tiles(size_t n, size_t widest);
void gram_tile_at(const struct gram_tiles *g, size_t t, size_t *i, size_t *j);
void linalg_sum(size_t n, double y[restrict n], const float x[restrict n]);	/* y += x */
/* sum += |x|, fourth += x⁴, max = max(max, |x|), in which NaN is ignored. */
void linalg_magnitude(size_t n, double sum[restrict n], double fourth[restrict n], float max[restrict n],
	const float x[restrict n]);
/* y = the symmetric matrix with the upper triangle of h, rounded to float. */
void linalg_mirror(size_t n, float y[n][n], const double h[n][n]);
#endif
