/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * level.h -- table of the parameters of a quantized layer; a level has a value for each block of weights
 *
 *	ŵ = FP8((value of the code - zero) · scales / divisors) · outer scales
 *
 * A row of the table specifies the extents of the blocks, the type of the values, and their field in struct
 * linear. The datasets in a file and their bits follow from it (quant/member.h).
 */
#ifndef QUANT_LEVEL_H
#define QUANT_LEVEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "quant/linear.h"

enum level_role { LEVEL_SCALE, LEVEL_DIVISOR, LEVEL_ZERO };
enum level_type {
	LEVEL_FLOAT,			/* f32 */
	LEVEL_OF_SCALES,		/* f32, numbers of the scale type of the format */
	LEVEL_OF_CODES,			/* uint8, with the bits of a code of the format */
};

/* The block of one value, in neighbouring rows and columns; 0: all of them. */
struct level_block { size_t rows, columns; };

struct level {
	size_t view;			/* offset in struct linear of the pointer to its values, NULL: none */
	enum level_type type;
	enum level_role role;
	bool outer;			/* applies after rounding to the compute format */
	bool grouped;			/* group_index, if present, has the blocks of columns */
	struct level_block (*block)(const struct linear *l);
};

enum { LEVEL_SCALES, LEVEL_TENSOR, LEVEL_ZEROS, LEVEL_SCALES8, LEVELS };
extern const struct level levels[LEVELS];

/* Number of rows and columns of values. */
struct level_block level_extents(const struct level *v, const struct linear *l);
double level_bits(const struct level *v, const struct linear *l);	/* bits of a value */
/*
 * Combined scale[n] and zero[n] of columns [i, i + n) of a row, from the outer levels or from the other
 * levels. scale is 1 if `scaled` is false. zero is 0 if the layer has no zero points.
 */
void level_columns(const struct linear *l, bool outer, bool scaled, size_t row, size_t i, size_t n,
	float scale[n], uint8_t zero[n]);
#endif
