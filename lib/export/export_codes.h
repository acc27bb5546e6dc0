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
 * Dies, naming the layer and what would do, where codes alone do not say what the layer multiplies (branch,
 * columns taken out, rotations), where layers of one tensor have other formats, groups or inputs than the
 * first, and for embeddings, convolutions and transposed tensors.
 */
void export_check_codes(const struct export *e, const struct export_weight *w);
/* Whether groups are neighbouring columns; the second dies where they are not. */
bool export_neighbours(const struct linear *l);
void export_check_neighbours(const struct export *e, const struct export_weight *w);

/* Whether zero points, if there are any, are those of signed integers: all the middle code; of all layers. */
bool export_is_centred(const struct linear *l);
bool export_is_symmetric(const struct export_weight *w);
/* What is added to codes of integers for those of others, whose middle is 2^(b-1). */
uint8_t export_code_offset(const struct linear *l);
/* Their zero point of a row and group. */
uint8_t export_zero(const struct linear *l, size_t row, size_t group);
/* The bits of v, from bit `at` of words that are `stride` apart and have 0 there. */
void export_put_bits(uint32_t *word, size_t stride, size_t at, int bits, uint32_t v);

/*
 * Whether n scales > 0 are numbers of the dtype; rounded[n]: to nearest. *first: the first one that becomes 0
 * or infinite, or if none does, the first one that is not.
 */
bool export_narrow(enum half_type dtype, size_t n, const float scale[n], float rounded[n], size_t *first);
#endif
