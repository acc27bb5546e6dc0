/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_integer_private.h -- products of layers whose codes and inputs are integers with scales
 *
 *	y_to = s_t Σ_g s_og Σ_{i in g} (c_oi - z_og) q_ti
 *
 * Formats whose values are small integers times a power of two are also supported. A layer with a compute
 * format of integers (DPQ over int8; QQQ, QServe) is one group of the rounded integers, with its second
 * scale:
 *
 *	y_to = s_t s₈_o Σ_i int8((c_oi - z_og) s_og) q_ti
 *
 * Sums within a group are exact in int32. They are scaled and added in float in the order of the groups, so
 * that all three rows give the same bits:
 *
 *	dots	dot products of four bytes (AVX512_VNNI), unsigned times signed: of c + b ≥ 0 and q, minus
 *		b + z times the sum of q
 *	quads	the same by sums of two products of bytes (AVX2); eight sums are added in 16 bits. For codes
 *		with integers that differ by at most 16, of 4 bits or fewer
 *	pairs	products of pairs of 16-bit numbers (AVX2): of c - z and q
 */
#ifndef PRODUCT_PRODUCT_INTEGER_PRIVATE_H
#define PRODUCT_PRODUCT_INTEGER_PRIVATE_H
#include "product/product.h"

enum { INTEGER_DOTS, INTEGER_QUADS, INTEGER_PAIRS };	/* of product_row.variant */
/*
 * Supports layers whose inputs are integers from -127 to 127, and whose codes are integers from -127 to 127
 * or from 0 to 255. Groups are multiples of 16 columns in storage order, at most 65793 columns. With a
 * compute format its values are such integers. Codes and groups may be any; rows have at most 65793 columns.
 */
bool integer_fits(const struct product_row *row, const struct linear *l);
/* Whether weights in a compute format are multiples of its unit from -127 to 127; false without one. */
bool integer_computed(const struct linear *l);
size_t integer_size(const struct linear *l, size_t n);
/* q = v·per_unit, integers, as bytes. NaN becomes 0; false if a value is NaN. */
bool integer_bytes(size_t n, int8_t q[n], const float v[n], float per_unit);
void integer_weight(const struct product *p, size_t n, void *w);
size_t integer_input_size(const struct linear *l, size_t m);
/* Rounds x as the layer specifies. */
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
