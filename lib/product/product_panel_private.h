/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_panel_private.h -- panels of integer weights, shared by product_integer.c and product_pair.c
 *
 * Numbers of a layer are those of its codes, in their groups, or, with a compute format, those to which they
 * are rounded, in one group.
 */
#ifndef PRODUCT_PRODUCT_PANEL_PRIVATE_H
#define PRODUCT_PRODUCT_PANEL_PRIVATE_H
#include "product/product.h"

/* Values of the codes of a format: unit · (value - offset), with `value` from 0 to 255. */
struct integers { float unit; int offset; uint8_t value[256]; };
/* False if the values are not small integers times a power of two. */
bool integers_of(struct integers *y, const struct format *f);
/* The format of the numbers that are multiplied. */
const struct format *integer_format(const struct linear *l);
/* Columns of a group of these numbers; groups of a row; columns with padding. */
size_t integer_group(const struct linear *l);
size_t integer_groups(const struct linear *l);
size_t integer_columns(const struct linear *l);
/* Numbers [i, i + n) of row o, as integers.value has them; n at most LINEAR_COLUMNS, i a multiple of it. */
void integer_values(const struct linear *l, const struct integers *k, size_t o, size_t i, size_t n,
	uint8_t value[n]);
/* The value that represents 0 in a group. */
int integer_zero(const struct linear *l, const struct integers *k, size_t o, size_t g);

/* Panels of `panel` rows of the layer, `size` bytes each; tiles of tile_m rows of x; `rows` rows of x per
 * call of piece(). */
struct panels {
	size_t panel, size, tile_m, rows;
	void (*piece)(const struct linear *l, size_t all, size_t t, size_t m, size_t n, size_t stride,
		float *y, const void *input, const char *panel, const float *bias, bool add);
};
/* product_row.run() by these panels. */
void integer_panels(const struct panels *a, const struct product *p, size_t first, size_t n, size_t m,
	size_t stride, float y[m][stride], const void *input, const float *bias, bool add);
#endif
