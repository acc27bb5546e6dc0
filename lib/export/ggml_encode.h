/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ggml_encode.h -- codes of a layer as blocks of ggml's types (import/ggml.h), without rounding of weights
 *
 *	const struct ggml_type *type = ggml_for(&linear, false, &why);
 *
 *	if (type)
 *		ggml_encode(&linear, type, row, blocks, &rounding);
 *
 * A number of a block is d (q - c), with c = 8, 16 or 0 by the type, or d q + m.
 *
 * Values of a format that are whole multiples of a power of two u become q, and d is u times the scale. Q4_0
 * represents values from -7 u to 7 u, Q5_0 up to 15 u, Q8_0 up to 127 u. MXFP4 represents e2m1 with scales
 * that are powers of two. Values of a format with a zero point z are code - z. Q4_1 and Q5_1 represent codes
 * of 4 and 5 bits with any z, m = -z d. Other types represent codes of their number of bits if all z are half
 * of the range. A type is a row of ggml_types, which specifies its numbers.
 */
#ifndef EXPORT_GGML_ENCODE_H
#define EXPORT_GGML_ENCODE_H
#include <stdbool.h>
#include "import/ggml.h"
#include "quant/linear.h"

/*
 * The shortest type that represents every number of the format exactly, provided that d and m are exact. q8:
 * Q8_0 or none. NULL: the layer is plain, or no type represents its effective weight. *why: the feature of a
 * quantized layer that no type supports; NULL for a plain layer and if a type was found.
 */
const struct ggml_type *ggml_for(const struct linear *l, bool q8, const char **why);
/* Whether the 32 columns of each block belong to one group. */
bool ggml_groups_fit(const struct linear *l);

/* If d or m is not a half float, it is rounded to nearest and counted. The significand of a half float has
 * 11 bits, so zero point times scale is exact if the scale has at most 7 significant bits (Q4_1), or 6
 * (Q5_1). */
struct ggml_rounding {
	size_t blocks, overflows;	/* blocks with a d or m that is rounded; that becomes infinite */
	double error;			/* sum of squares of the changes of weights */
};
/* Encodes a row as in / 32 blocks. Adds to *r. */
void ggml_encode(const struct linear *l, const struct ggml_type *type, size_t row, uint8_t y[],
	struct ggml_rounding *r);
#endif
