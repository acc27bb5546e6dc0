/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * suppress.h -- rotation magnitude suppression: splits input channels that an online Hadamard made outliers
 *
 * In a layer with an online Hadamard, whose weight is W H, input channel i is split if
 *	max_o |(W H)_oi| > max |W|
 * (MQuant section 4.3, eq. 13). W is recovered by Hᵀ. The paper has √n·|mean| of the first channel on the
 * left, for an H whose first column is all ones. The column is stored in 16 or 8 bits and set to 0 in the
 * weight.
 */
#ifndef TRANSFORM_SUPPRESS_H
#define TRANSFORM_SUPPRESS_H
#include <stddef.h>
#include "base/selection.h"
#include "model/filter.h"

enum suppress_bits { SUPPRESS_16, SUPPRESS_8 };
extern const char *const suppress_bits[];	/* "16", "8", NULL */

/* Relative difference of logits that --check allows per block, in addition to that of float32
 * (forward/check.h): f16 columns have an error of half a unit in the last place, 2^-11, and the errors of
 * blocks add up. With int8 columns --check only prints. */
#define SUPPRESS_MAX 0x1p-11

struct suppress {
	const struct selection *layers;
	enum suppress_bits bits;
	size_t done, split;		/* layers with an online Hadamard so far; split channels */
};

/* part() of a filter: splits and reports each layer with an online Hadamard, and copies the rest. A quantized
 * layer is a fatal error. */
void suppress_part(void *suppress, const struct filter *f);
#endif
