/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * export_codes.h -- the codes of a tensor of a checkpoint, for targets that pack them
 *
 *	export_check_codes(e, w);
 *	export_check_neighbours(e, w);
 *	for (size_t row = 0; row < w->rows; row++) {
 *		size_t of_layer;
 *		const struct linear *l = &w->layer[export_row(w, row, &of_layer)].linear;
 *
 *		... linear_codes(l, of_layer, ...)
 *	}
 */
#ifndef EXPORT_EXPORT_CODES_H
#define EXPORT_EXPORT_CODES_H
#include "export/target.h"

/* Whether any of its layers is quantized. */
bool export_quantized(const struct export_weight *w);
/* Whether it is the head. */
bool export_is_head(const struct export *e, const struct export_weight *w);
/*
 * Checks that codes can be written. These are fatal errors, which name the layer and an alternative: a
 * branch, split columns or rotations, since codes alone do not give the effective weight; layers of one
 * tensor with different formats, groups or inputs; embeddings, convolutions and transposed tensors.
 */
void export_check_codes(const struct export *e, const struct export_weight *w);
/* Whether groups are neighbouring columns. If not, the second function exits with an error. */
bool export_neighbours(const struct linear *l);
void export_check_neighbours(const struct export *e, const struct export_weight *w);

/* Whether zero points are absent, or all the middle code as for signed integers; of a layer, of all. */
bool export_is_centred(const struct linear *l);
bool export_is_symmetric(const struct export_weight *w);
/* The number to add to codes of integers so that the code of 0 is 2^(b-1), as in the formats of targets. */
uint8_t export_code_offset(const struct linear *l);
/* The zero point of a row and group for these codes. */
uint8_t export_zero(const struct linear *l, size_t row, size_t group);
/* Writes the bits of v from bit `at` on. Words are `stride` apart; the bits must be 0 before. */
void export_put_bits(uint32_t *word, size_t stride, size_t at, int bits, uint32_t v);

/*
 * Whether n scales > 0 are numbers of the dtype. rounded[n]: the scales, rounded to nearest. *first: the
 * first scale that becomes 0 or infinite; without one, the first scale that is rounded.
 */
bool export_narrow(enum half_type dtype, size_t n, const float scale[n], float rounded[n], size_t *first);
#endif
