/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activation.h -- what stands between the linear layers of an MLP */
#ifndef FORWARD_ACTIVATION_H
#define FORWARD_ACTIVATION_H
#include <stddef.h>
#include "model/config.h"

/* y[m][n] = act(x), or act(gate) · up, gate and up side by side at the beginning of rows of `stride` ≥ 2n
 * numbers. */
void mlp_activate(enum activation activation, size_t m, size_t n, size_t stride, float *y, const float *x);
#endif
