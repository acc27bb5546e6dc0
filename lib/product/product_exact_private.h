/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_exact_private.h -- exact products of quantized layers and rounded inputs, scales outside
 *
 *	y_to = s_t Σ_g s_og Σ_{i in g} v_oi q_ti
 *
 * v and q are the values that codes and inputs stand for, without their outermost scales (linear_units(),
 * format_values()): bf16 numbers (FP8 arithmetic, e<x>m<y> of at most 5 bits of exponent), sums in float; by
 * tiles (AMX) also bytes, where both are integers times powers of two, the sums of a group in int32. A layer
 * with a compute format is one group, whatever groups its codes have.
 *
 * Neither v, q nor their products are rounded, only sums, in which a term passes through at most two
 * roundings for each number (tiles: 16 of a chain, where two chains meet, one a step of columns and one
 * a group; pairs: two for each pair), and through 8 at the ends: those of ŵ and x̂ in the product that
 * these are held against, 3; the sum of a group as float, its scale, s_t, the bias, y. Products of scales
 * and units below 2⁻¹²⁶ lose bits, as ŵ and x̂ do.
 */
#ifndef PRODUCT_PRODUCT_EXACT_PRIVATE_H
#define PRODUCT_PRODUCT_EXACT_PRIVATE_H
#include "product/product.h"

/* By tiles: layers whose groups are multiples of 16 columns as they stand, and whose inputs are rounded. */
bool exact_amx_fits(const struct product_row *row, const struct linear *l);
size_t exact_amx_weight_size(const struct linear *l, size_t n);
void exact_amx_weight(const struct product *p, size_t n, void *w);
size_t exact_amx_input_size(const struct linear *l, size_t m);
void exact_amx_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool exact_amx_input_same(const struct product *a, const struct product *b);
void exact_amx_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);

/* By dot products of pairs (AVX512_BF16), chosen where they are at full rate: such layers of one group. */
bool exact_pairs_fits(const struct product_row *row, const struct linear *l);
size_t exact_pairs_weight_size(const struct linear *l, size_t n);
void exact_pairs_weight(const struct product *p, size_t n, void *w);
size_t exact_pairs_input_size(const struct linear *l, size_t m);
void exact_pairs_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
void exact_pairs_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
#endif
