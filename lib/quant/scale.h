/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * scale.h -- the FP8 scales s₈ of rows, and scale and zero of a whole tensor
 *
 *	s₈ = max|W|/z_top, of the row or of all rows, up to a power of two if so asked.
 *
 * workspace: one for each thread; work goes in OpenMP tasks.
 *
 * Source: DPQ eq. 6 and section 2.2.
 */
#ifndef QUANT_SCALE_H
#define QUANT_SCALE_H
#include <stddef.h>
#include "quant/job.h"

/* low, high of each row's live columns, 0 among them; SOLVER_BAD_WEIGHT: row *index is not finite. */
enum solver_status scale_ranges(struct rows *l, const struct workspace *workspace, size_t *index);
/* scale8 of each row from the ranges; 1 without a compute format. */
void scale_rows(struct rows *l);
/* tensor_scale and tensor_zero: one pair for the whole matrix. */
void scale_tensor(struct rows *l, const struct workspace *workspace);
/* x to FP8, if the solver rounds before it takes the code. */
void scale_round_first(const struct solver *s, size_t n, float x[n]);
#endif
