/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_packed_private.h -- products of packed words, which are decoded in registers
 *
 *	y_to = Σ_i Ŵ_oi x_ti,	Ŵ_oi = (grid[code_oi] - zero_og)·scale_og
 *
 * With scale_tensor, the whole sum is divided by it: one of the roundings in `ends` of the row. The words
 * (quant/pack.h) are decoded in one of five ways:
 *
 *	plain	the grid as a table, in plain C
 *	half	e<x>m<y> (FPE2M2 section 4.3): shift and mask convert two codes at once to half-precision
 *		numbers. A multiplication by 2¹⁵ (FP4: 2¹⁴) gives the values; here the whole sum is
 *		multiplied, which is the same for a power of two
 *	integer	codes that are consecutive integers: the code as an integer, minus the zero point
 *	table	any grid, looked up: in registers with AVX-512, in memory with AVX2
 *	fixed	grids of small integers times a power of two, with AVX-512 of bytes. Values are looked up as
 *		bytes in a register. Activations are in fixed point, with four signed bytes each, 30 bits
 *		below the largest of each 128 columns (two bytes in int16). Sums of 8 columns are exact
 */
#ifndef PRODUCT_PRODUCT_PACKED_PRIVATE_H
#define PRODUCT_PRODUCT_PACKED_PRIVATE_H
#include "product/product.h"

enum packed_variant { PACKED_PLAIN, PACKED_HALF, PACKED_INTEGER, PACKED_TABLE, PACKED_FIXED };

/*
 * Supports layers that are packed in 3 to 5 bits (half: 4 or 5), without a compute format, in
 * groups of whole blocks of 32 columns in storage order.
 */
bool packed_fits(const struct product_row *row, const struct linear *l);
/* A prepared weight is the values of its codes. The words are not copied. */
size_t packed_size(const struct linear *l, size_t n);
void packed_weight(const struct product *p, size_t n, void *w);
/* Prepared inputs are in the order of multiplication, in parts of at most PRODUCT_FEW rows. */
size_t packed_input_size(const struct linear *l, size_t m);
void packed_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool packed_input_same(const struct product *a, const struct product *b);
void packed_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);
#endif
