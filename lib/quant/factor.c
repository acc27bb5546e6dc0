/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * factor.c -- see factor.h
 *
 * U = J L⁻¹ J, J the reversal, from one Cholesky factorization J(H + λ)J = L Lᵀ;
 * H is divided by its mean diagonal, which changes no code.
 */
#include "quant/factor.h"
#include <lapacke.h>
#include <math.h>
#include "base/thread.h"
#include "num/clones.h"

/* λ is raised by these factors, each on the undamped H (SPEC section 4). */
static const double ladder[] = { 1, 2, 5, 10, 20, 50, 100 };

enum solver_status factor_check(size_t n, const float h[n * n], size_t *index)
{
	for (size_t i = 0; i < n; i++) {
		const float *row = h + i * n;
		float bad = 0;

		if (!(row[i] >= 0) || !isfinite(row[i])) {
			*index = i;
			return SOLVER_BAD_DIAGONAL;
		}
		#pragma omp simd reduction(+:bad)
		for (size_t k = 0; k < n; k++)
			bad += row[k] - row[k];
		if (bad != 0) {
			*index = i;
			return SOLVER_BAD_HESSIAN;
		}
	}
	return SOLVER_DONE;
}

size_t factor_columns(size_t n, int32_t column[n], const float *h, const int32_t *order)
{
	size_t live = 0, last = n;

	for (size_t i = 0; i < n; i++) {
		int32_t c = order ? order[i] : (int32_t)i;

		if (!h || h[(size_t)c * n + (size_t)c] > 0)
			column[live++] = c;
	}
	for (size_t i = n; i-- > 0;) {
		int32_t c = order ? order[i] : (int32_t)i;

		if (h && !(h[(size_t)c * n + (size_t)c] > 0))
			column[--last] = c;
	}
	return live;
}

/* J(PHPᵀ/mean + λ)J, lower triangle, and its Cholesky factor; returns the pivot that failed, from 1. */
static size_t factorize(size_t n, size_t live, double factor[live * live], const float h[n * n],
	const int32_t column[live], double mean, double lambda)
{
	lapack_int info;

	#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
	for (size_t i = 0; i < live; i++) {
		const float *row = h + (size_t)column[live - 1 - i] * n;
		double *a = factor + i * live;

		for (size_t k = 0; k <= i; k++)
			a[k] = row[column[live - 1 - k]] / mean;
		a[i] += lambda;
	}
	/* Column-major upper is row-major lower. */
	info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)live, factor, (lapack_int)live);
	if (info == 0)
		info = LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', (lapack_int)live, factor, (lapack_int)live);
	return (size_t)info;
}

enum solver_status factor_run(size_t n, size_t live, float u[live * live], double pivot[live], double *lambda,
	size_t *index, const float h[n * n], const int32_t column[live], double damp, double work[live * live])
{
	double mean = 0;
	size_t info = 1;

	for (size_t i = 0; i < live; i++)
		mean += h[(size_t)column[i] * (n + 1)];
	mean /= live ? live : 1;
	for (size_t i = 0; info && i < sizeof ladder / sizeof *ladder; i++) {
		*lambda = damp * ladder[i];
		info = live ? factorize(n, live, work, h, column, mean, *lambda) : 0;
	}
	if (info) {
		*index = (size_t)column[live - info];
		return SOLVER_NOT_POSITIVE;
	}
	#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
	for (size_t i = 0; i < live; i++) {
		const double *a = work + (live - 1 - i) * live;

		for (size_t k = i; k < live; k++)
			u[i * live + k] = (float)a[live - 1 - k];
		pivot[i] = a[live - 1 - i];
	}
	return SOLVER_DONE;
}
