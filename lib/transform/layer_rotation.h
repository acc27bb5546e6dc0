/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer_rotation.h -- rotations of the inputs and outputs of a layer before its quantization (two-sided
 * incoherence)
 *
 * With the rotations of a struct linear_rotation, x R_in of inputs and y R_out of outputs, the quantizer
 * reads
 *	W̃ = R_outᵀ W R_in, H̃ = R_inᵀ H R_in,	tr(E H Eᵀ) = tr(Ẽ H̃ Ẽᵀ),
 * whose numbers are nearly Gaussian. The layer then stores W̃ and both rotations, so that its inputs and
 * outputs, the Hessians of the model and its basis stay what they are. R = diag(signs) H/√b, H of the largest
 * order b that divides the extent. Signs are those of a seed: layers with the same input have the same.
 * Layers with the input of a router have none: the router is not quantized, and its input would be rotated.
 * An online Hadamard without signs is not such a rotation: the basis of a model has it, and so have Hessians.
 *
 * Calling sequence: layer_rotation_make() or layer_rotation_copy(); layer_rotation_weight(),
 * layer_rotation_hessian(); layer_rotation_free().
 *
 * Source: QuIP# (Tseng et al., 2024), section 3.
 */
#ifndef TRANSFORM_LAYER_ROTATION_H
#define TRANSFORM_LAYER_ROTATION_H
#include <stddef.h>
#include <stdint.h>
#include "quant/linear.h"

struct layer_rotation {
	int8_t *signs[2];		/* of inputs, of outputs; NULL: all 1 */
	struct linear_rotation in, out;
	float *weight;			/* [out][in] W̃ */
	struct linear linear;		/* views of it */
};

/* Rotations for a layer of these extents. Zeroed before. */
void layer_rotation_make(struct layer_rotation *r, size_t out, size_t in, uint64_t seed);
/* The rotations of a layer that is rotated already. Zeroed before. */
void layer_rotation_copy(struct layer_rotation *r, const struct linear *l);
/* Sets r->linear: the weight of l, rotated. */
void layer_rotation_weight(struct layer_rotation *r, const struct linear *l);
/* H̃, symmetric; free() it. */
float *layer_rotation_hessian(const struct layer_rotation *r, size_t n, const float *h);
/* H̃ + R_inᵀ (G - H) R_in of cross moments G, which is H̃ in every bit if G is H; free() it. rotated: H̃. */
float *layer_rotation_cross(const struct layer_rotation *r, size_t n, const float *g, const float *h,
	const float *rotated);
void layer_rotation_free(struct layer_rotation *r);
#endif
