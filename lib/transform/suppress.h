/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * suppress.h -- rotation magnitude suppression: channels that a rotation has made outliers, out of the weight
 *
 * For a layer behind an online Hadamard, whose weight is W H, input channel i is taken out where
 *	max_o |(W H)_oi| > max |W|
 * the weight before the rotation being recovered by Hᵀ (MQuant section 4.3, eq. 13, which has the first
 * channel's √n·|mean| on its left: for an H whose first column is all ones). Its column is kept in 16 or 8
 * bits and set to 0 in the weight.
 */
#ifndef TRANSFORM_SUPPRESS_H
#define TRANSFORM_SUPPRESS_H
#include <stddef.h>
#include "base/selection.h"
#include "model/filter.h"

enum suppress_bits { SUPPRESS_16, SUPPRESS_8 };
extern const char *const suppress_bits[];	/* "16", "8", NULL */

/* What the rounding of a block's columns to f16 explains of a difference of logits, beside float32
 * (forward/check.h): half of a unit in the last place, 2^-11; those of the blocks add up. To int8 it is a
 * quantization, of which --check only tells. */
#define SUPPRESS_MAX 0x1p-11

struct suppress {
	const struct selection *layers;
	enum suppress_bits bits;
	size_t done, split;		/* layers behind a Hadamard so far, and channels taken out */
};

/* A part(): reports each layer behind an online Hadamard, the rest is copied. Dies on quantized layers. */
void suppress_part(void *suppress, const struct filter *f);
#endif
