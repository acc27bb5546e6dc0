/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * smooth.h -- SmoothQuant: makes outliers in the output of a norm smaller, and the weights that read them
 * larger
 *
 *	s_j = max|X_j|^α / max|W_j|^(1-α),	X ← X / s, W ← W diag(s)
 *
 * with maxima over the tokens of a calibration and over all layers that read through the norm. The norm's
 * gain and shift are divided by s (SmoothQuant, Xiao et al. 2023, eq. 4). s = 1 for channels whose inputs or
 * weights are all 0.
 */
#ifndef TRANSFORM_SMOOTH_H
#define TRANSFORM_SMOOTH_H
#include "base/report.h"
#include "io/part.h"
#include "transform/rewrite.h"

struct smooth {
	const struct part *hessian;	/* with absmax of the layers' inputs */
	double alpha;			/* 0 to 1 */
	struct report *report;
	size_t done;			/* norms so far */
};

/* norm() of struct rewrite: the factors of a norm; none if the file has no Hessian of the layers that read
 * it. Reports the largest input and the largest weight, before and after. */
void smooth_norm(void *smooth, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm);
#endif
