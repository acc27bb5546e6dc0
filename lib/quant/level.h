/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * level.h -- the parameters of a quantized layer: a level has a value for each block of weights
 *
 *	ŵ = FP8((value of the code - zero) · scales / divisors) · outer scales
 *
 * A row of the table says how large the blocks are, what their values are stored as, and where struct linear
 * has them. What stands in a file, and in how many bits, follows from it (quant/member.h).
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
	LEVEL_OF_SCALES,		/* f32 that are numbers of the format's type of scales */
	LEVEL_OF_CODES,			/* uint8, of the width of the format's codes */
};

/* Weights under one value: of so many neighbouring rows and columns; 0: of all. */
struct level_block { size_t rows, columns; };

struct level {
	size_t view;			/* offset in struct linear of the pointer to its values, NULL: none */
	enum level_type type;
	enum level_role role;
	bool outer;			/* of what the compute format makes */
	bool grouped;			/* its blocks of columns are those of group_index, if there is one */
	struct level_block (*block)(const struct linear *l);
};

enum { LEVEL_SCALES, LEVEL_TENSOR, LEVEL_ZEROS, LEVEL_SCALES8, LEVELS };
extern const struct level levels[LEVELS];

/* Rows and columns of the values. */
struct level_block level_extents(const struct level *v, const struct linear *l);
double level_bits(const struct level *v, const struct linear *l);	/* of a value */
/*
 * What all levels, the outer ones or the others, make of columns [i, i + n) of a row: scale[n], or 1 with
 * `scaled` false, and zero[n], 0 where the layer has none.
 */
void level_columns(const struct linear *l, bool outer, bool scaled, size_t row, size_t i, size_t n,
	float scale[n], uint8_t zero[n]);
#endif
