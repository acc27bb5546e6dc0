/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * codes.h -- the result of a quantizer: codes and parameters, in memory of their own
 *
 * Calling sequence: codes_make(), codes_lay_out() in memory, a quantizer that writes codes and parameters,
 * then codes_view(). The views in the layer are valid as long as the struct and the memory exist.
 *
 *	struct codes c = codes_make(out, in, &storage, group);
 *
 *	codes_lay_out(&c, xalloc(codes_lay_out(&c, NULL), 1));
 *	...
 *	codes_view(&c, &linear);
 *	...
 *	free(c.memory);
 */
#ifndef QUANT_CODES_H
#define QUANT_CODES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"
#include "quant/linear.h"

struct codes {
	/* Set before codes_lay_out(). */
	size_t out, in;
	struct format storage;		/* with the type of its scales */
	long group;			/* columns per group; 0: per channel; -1: per tensor */
	struct format compute;		/* kind NULL: 16-bit arithmetic */
	float saturate;			/* of `compute`, as in struct linear */
	size_t scales8;			/* 1 or out with a compute format, else 0 */

	/* Set by codes_lay_out(). */
	void *memory;
	size_t groups, scales;		/* groups of a row; elements of scale and zero */

	/* Written by a quantizer. */
	uint8_t *codes;			/* as in struct linear */
	float *scale;			/* [scales] as stored: numbers of the scale type */
	float scale_tensor;		/* divides the scales; 1 if the type has no divisor */
	uint8_t *zero;			/* [scales]; NULL: the format has no zero point */
	float *scale8;			/* [scales8]; NULL: none */
	int32_t *group_index;		/* [in] the group of each column */
	bool needs_group_index;		/* groups are not neighbouring columns */
};

/* Codes of a weight, before codes_lay_out(); compute, saturate and scales8 are 0. */
struct codes codes_make(size_t out, size_t in, const struct format *storage, long group);
/* Places the arrays in memory, which is aligned as by xalloc(), and returns its size in bytes. memory NULL:
 * returns only the size. */
size_t codes_lay_out(struct codes *c, void *memory);
/* Replaces the weight of l by views of c. Bias, branch and input rounding are not changed. */
void codes_view(const struct codes *c, struct linear *l);
/* Copies the arrays that a quantizer wrote to codes of the same layout. */
void codes_copy(struct codes *to, const struct codes *from);
#endif
