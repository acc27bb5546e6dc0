/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * clip.h -- how far the range of each group of weights is shrunk, learned on the second moments
 *
 * Of each group of each row, high = σ(u)·max and low = σ(v)·min, σ(t) = 1/(1 + e⁻ᵗ), of the weights and 0;
 * formats without a zero point have one end, σ(u)·max|w|. u = v = 4 at the start. Minimized, row by row, is
 * e H eᵀ, e = w - ŵ, ŵ the nearest values under scale and zero of the shrunk ranges, by CLIP_STEPS of Adam
 * (β 0.9, 0.999, ε 1e-8) at the rate CLIP_RATE. The gradient is that of
 *	ŵ = (w/s + r)·s within the range of the values, (top - z)·s above, (bottom - z)·s below,
 *	s = (high - low)/top,  z = -low/s + ρ,  or s = high/top,  z = 0,
 * what r and ρ round off, and the rounding of s to the type of scales, held constant. It is divided by the
 * row's first loss. The factors of the least loss are kept, the first on ties; 1, where no loss is finite.
 *
 * Source: OmniQuant (Shao et al., 2023), section 3.2, which does it on a block's output, and whose public
 * code lets no gradient through z. The start, Adam and ε are its own.
 *
 * Products in float, in tiles of CLIP_TILE columns; sums in double.
 */
#ifndef SOLVER_CLIP_H
#define SOLVER_CLIP_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

enum { CLIP_ROWS = 256, CLIP_TILE = 256, CLIP_STEPS = 50 };
#define CLIP_RATE 0.2

/* Of a group, high and low end. */
struct clip_group {
	float factor[2][CLIP_ROWS];	/* σ(u), σ(v) that are kept; without a zero point the same */
	float end[2][CLIP_ROWS];	/* of the weights; without a zero point max|w|, 0 */
	float u[2][CLIP_ROWS], first[2][CLIP_ROWS], second[2][CLIP_ROWS];
	double slope[2][CLIP_ROWS];	/* of the loss, by the shrunk ends */
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
	const double *unit;		/* [rows] what weights are divided by first */
	size_t steps;
	double rate;
};

/* e: [n], product: [CLIP_TILE], both scratch. */
void clip_learn(const struct clip *c, struct clip_group group[], float (*e)[CLIP_ROWS],
	float (*product)[CLIP_ROWS]);
#endif
