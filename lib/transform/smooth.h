/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * smooth.h -- what makes outliers of a norm's output smaller, at the cost of the weights that read it
 *
 *	s_j = max|X_j|^α / max|W_j|^(1-α),	X ← X / s, W ← W diag(s)
 *
 * over the tokens of a calibration and all layers that read through the norm, whose gain and shift are
 * divided by s (SmoothQuant, Xiao et al. 2023, eq. 4). Channels that never fired or that nothing reads keep
 * s = 1.
 */
#ifndef TRANSFORM_SMOOTH_H
#define TRANSFORM_SMOOTH_H
#include "base/report.h"
#include "io/part.h"
#include "transform/rewrite.h"

struct smooth {
	const struct part *hessian;	/* has absmax of the layers' inputs */
	double alpha;			/* 0 to 1 */
	struct report *report;
	size_t done;			/* norms so far */
};

/* For struct rewrite: the factors of a norm; none where the file has no Hessian of the layers behind it.
 * Prints the largest input and the largest weight, before and after. */
void smooth_norm(void *smooth, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm);
#endif
