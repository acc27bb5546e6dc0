/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * export_codes.h -- the codes of a tensor of a checkpoint, for targets that pack them
 *
 *	export_check_codes(e, w);
 *	for (size_t row = 0; row < w->rows; row++) {
 *		size_t of_layer;
 *		const struct linear *l = &w->layer[export_row(w, row, &of_layer)].linear;
 *
 *		... linear_codes(l, of_layer, ...)
 *	}
 */
#ifndef IMPORT_EXPORT_CODES_H
#define IMPORT_EXPORT_CODES_H
#include "import/target.h"

/* Whether any of its layers is quantized. */
bool export_quantized(const struct export_weight *w);
/*
 * Dies, naming the layer and what would do, where codes alone do not say what the layer multiplies (branch,
 * columns taken out, rotations), where layers of one tensor have other formats, groups or inputs than the
 * first, for embeddings, convolutions and transposed tensors, and where groups are not neighbouring columns.
 */
void export_check_codes(const struct export *e, const struct export_weight *w);

/*
 * Whether n scales > 0 are numbers of the dtype; rounded[n]: to nearest. *first: the first one that is not.
 */
bool export_narrow(enum half_type dtype, size_t n, const float scale[n], float rounded[n], size_t *first);
#endif
