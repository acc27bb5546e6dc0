/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dense.h -- a linear layer as one plain matrix: codes, columns taken out, branch, rotations */
#ifndef EXPORT_DENSE_H
#define EXPORT_DENSE_H
#include "quant/linear.h"

/*
 * y = x Wᵀ is what the layer makes of inputs that it does not round, before the bias. Without rotations each
 * number is that of linear_whole(); with them it is that, rotated back in double and rounded once to float:
 *	W ← R_out⁻¹ Ŵ R_in, R as in struct linear_rotation
 */
void linear_dense(const struct linear *l, float w[l->out][l->in]);
/* Whether that is `weight` as it is stored, of the type weight_type. */
bool linear_is_dense(const struct linear *l);
#endif
