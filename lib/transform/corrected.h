/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * corrected.h -- the weight of a layer, corrected for the error of its inputs: W + share · W P
 *
 * P is made by correct_make() (solver/correct.h), which has the equation and its sources. The weight of the
 * layer is the dequantized one. Rows are corrected in parallel; results do not depend on the threads.
 */
#ifndef TRANSFORM_CORRECTED_H
#define TRANSFORM_CORRECTED_H
#include "quant/linear.h"
#include "solver/correct.h"

/* w: [out][in]. Returns ‖w - W‖/‖W‖. */
double corrected_weight(const struct correction *c, double share, const struct linear *l, float w[]);
/* Makes *y a plain layer with the corrected weight, and returns the memory of the weight; free() it. */
float *corrected_layer(const struct correction *c, double share, const struct linear *l, struct linear *y);
#endif
