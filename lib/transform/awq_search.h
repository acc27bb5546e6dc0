/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq_search.h -- AWQ: searches the scales of input channels and the clipping of weights for which rounding
 * to nearest has the smallest loss
 *
 * With x̄_j = mean |x_j| of a layer's inputs, H = Σ x xᵀ and Q rounding to nearest in groups:
 *	s_j = max(x̄_j^r, 10⁻⁴) / √(max s · min s),	r = 0, 1/20, ... 19/20
 *	tr(E H Eᵀ), E = W - Q(W diag(s)) diag(s)⁻¹
 * and, for each group w of each row of W diag(s),
 *	c = max |w| · (1 - i/20), i = 0 ... 9, with the least e H_gg eᵀ, e = (w - Q(max(-c, min(c, w)))) / s
 * where H_gg is the group's block of H. Ties: the larger range. Groups of Q are neighbouring columns, with
 * scales as in quant/round.h.
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

/* The format that weights will be rounded to. group: columns of a group, 0: a row. */
struct awq_format { struct format storage; long group; };

/* s of the ratio i/AWQ_RATIOS. */
void awq_factors(size_t n, double s[n], const double mean_abs[n], size_t i);
/*
 * tr(E H Eᵀ) of the layer's weight with scales s (NULL: 1). *whole = tr(W H Wᵀ), unless NULL. NaN if a weight
 * is not finite, before or after multiplication by s. h: [in][in]. The result is the same for every number of
 * threads.
 */
double awq_loss(const struct awq_format *f, const struct linear *l, const double *s, const float *h,
	double *whole);
/* awq_loss() of w, which is W diag(s) with rows divided by `rows` (NULL: 1). The loss is of W. */
double awq_loss_scaled(const struct awq_format *f, size_t m, size_t n, const double w[m][n], const double *s,
	const double *rows, const float *h, double *whole);
/* Clips w, which is W diag(s). *clipped: number of clipped groups. If a weight is not finite, returns false
 * and changes nothing. */
bool awq_clip(const struct awq_format *f, size_t m, size_t n, double w[m][n], const double *s, const float *h,
	size_t *clipped);
#endif
