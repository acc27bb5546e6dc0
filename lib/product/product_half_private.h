/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_half_private.h -- products of stored f16 and bf16 weights, for few rows of x
 *
 * Half as many bytes are read as for floats. Weights are widened during the product: some columns of a tile
 * of rows at once, into the first cache, for all rows of x.
 */
#ifndef PRODUCT_PRODUCT_HALF_PRIVATE_H
#define PRODUCT_PRODUCT_HALF_PRIVATE_H
#include "product/product.h"

bool half_fits(const struct product_row *row, const struct linear *l);
size_t half_bytes(const struct linear *l, size_t n);
void half_weight(const struct product *p, size_t n, void *w);
void half_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);
#endif
