/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq_search.h -- activation-aware weight quantization: which scales of input channels, and which clipping of
 * weights, rounding to nearest loses least under
 *
 * With x̄_j = mean |x_j| of a layer's inputs, H = Σ x xᵀ and Q rounding to nearest in groups:
 *	s_j = max(x̄_j^r, 10⁻⁴) / √(max s · min s),	r = 0, 1/20, ... 19/20
 *	tr(E H Eᵀ), E = W - Q(W diag(s)) diag(s)⁻¹
 * and, of W diag(s), row by row and group by group,
 *	c = max |w| · (1 - i/20), i = 0 ... 9, of the least e H_gg eᵀ, e = (w - Q(max(-c, min(c, w)))) / s
 * with H_gg the group's block of H; ties go to the larger range. Q's groups are neighbouring columns, their
 * scales as quant/round.h has them.
 *
 * Sources: AWQ (Lin et al. 2024, arXiv 2306.00978), and the grids and constants of its public code
 * (mit-han-lab/llm-awq, awq/quantize/auto_scale.py and auto_clip.py), whose losses are mean squares of
 * outputs over calibration tokens.
 */
#ifndef TRANSFORM_AWQ_SEARCH_H
#define TRANSFORM_AWQ_SEARCH_H
#include <stdbool.h>
#include <stddef.h>
#include "num/format.h"
#include "quant/linear.h"

enum { AWQ_RATIOS = 20, AWQ_SHRINKS = 10 };

/* What weights are to be rounded to: columns of a group, 0: all of a row. */
struct awq_format { struct format storage; long group; };

/* s of the ratio i/AWQ_RATIOS. */
void awq_factors(size_t n, double s[n], const double mean_abs[n], size_t i);
/*
 * tr(E H Eᵀ) of the layer's weight under s (NULL: 1), and tr(W H Wᵀ) where it is asked for. NaN where a
 * weight is not finite, or does not stay so times s. h: [in][in]. The same for every number of threads.
 */
double awq_loss(const struct awq_format *f, const struct linear *l, const double *s, const float *h,
	double *whole);
/* The same where w is W diag(s) already, its rows over `rows` (NULL: 1), which are no part of the loss. */
double awq_loss_scaled(const struct awq_format *f, size_t m, size_t n, const double w[m][n], const double *s,
	const double *rows, const float *h, double *whole);
/* Clips w, which is W diag(s); clipped: how many of its groups. False, and nothing done, where a weight is
 * not finite. */
bool awq_clip(const struct awq_format *f, size_t m, size_t n, double w[m][n], const double *s, const float *h,
	size_t *clipped);
#endif
