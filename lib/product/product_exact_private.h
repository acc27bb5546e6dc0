/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_exact_private.h -- products of quantized layers and rounded inputs without rounding of terms
 *
 *	y_to = s_t Σ_g s_og Σ_{i in g} v_oi q_ti
 *
 * v and q are the values of codes and inputs without their outermost scales (linear_units(),
 * format_values()). They are bf16 numbers (FP8 arithmetic, e<x>m<y> with at most 5 bits of exponent), with
 * sums in float. With tiles (AMX) they may also be bytes, if both are integers times powers of two, with
 * sums of a group in int32. A layer with a compute format is one group, for any groups of codes.
 *
 * v, q and their products are not rounded; only sums are. In a sum, a term passes through at most two
 * roundings for each number (tiles: 16 in a chain, one where two chains are added, one per step of columns
 * and one per group; pairs: two for each pair). At the ends it passes through 8 roundings: 3 of ŵ and x̂ in
 * the product in double to which the result is compared; then the sum of a group as float, its scale, s_t,
 * the bias, y. Products of scales and units below 2⁻¹²⁶ lose bits, as ŵ and x̂ do.
 */
#ifndef PRODUCT_PRODUCT_EXACT_PRIVATE_H
#define PRODUCT_PRODUCT_EXACT_PRIVATE_H
#include "product/product.h"

/* With tiles. Supports layers with rounded inputs, and groups of multiples of 16 columns in storage order. */
bool exact_amx_fits(const struct product_row *row, const struct linear *l);
size_t exact_amx_weight_size(const struct linear *l, size_t n);
void exact_amx_weight(const struct product *p, size_t n, void *w);
size_t exact_amx_input_size(const struct linear *l, size_t m);
void exact_amx_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool exact_amx_input_same(const struct product *a, const struct product *b);
void exact_amx_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);

/* With dot products of pairs (AVX512_BF16), if they run at full rate. Supports bf16 layers of one group. */
bool exact_pairs_fits(const struct product_row *row, const struct linear *l);
size_t exact_pairs_weight_size(const struct linear *l, size_t n);
void exact_pairs_weight(const struct product *p, size_t n, void *w);
size_t exact_pairs_input_size(const struct linear *l, size_t m);
void exact_pairs_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
void exact_pairs_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
#endif
