/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_tile.h -- exact products of quantized layers and rounded inputs by tiles (AMX), scales outside
 *
 *	y_to = s_t Σ_g s_og Σ_{i in g} v_oi q_ti
 *
 * v and q are the values that codes and inputs stand for, without their outermost scales (linear_units(),
 * format_values()): as bytes where both are integers times powers of two, the sums of a group in int32; as
 * bf16 where both are such numbers (FP8 arithmetic, e<x>m<y>), sums in float. A layer with a compute format
 * is one group, whatever groups its codes have. Products are exact: what differs from products of floats is
 * the rounding of sums.
 */
#ifndef QUANT_PRODUCT_TILE_H
#define QUANT_PRODUCT_TILE_H
#include "quant/product.h"

/* For layers whose groups are multiples of 16 columns as they stand, and whose inputs are rounded. */
bool tile_fits(const struct product_row *row, const struct linear *l);
size_t tile_weight_size(const struct linear *l, size_t n);
void tile_weight(const struct product *p, size_t n, void *w);
size_t tile_input_size(const struct linear *l, size_t m);
/* Rounds x as the layer says. */
void tile_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool tile_input_same(const struct product *a, const struct product *b);
void tile_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);
#endif
