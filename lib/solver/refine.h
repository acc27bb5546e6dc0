/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * refine.h -- scale and zero of groups by what the group's error costs at the layer's output
 *
 * The cost is a quadratic form of the group's error e = x - (v - z)·s, codes of values v:
 *
 *	H: e H_gg eᵀ, the group's block of the second moments, all other columns without error. Codes are
 *	the nearest. It is the cost where nothing is compensated, but for what groups have in common.
 *
 *	R (`sweep`): |e R_gg|², R R ᵀ = H in the order of the columns (factor.h). Of the error E of a whole
 *	row, (E R)_j hangs on columns up to j alone. So the columns before the group have fixed their part,
 *	and those behind can make theirs 0: (E R)_rest = 0 has a solution, as R is triangular. What is left
 *	is (E R)_g = e_before R_before,g + e_g R_gg = (x - ŵ) R_gg, x the group's weights as the columns
 *	before compensate them. R_gg R_ggᵀ is the Schur complement of H onto the group, once the columns
 *	behind are taken out: the inverse of the group's block of the inverse of H_≥g. It is GPTQ's own
 *	loss, Σ ((x'_j - ŵ_j)/U_jj)² over the group; codes are GPTQ's, each from x'_j, what the group's
 *	columns before it leave of x_j.
 *
 * From the pair of the mse search (search.h) on, REFINE_ROUNDS times: codes under the pair, then the pair of
 * least cost under these codes, by least squares for s and z·s; z is rounded, and s is the least squares'
 * under that z, then a number of the type of scales. Scales that are powers of two: the four of
 * the mse search in the place of that. The pair of least cost is kept, the first on ties: it never costs
 * more than mse's.
 *
 * x in float, sums of 256 products in float, these in double. LANES rows at once, as in search.h.
 */
#ifndef SOLVER_REFINE_H
#define SOLVER_REFINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "solver/coding.h"
#include "solver/search.h"

enum { REFINE_ROUNDS = 4 };

struct refine {
	struct coding coding;		/* storage: with the divisor of the layer's scales */
	bool sweep;
	const float *form;		/* rows of `stride` numbers: R with `sweep`, else H */
	size_t stride;
	const int32_t *member, *column;	/* [n] rows of the form: column[member[i]]; column NULL: member[i] */
};

/* Numbers of the workspace for groups of n columns. */
size_t refine_workspace(size_t n);
/* scale, zero: the pair to begin with, then the best; low and high: the range that the pair was searched
 * in. */
void refine_fit(const struct refine *r, size_t n, float scale[SEARCH_LANES], uint8_t zero[SEARCH_LANES],
	const float x[n][SEARCH_LANES], const double low[SEARCH_LANES], const double high[SEARCH_LANES],
	float *workspace);
#endif
