/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * code_form.h -- which weights a code stands for, which codes there are, and how they are decoded
 *
 * A code stands for a tile of rows x columns weights of a layer. It has as many bits as its format says. Up
 * to 8 it is a byte, and may be packed (quant/pack.h). Beyond, it is whole bytes, which are not packed. Tiles
 * are stored row by row. Those at the edges may reach beyond the layer; what is there does not count.
 *
 * The form of a number format is one code a weight: (grid[code] - zero) · scale. A codebook of vectors is a
 * format with a form of its own, and without a grid (num/format.h).
 */
#ifndef NUM_CODE_FORM_H
#define NUM_CODE_FORM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

struct code_form {
	size_t rows, columns;		/* of a tile */
	/*
	 * Weights of columns [i, i + n) of one row, from their tiles alone: row < rows and i count from the
	 * first weight of the tile at `code`. n ≤ 256. Each column has its scale and its zero, or 0.
	 */
	void (*decode)(const struct format *f, size_t row, size_t i, size_t n, float w[n],
		const uint8_t code[], const float scale[n], const uint8_t zero[n]);
	/* Whether a code of a file stands for weights. NULL: where each of its bytes is one of the format's
	 * (code_mask, code_last). Codes of more than 8 bits with spare ones in their bytes need it. Nothing
	 * else is decoded. */
	bool (*valid)(const struct format *f, const uint8_t code[]);
};

const struct code_form *code_form(const struct format *f);
/* Whether a code stands for one weight, by the format's grid. */
bool code_is_single(const struct format *f);
/* Whether its codes may be packed, in f->bits bits each. */
bool code_packs(const struct format *f);

/* Bytes of a code; of out x in weights the rows of codes, and the bytes of a row. */
size_t code_bytes(const struct format *f);
size_t code_rows(const struct format *f, size_t out);
size_t code_columns(const struct format *f, size_t in);
/* All tiles of out x in weights, in bits. */
double code_bits(const struct format *f, size_t out, size_t in);
/* The place of the first of n codes that is not valid; n: all are. */
size_t code_first_invalid(const struct format *f, size_t n, const uint8_t code[]);
/* Whether every code is valid, so that none need be looked at; packed ones have no spare bits. */
bool code_is_any(const struct format *f, bool packed);
#endif
