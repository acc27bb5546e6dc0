/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * factor.h -- what a solver takes from the second moments H: its live columns and the factor R
 *
 *	R Rᵀ = P H Pᵀ/mean + λ·I, R upper triangular, mean that of the live diagonal,
 * P the order of the columns. λ is the damping times 1, 2, 5, 10, 20, 50, 100:
 * the first with which H is positive definite. GPTQ's U, with
 * UᵀU the inverse, is R⁻¹: no inverse of H is ever formed.
 *
 * In float, as H is stored: the factor is that of a matrix within rounding of it.
 * Work is cut into OpenMP tasks of fixed size, so that a caller that stands in a
 * parallel region shares it out, and the result does not depend on threads.
 *
 * Source: GPTQ (Frantar et al., 2022), section 3.3.
 */
#ifndef SOLVER_FACTOR_H
#define SOLVER_FACTOR_H
#include <stddef.h>
#include <stdint.h>
#include "solver/solver.h"

/* Whether H is finite, its diagonal not negative; else *index is the row at fault. */
enum status factor_check(size_t n, const float h[n * n], size_t *index);

/*
 * column: position → column, in the given order (NULL: as they stand), but columns that never fired
 * (H_ii = 0) behind all others. Returns how many are live. h NULL: all of them.
 */
size_t factor_columns(size_t n, int32_t column[n], const float *h, const int32_t *order);

/*
 * r: R in the upper triangle, scratch below it; mean, lambda: what was divided by
 * and added. STATUS_NOT_POSITIVE: *index is the column at fault.
 */
enum status factor_run(size_t n, size_t live, float r[live * live], double *mean, double *lambda,
	size_t *index, const float h[n * n], const int32_t column[live], double damp);

/* v = (S⁻¹)ᵀ, lower triangle, of the triangle S = R[first .. first + n - 1] on the diagonal; 0 above it. */
void factor_inverse(size_t n, float v[n][n], size_t live, const float r[live * live], size_t first,
	double work[n][n]);
#endif
