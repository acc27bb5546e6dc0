/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * factor.h -- live columns of the second moments H, and the factor R of H
 *
 *	R Rᵀ = P H Pᵀ/mean + λ·I, R upper triangular,
 * where mean is the mean of the live diagonal, and P the order of the columns. λ is
 * the damping times the first of 1, 2, 5, 10, 20, 50, 100 with which the matrix is
 * positive definite. The U of GPTQ, for which UᵀU is the inverse, is R⁻¹. The inverse
 * of H is never computed.
 *
 * The computation is in float, like H: R is the factor of a matrix that differs from H by
 * rounding. Work is divided into OpenMP tasks of fixed sizes. They run in parallel if the
 * caller is in a parallel region. The result does not depend on threads.
 *
 * Calling sequence: factor_check(), factor_columns(), factor_run(), then factor_inverse() for
 * parts of R.
 *
 * Source: GPTQ (Frantar et al., 2022), section 3.3.
 */
#ifndef SOLVER_FACTOR_H
#define SOLVER_FACTOR_H
#include <stddef.h>
#include <stdint.h>
#include "solver/solver.h"

/* Checks that H is finite and its diagonal not negative. On an error, *index is the first invalid row. */
enum status factor_check(size_t n, const float h[n * n], size_t *index);

/*
 * Sets column: position → column, in the given order (NULL: storage order), with dead columns (H_ii = 0)
 * after all others. Returns the number of live columns. h NULL: all columns are live.
 */
size_t factor_columns(size_t n, int32_t column[n], const float *h, const int32_t *order);

/* Mean of the live diagonal. */
double factor_mean(size_t n, size_t live, const float h[n * n], const int32_t column[live]);
/* Factors of the damping that are tried in turn, each on the undamped H. */
enum { FACTOR_STEPS = 7 };
extern const double factor_ladder[FACTOR_STEPS];
/*
 * r: R in the upper triangle, scratch below it; mean and lambda: as in the equation above. If the result is
 * STATUS_NOT_POSITIVE, *index is the column of the failed pivot.
 */
enum status factor_run(size_t n, size_t live, float r[live * live], double *mean, double *lambda,
	size_t *index, const float h[n * n], const int32_t column[live], double damp);

/* v = (S⁻¹)ᵀ, where S is the diagonal block of R from first to first + n - 1. v is lower triangular, with
 * zeros above. */
void factor_inverse(size_t n, float v[n][n], size_t live, const float r[live * live], size_t first,
	double work[n][n]);
#endif
