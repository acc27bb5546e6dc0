/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ggml_encode.h -- codes of a layer as blocks of ggml's types (import/ggml.h), not rounded anew
 *
 *	const struct ggml_type *type = ggml_for(&linear, false, &why);
 *
 *	if (type)
 *		ggml_encode(&linear, type, row, blocks, &rounding);
 *
 * A number is d (q - c), c the type's own 8, 16 or 0, or d q + m. Values of a format that are whole multiples
 * of a power of two u become q, and d is u times the scale: Q4_0 takes those from -7 u to 7 u, Q5_0 to 15 u,
 * Q8_0 to 127 u; MXFP4 those of e2m1 under powers of two. Of a format with a zero point z the values are
 * code - z; Q4_1 and Q5_1 take codes of 4 and 5 bits with any z, m = -z d, and the others codes of their own
 * bits where all z are half of the range. A type is a row of ggml_types, which says its numbers.
 */
#ifndef EXPORT_GGML_ENCODE_H
#define EXPORT_GGML_ENCODE_H
#include <stdbool.h>
#include "import/ggml.h"
#include "quant/linear.h"

/*
 * The shortest type that holds every number of the format exactly if d and m do; q8: Q8_0 or none. NULL: the
 * layer is plain, or no blocks are what it multiplies. *why: what a quantized one has that none hold, NULL of
 * any other.
 */
const struct ggml_type *ggml_for(const struct linear *l, bool q8, const char **why);
/* Whether 32 columns of a block are all of one group. */
bool ggml_groups_fit(const struct linear *l);

/* d and m that a half float does not hold are rounded to the nearest one, and counted. A half float has 11
 * bits: zero point times scale is one if the scale has 7 significant bits at most (Q4_1), or 6 (Q5_1). */
struct ggml_rounding {
	size_t blocks, beyond;		/* with a d or m that is rounded; that becomes infinite */
	double error;			/* sum of squares of what it changed */
};
/* A row: in / 32 blocks. Adds to *r. */
void ggml_encode(const struct linear *l, const struct ggml_type *type, size_t row, uint8_t y[],
	struct ggml_rounding *r);
#endif
