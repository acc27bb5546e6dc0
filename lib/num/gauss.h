/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gauss.h -- the error of a number format on Gaussian weights
 *
 * Grid and weights are scaled to [-1, 1], weights are N(0, σ²) truncated to it:
 *	error(σ) = E[(x - x̂)²] = Σ over cells [a, b] of v of ∫ (x - v)² p(x) dx,
 * exact but for the rounding of doubles, from the Gaussian's partial moments over each cell, with σ on the
 * scale of the largest weight. Scales are not rounded to float32, which those of real tensors are.
 * relative = error / E[x²].
 *
 * Source: FPE2M2 section 3.3, figure 3.
 */
#ifndef NUM_GAUSS_H
#define NUM_GAUSS_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

struct gauss {			/* a format on [-1, 1] */
	size_t n;
	double value[256];	/* ascending */
	double edge[257];	/* cell i is edge[i] .. edge[i + 1], from -1 to 1 */
};

/* The format's values under the scale that a range of [-1, 1] gives it. */
struct gauss gauss_of(const struct format *f);
/* σ > 0; an infinite σ is the uniform distribution. */
double gauss_error(const struct gauss *g, double sigma);
double gauss_second_moment(double sigma);		/* E[x²] of the truncated distribution */
/* The mean over n weights drawn, rounded by format_quantize(), and its standard error. */
double gauss_sampled(const struct format *f, double sigma, size_t n, uint64_t seed, double *se);

/* The σ in low .. high where the format is best against the others: its error over the least of theirs. */
double gauss_best(const struct gauss *g, size_t others, const struct gauss *const other[others], double low,
	double high);
/* The first σ in low .. high where the errors of two formats change order; NaN if there is none. */
double gauss_crossover(const struct gauss *g, const struct gauss *h, double low, double high);
#endif
