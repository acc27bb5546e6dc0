/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gauss.h -- the error of a number format on Gaussian weights
 *
 * Grid and weights are scaled to [-1, 1]. Weights are N(0, σ²) truncated to this range:
 *	error(σ) = E[(x - x̂)²] = Σ over cells [a, b] of a value v of ∫ (x - v)² p(x) dx.
 * σ is relative to the largest weight. The integrals are computed from the partial moments of the Gaussian
 * over each cell; they are exact except for the rounding of doubles. Scales are not rounded to float32,
 * although scales of real tensors are. relative error = error / E[x²].
 *
 * Calling sequence: gauss_of() for each format, then the other functions.
 *
 * Source: FPE2M2 section 3.3, figure 3; appendix B for the uniform distribution.
 */
#ifndef NUM_GAUSS_H
#define NUM_GAUSS_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

struct gauss {			/* a format on [-1, 1] */
	size_t n;		/* number of values and cells */
	double value[256];	/* ascending */
	double edge[257];	/* cell i is edge[i] .. edge[i + 1], from -1 to 1 */
};

/* The values of the format under the scale of the range [-1, 1]. */
struct gauss gauss_of(const struct format *f);
/* σ > 0; an infinite σ is the uniform distribution. */
double gauss_error(const struct gauss *g, double sigma);
double gauss_second_moment(double sigma);		/* E[x²] of the truncated distribution */
/* The mean error of n sampled weights, rounded by format_quantize(); *se: its standard error. */
double gauss_sampled(const struct format *f, double sigma, size_t n, uint64_t seed, double *se);

/* The σ in low .. high with the smallest ratio of the error of g to the smallest error of the others. */
double gauss_best(const struct gauss *g, size_t others, const struct gauss *const other[others], double low,
	double high);
/* The first σ in low .. high at which the errors of two formats cross; NaN if they do not cross. Errors whose
 * ratio is within 1e-12 of 1 count as equal. */
double gauss_crossover(const struct gauss *g, const struct gauss *h, double low, double high);
#endif
