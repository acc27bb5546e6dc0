/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cholesky.c -- see cholesky.h */
#include "num/cholesky.h"
#include <cblas.h>
#include <lapacke.h>
#include "base/size.h"
#include "base/thread.h"

/* Constants, not options: results depend on them. FEW: multiplications below which one thread is faster. */
enum { TILE = 128, ROWS = 64, FEW = 1 << 22 };

/* Subtracts the product of finished columns k from the tiles right of them. */
static void update(size_t n, double a[n][n], size_t k)
{
	const size_t first = k + TILE, side = ceil_div(n - first, TILE);

	#pragma omp parallel for num_threads(threads) if (n - first > 2 * TILE) schedule(dynamic)
	for (size_t t = 0; t < side * side; t++) {
		const size_t i = first + t / side * TILE, j = first + t % side * TILE;

		if (i >= j)
			cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)min(TILE, n - i),
				(int)min(TILE, n - j), TILE, -1, &a[i][k], (int)n, &a[j][k], (int)n, 1,
				&a[i][j], (int)n);
	}
}

size_t cholesky_factor(size_t n, double a[n][n])
{
	for (size_t k = 0; k < n; k += TILE) {
		const size_t width = min(TILE, n - k);
		/* Column-major upper is row-major lower. */
		const lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)width,
			&a[k][k], (lapack_int)n);

		if (info)
			return k + (size_t)info;
		if (width < TILE || k + TILE == n)
			break;
		#pragma omp parallel for num_threads(threads) if (n - k > 2 * TILE) schedule(dynamic)
		for (size_t i = k + TILE; i < n; i += TILE)
			cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,
				(int)min(TILE, n - i), TILE, 1, &a[k][k], (int)n, &a[i][k], (int)n);
		update(n, a, k);
	}
	return 0;
}

void cholesky_solve(size_t n, size_t stride, const double l[n][stride], size_t m, size_t b_stride,
	double b[m][b_stride])
{
	#pragma omp parallel for num_threads(threads) if (m * n * n > FEW) schedule(dynamic)
	for (size_t i = 0; i < m; i += ROWS)
		for (int pass = 0; pass < 2; pass++)
			cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, pass ? CblasNoTrans : CblasTrans,
				CblasNonUnit, (int)min(ROWS, m - i), (int)n, 1, l[0], (int)stride, b[i],
				(int)b_stride);
}
