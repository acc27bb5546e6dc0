/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * refine.h -- search of scale and zero of groups by the error of the layer's output
 *
 * The cost is a quadratic form of the error of the group, e = x - (v - z)·s, where v are the values of codes:
 *
 *	H (`sweep` false): e H_gg eᵀ, where H_gg is the block of the group in the second moments. Codes
 *	are the nearest. This is the output error without compensation, except for products of errors of
 *	two groups.
 *
 *	R (`sweep` true): |e R_gg|², where R Rᵀ = H in the order of the columns (factor.h). Let E be the
 *	error of a whole row. (E R)_j depends only on columns up to j. So the columns before the group have
 *	a fixed part. The columns after it can make their part zero: (E R)_rest = 0 has a solution, as R is
 *	triangular. What remains is (E R)_g = e_before R_before,g + e_g R_gg = (x - ŵ) R_gg, where x are the
 *	weights of the group after compensation by the columns before it. R_gg R_ggᵀ is the Schur complement
 *	of H for the group: the inverse of the block of the group in the inverse of H_≥g. The cost is the
 *	loss of GPTQ, Σ ((x'_j - ŵ_j)/U_jj)² over the group. Codes are those of GPTQ: each is the code of
 *	x'_j, which is x_j after compensation by the columns of the group before it.
 *
 * The search starts from the pair of the mse search (search.h). REFINE_ROUNDS times it computes the codes
 * under the pair, then the pair of smallest cost for these codes, by least squares for s and z·s. z is
 * rounded, s is computed by least squares for that z, and is rounded to the type of scales. If scales are
 * powers of two, the factors of the mse search are tried instead. The pair of smallest cost is kept, on ties
 * the first one. So it never costs more than the pair of the mse search.
 *
 * x and sums of 256 products are in float; sums of these are in double. LANES rows at once, as in search.h.
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

/* Floats of the workspace, for groups of n columns. */
size_t refine_workspace(size_t n);
/* scale, zero: the first pair, replaced by the best pair; low, high: the range for the first pair. */
void refine_fit(const struct refine *r, size_t n, float scale[SEARCH_LANES], uint8_t zero[SEARCH_LANES],
	const float x[n][SEARCH_LANES], const double low[SEARCH_LANES], const double high[SEARCH_LANES],
	float *workspace);
#endif
