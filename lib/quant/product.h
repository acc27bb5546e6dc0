/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product.h -- a packed matrix times a few columns, without unpacking it in memory
 *
 *	y_to = Σ_i Ŵ_oi x_ti,	Ŵ_oi = (grid[code_oi] - zero_og)·scale_og
 *
 * A product with few columns takes as long as its weights take to come from
 * memory; these come as packed words (quant/pack.h) and become numbers in
 * registers. There are five ways to make them:
 *
 *	plain	the grid as a table, in plain C
 *	half	e<x>m<y> (FPE2M2 section 4.3): shift and mask make half-precision bits
 *		of two codes at once, one multiplication by 2¹⁵ (here of the whole sum,
 *		which is the same: it is a power of two) makes them the values
 *	integer	codes that count: the code as an integer, less the zero point
 *	table	any grid, looked up: in registers with AVX-512, in memory with AVX2
 *	fixed	grids of small integers times a power of two, with AVX-512 of bytes: looked up
 *		as bytes in one register and multiplied with activations in fixed point, four
 *		signed bytes each, 30 bits below the largest of each 128 columns (or two
 *		bytes); sums of 8 columns are exact
 *
 * Which way is the quickest depends on the processor (base/cpu.h) and the format.
 * They differ by the rounding of their sums in float, |y - ŷ| ≤ (in/8 + 16)·2⁻²⁴·Σ|Ŵ||x|
 * and half of that in wider vectors; fixed by (in/128 + 16)·2⁻²⁴·Σ|Ŵ||x| and max|x|·2⁻³¹·Σ|Ŵ|
 * of each 128 columns, as long as max|x| > 10⁻³⁰ there.
 * None depends on the number of threads. Codes that the format does not have give any
 * finite value.
 */
#ifndef QUANT_PRODUCT_H
#define QUANT_PRODUCT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "quant/linear.h"

/* Columns up to which products from packed words beat sgemm of weights that were unpacked before (docs/results/fpe2m2-figure7.tsv). */
enum { PRODUCT_FEW = 16, PRODUCT_CHUNK = 128 };

enum product_way { PRODUCT_PLAIN, PRODUCT_HALF, PRODUCT_INTEGER, PRODUCT_TABLE, PRODUCT_FIXED, PRODUCT_BEST };

struct product {
	const struct linear *l;
	enum product_way way;
	bool narrow;			/* activations are rounded to 16 bits */
	int lanes, shift;		/* words that are taken together; half: 10 - y */
	float table[32];		/* value of each code */
	float unit;			/* fixed: what its integers count */
	int offset;			/* that makes them positive */
	uint8_t integer[64];		/* value/unit + offset, twice */
};

/*
 * How to multiply the layer, which must stay. narrow: activations are rounded to 16-bit integers under a scale
 * max|x|/32639 of each 128 columns (two signed bytes hold 127·256 + 127). False: the layer is not packed in 4 or 5 bits, or in
 * groups that are not of whole blocks of 32 columns as they stand, or has arithmetic narrower than 16 bits; or the way is not
 * for it or the processor.
 */
bool product_make(struct product *p, const struct linear *l, enum product_way way, bool narrow);

/* Bytes of m ≤ PRODUCT_FEW inputs as product_input() makes them. */
size_t product_input_size(size_t m, size_t in);
/* Inputs in the order in which they are multiplied; y: aligned as xalloc() does. What is not finite makes all outputs so. */
void product_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in]);
/* y[m][stride] = x Ŵᵀ + bias of all rows, or y += with `add`; bias NULL: none. */
void product_run(const struct product *p, size_t m, size_t stride, float y[m][stride], const void *input, const float *bias,
	bool add);
/* Both, of inputs as the layer's arithmetic has them (linear_input()); room: product_room() bytes, aligned as xalloc() does. */
size_t product_room(size_t m, size_t in);
void product_apply(const struct product *p, size_t m, size_t stride, float y[m][stride], const float x[m][p->l->in], void *room,
	const float *bias, bool add);
/* The rounding of product_input() alone: y = x to 16 bits by 128 columns; y may be x. */
void product_narrow(size_t n, float y[n], const float x[n]);
#endif
