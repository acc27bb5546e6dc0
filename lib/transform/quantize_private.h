/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize_private.h -- shared by the files of quantize.h */
#ifndef TRANSFORM_QUANTIZE_PRIVATE_H
#define TRANSFORM_QUANTIZE_PRIVATE_H
#include "transform/quantize.h"

/* quantize_check.c */
/* The layer's method, checked against the files. */
const struct method *quantize_method(const struct quantize *q, const char *layer);
/* Fatal error if statistics of a layer's inputs that the method needs are missing. */
void quantize_check_inputs(const struct quantize *q, const struct method *m, const struct layer_ref *layer,
	const struct second_moments *inputs);
/* Fatal error if the layer is quantized, and no reference has its weight. */
void quantize_check_plain(const struct quantize *q, const struct method *m, const struct part *part,
	const char *layer, bool quantized);

/* quantize_qep.c */
/* Warns if --qep-skip names no selected layer of the model. */
void quantize_check_skip(const struct quantize *q, const struct filter *f);
/* Whether QEP corrects the layer. */
bool quantize_corrects(const struct quantize *q, const struct layer_ref *layer);
/* Replaces the weights of n layers whose methods have QEP by corrected ones (solver/correct.h). */
void quantize_correct(const struct quantize *q, size_t n, struct quantized *const t[n],
	const struct part *part);

/* quantize_rotation.c */
/* Whether the layer is known to have no rotation: outside of blocks, or with the input of a router, which is
 * never rotated. */
bool quantize_unrotated(const struct layer_ref *layer);
/* Fatal error if only some layers with the same input are rotated. f: with a configuration. */
void quantize_check_rotations(const struct quantize *q, const struct filter *f);
/* Whether the weight of a reference has the rotations and split columns of a layer whose codes are kept, or
 * no rotation, so that it can be rotated. */
bool quantize_reference_fits(const struct linear *reference, const struct linear *kept);
/* Fatal error if the layer has signs of inputs, and its method needs statistics of the inputs after them. */
void quantize_check_signs(const struct quantize *q, const struct method *m, const struct part *part,
	const struct layer_ref *layer);
/* Rotates the moments of a layer that is rotated, in the file or by its method, and the weight, if it is not
 * rotated yet. Layers with one Hessian share the rotated one. before: the n layers that precede it in the
 * same run(). */
void quantize_rotate(const struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n], const struct part *part);
#endif
