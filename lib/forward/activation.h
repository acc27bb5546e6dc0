/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activation.h -- activation functions of the MLP */
#ifndef FORWARD_ACTIVATION_H
#define FORWARD_ACTIVATION_H
#include <stddef.h>
#include "model/config.h"

/* Rows of x begin every `stride` numbers. stride = n: y[m][n] = act(x). stride ≥ 2n: y = act(gate) · up,
 * where a row of x begins with gate [n], then up [n]. */
void mlp_activate(enum activation activation, size_t m, size_t n, size_t stride, float *y, const float *x);
#endif
