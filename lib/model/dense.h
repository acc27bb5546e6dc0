/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dense.h -- a linear layer as one plain matrix, from codes, split columns, branch and rotations */
#ifndef MODEL_DENSE_H
#define MODEL_DENSE_H
#include "quant/linear.h"

/*
 * y = x Wᵀ is the output of the layer before the bias, for inputs that are not rounded. Without rotations W
 * is the result Ŵ of linear_whole(). With rotations, Ŵ is rotated back in double and rounded once to float:
 *	W ← R_out⁻¹ Ŵ R_in, R as in struct linear_rotation
 */
void linear_dense(const struct linear *l, float w[l->out][l->in]);
/* The same layer as a plain one: linear_dense() in *memory, which the caller frees, and the bias. Rounding of
 * inputs is dropped. */
struct linear linear_dense_layer(const struct linear *l, float **memory);
/* The layer for the inputs that its Hessian is of: *l, or linear_dense_layer() if it has an own rotation. */
struct linear linear_of_hessian(const struct linear *l, float **memory);
/* Whether the result is `weight` unchanged, of the type weight_type. */
bool linear_is_dense(const struct linear *l);
#endif
