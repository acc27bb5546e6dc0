/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * clip.h -- learned clipping: factors by which the range of each group of weights is shrunk
 *
 * A group of a row has the range low = σ(v)·min, high = σ(u)·max, where σ(t) = 1/(1 + e⁻ᵗ), and min and max
 * are over the weights and 0. In formats without a zero point, high = σ(u)·max|w|, and low is not used. u
 * and v start at 4.
 *
 * For each row, e H eᵀ with e = w - ŵ is minimized by CLIP_STEPS steps of Adam (β 0.9, 0.999, ε 1e-8) at the
 * rate CLIP_RATE. ŵ are the nearest values under scale and zero of the shrunk ranges. With M and m the
 * largest and the smallest value of the format, the gradient is the gradient of
 *	ŵ = (w/s + r)·s within the range of the values, (M - z)·s above, (m - z)·s below,
 *	s = (high - low)/M,  z = -low/s + ρ,  or s = high/M,  z = 0.
 * The rounding errors r and ρ, and the rounding of s to the scale type, are held constant. The gradient is
 * divided by the first loss of the row. The factors of the smallest loss are kept, on ties the first ones.
 * They are 1 if no loss is finite.
 *
 * Source: OmniQuant (Shao et al., 2023), section 3.2. OmniQuant minimizes the error of the output of a
 * block, and its public code has no gradient through z. The start, Adam and ε are those of OmniQuant.
 *
 * Products are in float, in tiles of CLIP_TILE columns; sums are in double. BLAS must use one thread.
 */
#ifndef SOLVER_CLIP_H
#define SOLVER_CLIP_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

enum { CLIP_ROWS = 256, CLIP_TILE = 256, CLIP_STEPS = 50 };
#define CLIP_RATE 0.2

/* State of a group. [0] is the high end, [1] the low end. */
struct clip_group {
	float factor[2][CLIP_ROWS];	/* the kept σ(u), σ(v); without a zero point both are σ(u) */
	float end[2][CLIP_ROWS];	/* max, min of the weights; without a zero point max|w|, 0 */
	float u[2][CLIP_ROWS], first[2][CLIP_ROWS], second[2][CLIP_ROWS];	/* u, v; moments of Adam */
	double slope[2][CLIP_ROWS];	/* derivatives of the loss by the shrunk ends */
	float scale[CLIP_ROWS], low[CLIP_ROWS];
	uint8_t zero[CLIP_ROWS];
};

struct clip {
	const struct format *storage;	/* with the divisor of the layer's scales */
	size_t n, live, groups;
	const int32_t *column, *group;	/* [n], [live] position → column, group */
	const float *h;			/* [n][n] */
	size_t rows;			/* at most CLIP_ROWS */
	const float (*w)[CLIP_ROWS];	/* [n] by column */
	const double *unit;		/* [rows] divisors of the weights (s₈) */
	size_t steps;
	double rate;
};

/* Sets group[].factor. group: [groups]; e: [n] and product: [CLIP_TILE], both scratch. */
void clip_learn(const struct clip *c, struct clip_group group[], float (*e)[CLIP_ROWS],
	float (*product)[CLIP_ROWS]);
#endif
