/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_number_private.h -- products of weights that are prepared as numbers
 *
 *	float	rows of floats, by num/linalg.h, or for few rows of x by num/few.h; for int16, inputs are
 *		rounded to it
 *	bf16	panels of num/bf16.h, by dot products of pairs, or widened
 *	amx	the same panels, by tiles (num/tile.h)
 */
#ifndef PRODUCT_PRODUCT_NUMBER_PRIVATE_H
#define PRODUCT_PRODUCT_NUMBER_PRIVATE_H
#include "product/product.h"

enum { NUMBER_WIDENED, NUMBER_PAIRS };	/* product_row.variant of bf16 */
enum { NUMBER_MANY, NUMBER_FEW };	/* of float */

size_t number_float_size(const struct linear *l, size_t n);
void number_float_weight(const struct product *p, size_t n, void *w);
void number_float_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
/* q = nearest integers to x / scale, ties to even. Returns the scale, which is not finite if x is not. */
float number_int16_integers(size_t n, int32_t q[n], const float x[n]);
void number_int16_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
bool number_amx_fits(const struct product_row *row, const struct linear *l);
bool number_pairs_fits(const struct product_row *row, const struct linear *l);
size_t number_bf16_size(const struct linear *l, size_t n);
void number_bf16_weight(const struct product *p, size_t n, void *w);
size_t number_bf16_input_size(const struct linear *l, size_t m);
void number_bf16_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
void number_bf16_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
size_t number_amx_input_size(const struct linear *l, size_t m);
void number_amx_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality);
void number_amx_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
#endif
