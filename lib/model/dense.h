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
/* The layer with this matrix in new memory, which free() frees, and its bias. Its inputs are not rounded. */
struct linear linear_plain(const struct linear *l, float **memory);
/* Whether the result is `weight` unchanged, of the type weight_type. */
bool linear_is_dense(const struct linear *l);
#endif
