/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * weight.h -- products with the effective weight of a linear layer, in the type that the model computes in
 *
 *	f32	y = x wᵀ
 *	bf16	y = x wᵀ of x and w rounded to bfloat16, sums in float (num/bf16.h)
 *	int16	y = x wᵀ of x rounded to 16-bit integers under a scale of each 128 columns (quant/product.h)
 *
 * What is multiplied is made once, for many products: the weight as rows of
 * float or as packed panels of bf16, the input as rows of float or of bf16.
 */
#ifndef FORWARD_WEIGHT_H
#define FORWARD_WEIGHT_H
#include <stdbool.h>
#include <stddef.h>
#include "model/config.h"
#include "quant/linear.h"

enum { WEIGHT_ROWS = 32 };	/* a part of a matrix of weights begins at a multiple of so many rows */

/* Bytes that n rows of weights take, and m rows of inputs; so also where, in bytes, a part of the weights begins. */
size_t weight_size(enum compute_type type, size_t n, size_t in);
size_t input_size(enum compute_type type, size_t m, size_t in);

/* Rows first .. first + n - 1 of the layer's effective weight into w, of weight_size() bytes, aligned as xalloc() does. */
void weight_make(enum compute_type type, const struct linear *l, size_t first, size_t n, void *w);
/* What the layer multiplies of x: rounded as the layer says, then to the type. y: input_size() bytes. */
void input_make(enum compute_type type, const struct linear *l, size_t m, void *y, const float x[m][l->in]);
/* Whether that is x itself. */
bool input_same(enum compute_type type, const struct linear *l);

/* y = x wᵀ + bias, or y += with `add`; bias NULL: none. A row of y starts every `stride` ≥ n numbers. */
void weight_product(enum compute_type type, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const void *x, const void *w, const float *bias, bool add);
#endif
