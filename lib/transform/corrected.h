/* SPDX-License-Identifier: GPL-3.0-or-later */
/* corrected.h -- the weight of a layer, corrected for the error of its inputs (solver/correct.h) */
#ifndef TRANSFORM_CORRECTED_H
#define TRANSFORM_CORRECTED_H
#include "quant/linear.h"
#include "solver/correct.h"

/* w[out][n] = W + share · W P, in parallel. Returns ‖w - W‖/‖W‖. */
double corrected_weight(const struct correction *c, double share, const struct linear *l, float w[]);
#endif
