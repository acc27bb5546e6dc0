/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linalg.h -- matrix products, norms and exponentials in fixed tiles
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

/* y = x / √(mean x² + eps) · gain, and (x - mean) / √(variance + eps) · gain + shift; shift may be NULL. */
void linalg_rmsnorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps);
void linalg_layernorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps);

/* x becomes exp(x - shift), at least e^-87, to 2 units in the last place; returns the sum. */
float linalg_exp(size_t n, float x[n], float shift);
float linalg_max(size_t n, const float x[n]);		/* -infinity for n = 0; NaN counts as nothing */
double linalg_sum_exp(size_t n, const float x[n], float shift);	/* Σ exp(x - shift), in double */
/*
 * sum = { Σ exp(x - a), Σ exp(y - b), Σ exp(x - a) (x - y) }, the exponentials too in double, to 2 units in
 * the last place. What is below e^-708 is e^-708.
 */
void linalg_sum_exp_pair(size_t n, double sum[3], const float x[n], float a, const float y[n], float b);

/* x / (1 + e^-x); ½ x (1 + erf(x/√2)); the same by its tanh approximation; x / (1 + e^-1.702x). y and x do
 * not overlap. */
void linalg_silu(size_t n, float y[n], const float x[n]);
void linalg_gelu(size_t n, float y[n], const float x[n]);
void linalg_gelu_tanh(size_t n, float y[n], const float x[n]);
void linalg_quick_gelu(size_t n, float y[n], const float x[n]);
void linalg_times(size_t n, float y[n], const float x[n]);	/* y *= x */
#endif
