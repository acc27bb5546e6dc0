/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantizer_qronos.h -- the row of Qronos in the table of quantizers (transform/quantizer.h)
 *
 * Qronos (Zhang et al., arXiv 2505.11695) is the solver on a weight that is corrected for the error of its
 * inputs, with the first column of the order alone (solver/correct.h).
 */
#ifndef TRANSFORM_QUANTIZER_QRONOS_H
#define TRANSFORM_QUANTIZER_QRONOS_H
#include "transform/quantizer.h"

typedef void qronos_solve(size_t n, struct quantized *const t[], void *workspace);
/* Calls solve() with corrected weights in place of t->weight, for layers with the same inputs at once. */
void qronos_run(size_t n, struct quantized *const t[n], void *workspace, qronos_solve *solve);
#endif
