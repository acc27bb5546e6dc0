/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * search.h -- the scale and zero of groups of weights
 *
 * minmax: from the range. mse: both ends of the range times p = 1 - i/100, i = 0..79, least Σ|x̂ - x|^2.4,
 * first on ties (the search of GPTQ's public code). The zero that belongs to a shrunk range
 * is that of the range: p cancels, and computing it without p keeps 7.5 at 7.5. Scales that are powers of
 * two: p = 1, 2, 1/2, 1/4. LANES groups at once, value k of lane l at x[k][l].
 */
#ifndef SOLVER_SEARCH_H
#define SOLVER_SEARCH_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

enum { SEARCH_LANES = 64, SEARCH_STEPS = 80 };
/* hessian: refine.h, from the pair of mse on; learned: of the range that clip.h leaves, as minmax. */
enum search { SEARCH_MINMAX, SEARCH_MSE, SEARCH_HESSIAN, SEARCH_LEARNED };
extern const char *const searches[];		/* names by number, NULL-terminated */

/* How many factors there are. */
size_t search_steps(const struct format *f);
/* Scale and zero of the range times the i-th factor; the 0th is 1. */
void search_pair(const struct format *f, size_t i, float *scale, uint8_t *zero, double min, double max);

/* min and max: the range of each lane's n values. zero is written for asymmetric formats only. */
void search_fit(const struct format *f, enum search how, size_t n, float scale[SEARCH_LANES],
	uint8_t zero[SEARCH_LANES], const float x[n][SEARCH_LANES], const double min[SEARCH_LANES],
	const double max[SEARCH_LANES]);

/*
 * Σ_k (|x̂ - x|·unit)^2.4 of each lane, to about 1e-6; unit brings the errors
 * to a moderate size, so that small weights do not underflow. Where every lane
 * is beyond its limit it stops: the sums are then partial, and beyond (NULL: no limit).
 */
void search_loss(const struct format *f, size_t n, double loss[SEARCH_LANES], const float x[n][SEARCH_LANES],
	const float scale[SEARCH_LANES], const uint8_t zero[SEARCH_LANES], const float unit[SEARCH_LANES],
	const double *limit);
#endif
