/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * code_form.h -- the form of codes: the weights of a code, the valid codes, and the decoding
 *
 * A code represents a tile of rows x columns weights of a layer. The format specifies its number of bits. A
 * code of at most 8 bits is stored in a byte, and may be packed (quant/pack.h). A longer code is stored in
 * whole bytes, and is not packed. Tiles are stored row by row. Tiles at the edges may extend beyond the
 * layer; the weights there are ignored.
 *
 * In the form of a number format, a code represents one weight: (grid[code] - zero) · scale. A codebook of
 * vectors is a format with a form and without a grid (num/format.h).
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
	 * Decodes the weights of columns [i, i + n) of one row; n ≤ 256. row < rows and i count from the
	 * first weight of the tile at `code`. scale[j] and zero[j] belong to column i + j; zero is 0 without
	 * zero points.
	 */
	void (*decode)(const struct format *f, size_t row, size_t i, size_t n, float w[n],
		const uint8_t code[], const float scale[n], const uint8_t zero[n]);
	/* Whether a code from a file is valid. Only valid codes are decoded. NULL: a code is valid if each
	 * of its bytes is a code of the format (code_mask, code_last). Codes of more than 8 bits with spare
	 * bits in their bytes need this function. */
	bool (*valid)(const struct format *f, const uint8_t code[]);
	bool has_scales;		/* codes contain the scales: the layer has none of its own */
};

const struct code_form *code_form(const struct format *f);
/* Whether a code represents one weight, by the grid of the format. */
bool code_is_single(const struct format *f);
/* Whether codes contain the scales of the weights. */
bool code_has_scales(const struct format *f);
/* Whether codes may be packed, in f->bits bits each. */
bool code_packs(const struct format *f);

size_t code_bytes(const struct format *f);		/* bytes of a code */
size_t code_rows(const struct format *f, size_t out);	/* rows of codes for `out` rows of weights */
size_t code_columns(const struct format *f, size_t in);	/* bytes of a row of codes for `in` columns */
/* Bits of all codes of out x in weights. */
double code_bits(const struct format *f, size_t out, size_t in);
/* Index of the first invalid code among n; n: all are valid. */
size_t code_first_invalid(const struct format *f, size_t n, const uint8_t code[]);
/* Whether every bit pattern is a valid code, so that codes need no check. Packed codes have no spare bits. */
bool code_is_any(const struct format *f, bool packed);
#endif
