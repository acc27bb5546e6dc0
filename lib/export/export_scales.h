/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * export_scales.h -- the scales of a tensor of a checkpoint, in the type of a target
 *
 *	struct export_scales s = export_scales(e, w, rows, groups, columns, false);
 *	float *rounded = export_scales_round(&s, HALF_F16, "--to hf holds it", &change);
 *
 *	... rounded[row * s.groups + g], the codes of s.view ...
 *	free(rounded);
 *	export_scales_free(&s);
 *	...
 *	export_change_warn(e, &change);		at the end
 */
#ifndef EXPORT_EXPORT_SCALES_H
#define EXPORT_EXPORT_SCALES_H
#include "export/target.h"

struct export_scales {
	const struct export *e;
	const struct export_weight *w;
	struct linear *view;		/* [w->n]: the layers that are written; with skip_compute without */
					/* their compute format */
	size_t rows, groups;		/* extents: the rows of w, or 1; groups of the target */
	float *scale;			/* [rows][groups]: the scales to write */
};
/* The layer that rounding changed most, and the relative change ‖Y - Ŵ‖/‖Ŵ‖, where Y is the written weight
 * and Ŵ the effective one. */
struct export_change { char *worst; double change; };

/*
 * columns: columns of a group of the target, if there are several groups; a group of the target is a group of
 * the layer or a part of one. keeps_scale_tensor: the target also stores scale_tensor, the divisor of the
 * scales, and the scales are copied. If false, each scale is divided by scale_tensor, if the layer has one.
 */
struct export_scales export_scales(const struct export *e, const struct export_weight *w, size_t rows,
	size_t groups, size_t columns, bool keeps_scale_tensor);
void export_scales_free(struct export_scales *s);
/* The layer of `view` with a row of the tensor; *of_layer: the number of the row in it. */
const struct linear *export_scales_layer(const struct export_scales *s, size_t row, size_t *of_layer);

/*
 * The scales, rounded to the dtype; free() it. dtype HALF_NONE: no rounding. A scale that would be rounded is
 * a fatal error, unless allow_rounding is set. A scale that would become 0 or infinite is a fatal error even
 * with allow_rounding. The change by rounding or skip_compute is reported and stored in *change. instead: the
 * alternative in the message.
 */
float *export_scales_round(const struct export_scales *s, enum half_type dtype, const char *instead,
	struct export_change *change);
/* Warns if there was a change, and frees its name. */
void export_change_warn(const struct export *e, struct export_change *change);
#endif
