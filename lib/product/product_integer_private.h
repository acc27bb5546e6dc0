/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_integer_private.h -- products of layers whose codes and inputs are integers under scales
 *
 *	y_to = s_t Σ_g s_og Σ_{i in g} (c_oi - z_og) q_ti
 *
 * Formats count too whose values are small integers times a power of two. Sums within a group are exact in
 * int32, scaled and added up in float in the order of the groups: every row gives the same bits. By dot
 * products of four bytes (AVX512_VNNI), unsigned times signed: of c + b ≥ 0 and q, less b + z times the sum
 * of q. The same by sums of two products of bytes (AVX2), of which eight are added up in 16 bits: of codes
 * for integers that differ by at most 16, so of 4 bits and fewer. By products of pairs of 16-bit numbers
 * (AVX2): of c - z and q.
 */
#ifndef PRODUCT_PRODUCT_INTEGER_PRIVATE_H
#define PRODUCT_PRODUCT_INTEGER_PRIVATE_H
#include "product/product.h"

enum { INTEGER_DOTS, INTEGER_QUADS, INTEGER_PAIRS };	/* of product_row.way */
/*
 * For layers whose codes and whose inputs stand for integers between -127 and 127, or, codes, 0 and 255; that
 * compute in 16 bits, in groups of multiples of 16 columns as they stand, and of at most 65793.
 */
bool integer_fits(const struct product_row *row, const struct linear *l);
size_t integer_size(const struct linear *l, size_t n);
/* Values that are integers times 1/per_unit, as bytes; false if one is NaN, which becomes 0. */
bool integer_bytes(size_t n, int8_t q[n], const float v[n], float per_unit);
void integer_weight(const struct product *p, size_t n, void *w);
size_t integer_input_size(const struct linear *l, size_t m);
/* Rounds x as the layer says. */
void integer_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool integer_input_same(const struct product *a, const struct product *b);
void integer_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);
void integer_quads_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);

size_t integer_pairs_size(const struct linear *l, size_t n);
void integer_pairs_weight(const struct product *p, size_t n, void *w);
size_t integer_pairs_input_size(const struct linear *l, size_t m);
void integer_pairs_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
void integer_pairs_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
#endif
