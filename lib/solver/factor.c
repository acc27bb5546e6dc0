/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * factor.c -- see factor.h
 *
 * R = J L J, where J reverses the order, and L Lᵀ = J(PHPᵀ/mean + λ)J is a left-looking Cholesky
 * factorization in tiles. A tile is one long product with all tiles to its left, then a triangular solve. It
 * depends on its left neighbour and on its diagonal tile, and through them on all tiles that it reads.
 */
#include "solver/factor.h"
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include "base/size.h"

enum { TILE = 256 };

const double factor_ladder[FACTOR_STEPS] = { 1, 2, 5, 10, 20, 50, 100 };

enum status factor_check(size_t n, const float h[n * n], size_t *index)
{
	size_t bad_diagonal = n, bad = n;

	#pragma omp taskloop grainsize(1) shared(bad, bad_diagonal)
	for (size_t t = 0; t < n; t += TILE)
		for (size_t i = t; i < min(n, t + TILE); i++) {
			const float *row = h + i * n;
			float nan = 0;

			#pragma omp simd reduction(+:nan)
			for (size_t k = 0; k < n; k++)
				nan += row[k] - row[k];
			if (!(row[i] >= 0) || !isfinite(row[i]))
				#pragma omp critical (factor_check)
				bad_diagonal = min(bad_diagonal, i);
			if (nan != 0)
				#pragma omp critical (factor_check)
				bad = min(bad, i);
		}
	*index = min(bad_diagonal, bad);
	return *index == n ? STATUS_DONE : bad_diagonal == *index ? STATUS_BAD_DIAGONAL : STATUS_BAD_HESSIAN;
}

size_t factor_columns(size_t n, int32_t column[n], const float *h, const int32_t *order)
{
	size_t at = 0, live = 0;

	for (int dead = 0; dead < 2; dead++) {
		for (size_t i = 0; i < n; i++) {
			const int32_t c = order ? order[i] : (int32_t)i;

			if ((h && !(h[(size_t)c * (n + 1)] > 0)) == dead)
				column[at++] = c;
		}
		live = dead ? live : at;
	}
	return live;
}

/* Computes tile (i, j) of the factor. Returns the failed pivot, counted from 1, else 0. */
static size_t take_tile(size_t n, float a[n * n], size_t i, size_t j)
{
	const size_t i0 = i * TILE, j0 = j * TILE;
	const int rows = (int)min(TILE, n - i0), columns = (int)min(TILE, n - j0), size = (int)n;
	float *row = a + i0 * n, *tile = row + j0, *diagonal = a + j0 * n;
	lapack_int info;

	if (i != j) {
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, (int)j0, -1, row, size,
			diagonal, size, 1, tile, size);
		cblas_strsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, columns, 1,
			diagonal + j0, size, tile, size);
		return 0;
	}
	cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, columns, (int)j0, -1, row, size, 1, tile, size);
	/* Column-major upper is row-major lower. */
	info = LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'U', columns, tile, size);
	return info ? j0 + (size_t)info : 0;
}

/* Computes L in the lower triangle of a. Returns the failed pivot, counted from 1, else 0. */
static size_t factorize(size_t n, float a[n * n])
{
	size_t failed = 0;
	float origin = 0;

	#pragma omp taskgroup
	for (size_t j = 0; j * TILE < n; j++)
		for (size_t i = j; i * TILE < n; i++) {
			float *tile = a + (i * n + j) * TILE, *left = j ? tile - TILE : &origin;
			float *diagonal = i > j ? a + j * (n + 1) * TILE : &origin;

			(void)left, (void)diagonal;
			#pragma omp task depend(in: *left, *diagonal) depend(inout: *tile) shared(failed)
			if (!failed) {
				size_t info = take_tile(n, a, i, j);

				if (info)
					failed = info;
			}
		}
	return failed;
}

/* The lower triangle of J(PHPᵀ/mean + λ)J. */
static void fill(size_t n, size_t live, float a[live * live], const float h[n * n],
	const int32_t column[live], double mean, double lambda)
{
	#pragma omp taskloop grainsize(1)
	for (size_t t = 0; t < live; t += TILE)
		for (size_t i = t; i < min(live, t + TILE); i++) {
			const float *row = h + (size_t)column[live - 1 - i] * n;
			float *to = a + i * live;

			for (size_t k = 0; k <= i; k++)
				to[k] = (float)(row[column[live - 1 - k]] / mean);
			to[i] = (float)(row[column[live - 1 - i]] / mean + lambda);
		}
}

/* J L J in the upper triangle, from L in the lower one. */
static void reverse(size_t n, float a[n * n])
{
	#pragma omp taskloop grainsize(1)
	for (size_t t = 0; t < n; t += TILE)
		for (size_t i = t; i < min(n, t + TILE); i++)
			for (size_t k = 0; k < i; k++)
				a[(n - 1 - i) * n + n - 1 - k] = a[i * n + k];
	for (size_t i = 0; i < n / 2; i++) {
		float *x = a + i * (n + 1), *y = a + (n - 1 - i) * (n + 1), d = *x;

		*x = *y;
		*y = d;
	}
}

double factor_mean(size_t n, size_t live, const float h[n * n], const int32_t column[live])
{
	double mean = 0;

	for (size_t i = 0; i < live; i++)
		mean += h[(size_t)column[i] * (n + 1)];
	return mean / (live ? (double)live : 1);
}

enum status factor_run(size_t n, size_t live, float r[live * live], double *mean, double *lambda,
	size_t *index, const float h[n * n], const int32_t column[live], double damp)
{
	size_t info = 1;

	*mean = factor_mean(n, live, h, column);
	for (size_t i = 0; info && i < FACTOR_STEPS; i++) {
		*lambda = damp * factor_ladder[i];
		fill(n, live, r, h, column, *mean, *lambda);
		info = factorize(live, r);
	}
	if (info) {
		*index = (size_t)column[live - info];
		return STATUS_NOT_POSITIVE;
	}
	reverse(live, r);
	return STATUS_DONE;
}

void factor_inverse(size_t n, float v[n][n], size_t live, const float r[live * live], size_t first,
	double work[n][n])
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			work[i][k] = r[(first + i) * live + first + k];
	/* Column-major lower is row-major upper. */
	LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'L', 'N', (lapack_int)n, work[0], (lapack_int)n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			v[i][k] = k <= i ? (float)work[k][i] : 0;
}
