/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * export_scales.h -- the scales of a tensor of a checkpoint, in the type that a target has for them
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
	struct linear *view;		/* [w->n]: layers as they are written, which with skip_compute */
					/* are without their compute format */
	size_t rows, groups;		/* extents: the rows of w, or 1; groups of the target */
	float *scale;			/* [rows][groups], as they are written */
};
/* The layer that rounding changed most, and by which share of its norm. */
struct export_change { char *worst; double change; };

/*
 * columns: of a group of the target, where there are several; it is ours, or a part of ours. divided: the
 * target has scale_tensor, which divides the scales; if not, they are divided here.
 */
struct export_scales export_scales(const struct export *e, const struct export_weight *w, size_t rows,
	size_t groups, size_t columns, bool divided);
void export_scales_free(struct export_scales *s);
/* The layer as it is written that has a row of the tensor; *of_layer: which row of it. */
const struct linear *export_scales_layer(const struct export_scales *s, size_t row, size_t *of_layer);

/*
 * The scales in the dtype; free() it. One that is no number of it is refused, unless allow_rounding, and
 * always where it would be 0 or infinite; what that costs, or skip_compute, is reported and kept in *change.
 * dtype HALF_NONE: they are all held. instead: of the message, what would hold it.
 */
float *export_scales_round(const struct export_scales *s, enum half_type dtype, const char *instead,
	struct export_change *change);
/* Warns if there was a change; frees its name. */
void export_change_warn(const struct export *e, struct export_change *change);
#endif
