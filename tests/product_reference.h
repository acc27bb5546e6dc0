/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_reference.h -- the product of a layer's effective weight and its inputs, in plain float64 loops
 *
 *	multiply(&l, type, m, x, modality);	sets exact.sum[t][o], and the magnitudes of its bound
 *	bound(row, in, t, o, more)		the max distance of a row of the table from it
 *	plain_product(&l, m, y, size, x)	the same for inputs in double, as a branch has them
 *
 *	sum[t][o] = Σ_i ŵ_oi x̂_ti
 *	size[t][o] = Σ_i |ŵ_oi| |x̂_ti|
 *	chunk[t][o] = Σ_c max|x̂_tc| Σ_i |ŵ_oi|	i of each chunk c of PRODUCT_COLUMNS columns
 *
 * ŵ and x̂ are the results of linear_weight() and linear_input(), as numbers of the type (to_type()): bf16
 * rounds both, int16 the inputs.
 *
 * A product of two floats is exact in double. So a sum of n products has an error of at most n 2⁻⁵³ of size,
 * far below a bound, which counts in 2⁻²⁴. product/product.h has the bound and its argument. The tests add
 * bias, branch and split columns.
 */
#ifndef TESTS_PRODUCT_REFERENCE_H
#define TESTS_PRODUCT_REFERENCE_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "num/half.h"
#include "product/product.h"
#include "quant/linear.h"

enum { MAX = 131, MANY = 512 };		/* max numbers of outputs and of rows of inputs */

/* In double, for row t and output o: Σ ŵx̂, Σ |ŵ||x̂|, Σ max|x̂|Σ|ŵ| over chunks of 128 columns; max|x̂|,
 * max|ŵ|. */
static struct { double sum[MANY][MAX], size[MANY][MAX], chunk[MANY][MAX], x, w; } exact;

/* n numbers as the type rounds them, on its rounded side. */
static void to_type(enum compute_type type, bool weights, size_t n, float x[n])
{
	uint16_t *half = xalloc(n, sizeof *half);

	if (type == COMPUTE_BF16) {
		half_narrow(n, half, x, HALF_BF16);
		half_widen(n, x, half, HALF_BF16);
	} else if (type == COMPUTE_INT16 && !weights)
		product_narrow(n, x, x);
	free(half);
}

static void multiply(const struct linear *l, enum compute_type type, size_t m, const float *x,
	const uint8_t *modality)
{
	const size_t in = l->in, out = l->out;
	float *v = xalloc(m * in, sizeof *v), *w = xalloc(out * in, sizeof *w);
	float *max = xalloc(m * in, sizeof *max);	/* of each chunk, at its first column */

	linear_weight(l, 0, out, (float (*)[in])w);
	linear_input(l, m, (float (*)[in])v, (const float (*)[in])x, modality);
	to_type(type, true, out * in, w);
	exact.x = exact.w = 0;
	for (size_t t = 0; t < m; t++) {
		to_type(type, false, in, v + t * in);
		for (size_t i = 0; i < in; i++) {
			size_t first = i / PRODUCT_COLUMNS * PRODUCT_COLUMNS;

			max[t * in + first] = fmaxf(max[t * in + first], fabsf(v[t * in + i]));
			exact.x = fmax(exact.x, fabs((double)v[t * in + i]));
		}
	}
	for (size_t i = 0; i < out * in; i++)
		exact.w = fmax(exact.w, fabs((double)w[i]));
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < out; o++) {
			double sum = 0, size = 0, chunk = 0;

			for (size_t i = 0; i < in; i++) {
				double a = (double)w[o * in + i], b = (double)v[t * in + i];
				size_t first = i / PRODUCT_COLUMNS * PRODUCT_COLUMNS;

				sum += a * b;
				size += fabs(a * b);
				chunk += fabs(a) * (double)max[t * in + first];
			}
			exact.sum[t][o] = sum, exact.size[t][o] = size, exact.chunk[t][o] = chunk;
		}
	free(v), free(w), free(max);
}

/* The bound of the row for an output to which at most `more` is added. */
static double bound(const struct product_row *row, double in, size_t t, size_t o, double more)
{
	return (row->error.columns * in + row->error.ends) * 0x1p-24 * (exact.size[t][o] + more) +
		row->error.chunk * exact.chunk[t][o] + row->error.tiny * in * (1 + exact.x + exact.w);
}

/* y = x Wᵀ in double with the weight of the part, and the same with magnitudes. */
static void plain_product(const struct linear *l, size_t m, double *y, double *size, const double *x)
{
	float *w = xalloc(l->out * l->in, sizeof *w);

	linear_weight(l, 0, l->out, (float (*)[l->in])w);
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < l->out; o++) {
			y[t * l->out + o] = size[t * l->out + o] = 0;
			for (size_t i = 0; i < l->in; i++) {
				const double p = (double)w[o * l->in + i] * x[t * l->in + i];

				y[t * l->out + o] += p;
				size[t * l->out + o] += fabs(p);
			}
		}
	free(w);
}
#endif
