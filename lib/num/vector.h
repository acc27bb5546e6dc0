/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vector.h -- norms, exponentials and activations of rows of numbers
 *
 * The order of every sum is fixed: results have the same bits on every processor, for any number of threads.
 */
#ifndef NUM_VECTOR_H
#define NUM_VECTOR_H
#include <stddef.h>

/*
 * RMS norm: y = x / √(mean x² + eps) · gain + shift; LayerNorm: y = (x - mean) / √(variance + eps) · gain +
 * shift. shift NULL: 0. A row whose sum of squares is not finite becomes NaN.
 */
void vector_rmsnorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps);
void vector_layernorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps);

float vector_max(size_t n, const float x[n]);		/* -infinity for n = 0; NaN is ignored */
double vector_sum_exp(size_t n, const float x[n], float shift);	/* Σ exp(x - shift), in double */
/*
 * sum = { Σ exp(x - a), Σ exp(y - b), Σ exp(x - a) (x - y) }, for x ≤ a and y ≤ b. Exponentials are in
 * double, at least e^-708, with an error of at most 2 units in the last place.
 */
void vector_sum_exp_pair(size_t n, double sum[3], const float x[n], float a, const float y[n], float b);

/* x / (1 + e^-x); ½ x (1 + erf(x/√2)); its tanh approximation; x / (1 + e^-1.702x). y and x do not
 * overlap. */
void vector_silu(size_t n, float y[n], const float x[n]);
void vector_gelu(size_t n, float y[n], const float x[n]);
void vector_gelu_tanh(size_t n, float y[n], const float x[n]);
void vector_quick_gelu(size_t n, float y[n], const float x[n]);
void vector_times(size_t n, float y[n], const float x[n]);	/* y *= x */
#endif
