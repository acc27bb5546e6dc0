/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_packed_private.h -- the products of packed words, which are not unpacked in memory
 *
 *	y_to = Σ_i Ŵ_oi x_ti,	Ŵ_oi = (grid[code_oi] - zero_og)·scale_og
 *
 * Where scales are divided by scale_tensor, the whole sum is, one rounding of the row's `ends`.
 * The words (quant/pack.h) become numbers in registers, in one of five ways:
 *
 *	plain	the grid as a table, in plain C
 *	half	e<x>m<y> (FPE2M2 section 4.3): shift and mask make half-precision bits of two codes
 *		at once, one multiplication by 2¹⁵ (FP4: 2¹⁴; here of the whole sum, which is the same:
 *		it is a power of two) makes them the values
 *	integer	codes that count: the code as an integer, less the zero point
 *	table	any grid, looked up: in registers with AVX-512, in memory with AVX2
 *	fixed	grids of small integers times a power of two, with AVX-512 of bytes: looked up as
 *		bytes in one register and multiplied with activations in fixed point, four signed
 *		bytes each, 30 bits below the largest of each 128 columns (or two bytes in int16);
 *		sums of 8 columns are exact
 */
#ifndef PRODUCT_PRODUCT_PACKED_PRIVATE_H
#define PRODUCT_PRODUCT_PACKED_PRIVATE_H
#include "product/product.h"

enum packed_way { PACKED_PLAIN, PACKED_HALF, PACKED_INTEGER, PACKED_TABLE, PACKED_FIXED };

/*
 * Not for layers that are not packed in 3 to 5 bits (half and fixed: 4 or 5), or in groups that are not of
 * whole blocks of 32 columns as they stand, or that have arithmetic narrower than 16 bits.
 */
bool packed_fits(const struct product_row *row, const struct linear *l);
/* What is prepared of a weight is what its codes become; the words stay where they are. */
size_t packed_size(const struct linear *l, size_t n);
void packed_weight(const struct product *p, size_t n, void *w);
/* Inputs in the order in which they are multiplied, for at most PRODUCT_FEW rows at a time. */
size_t packed_input_size(const struct linear *l, size_t m);
void packed_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool packed_input_same(const struct product *a, const struct product *b);
void packed_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);
#endif
