/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * search.h -- search of scale and zero of groups of weights
 *
 * minmax: from the range. mse: both ends of the range times p = 1 - i/100, i = 0..79. The p of the smallest
 * Σ|x̂ - x|^2.4 is used, on ties the first one (the search of GPTQ's public code). If scales are powers of
 * two, p is 1, 2, 1/2, 1/4. The zero of a shrunk range is the zero of the range, since p cancels; computing
 * it without p keeps 7.5 at 7.5.
 *
 * SEARCH_LANES groups are searched at once. Value k of lane l is x[k][l].
 */
#ifndef SOLVER_SEARCH_H
#define SOLVER_SEARCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

enum { SEARCH_LANES = 64, SEARCH_STEPS = 80 };
/* hessian: mse, then refine.h; learned: minmax of the range that clip.h has shrunk. */
enum search { SEARCH_MINMAX, SEARCH_MSE, SEARCH_HESSIAN, SEARCH_LEARNED };
extern const char *const searches[];		/* names by number, NULL-terminated */
/* Whether it reads H. */
bool search_reads_hessian(enum search how);

/* Number of factors p. */
size_t search_steps(const struct format *f);
/* The i-th factor. Factor 0 is 1. */
double search_factor(const struct format *f, size_t i);
/* Bound of the relative difference of a loss in float from that in double. */
double search_near(const struct format *f);
/* Scale and zero of the range min .. max times the i-th factor. */
void search_pair(const struct format *f, size_t i, float *scale, uint8_t *zero, double min, double max);

/* Scale and zero of n values in each lane; for `hessian` the pair of mse. min, max: the range of each lane.
 * zero is written for asymmetric formats only. */
void search_fit(const struct format *f, enum search how, size_t n, float scale[SEARCH_LANES],
	uint8_t zero[SEARCH_LANES], const float x[n][SEARCH_LANES], const double min[SEARCH_LANES],
	const double max[SEARCH_LANES]);

/*
 * loss = Σ_k (|x̂ - x|·unit)^2.4 of each lane, with a relative error of about 1e-6. unit scales the errors
 * to a moderate size, so that errors of small weights do not underflow. When the sums of all lanes exceed
 * their limits, the function stops, and the sums are partial. limit NULL: no limits.
 */
void search_loss(const struct format *f, size_t n, double loss[SEARCH_LANES], const float x[n][SEARCH_LANES],
	const float scale[SEARCH_LANES], const uint8_t zero[SEARCH_LANES], const float unit[SEARCH_LANES],
	const double *limit);
#endif
