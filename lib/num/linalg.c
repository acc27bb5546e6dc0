/* SPDX-License-Identifier: GPL-3.0-or-later */
/* linalg.c -- matrix products in fixed tiles; see linalg.h */
#include "num/linalg.h"
#include <cblas.h>
#include <math.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/clones.h"

/* Constants, not options: results depend on them. */
enum { TILE_M = 512, TILE_N = 1024, ALIGN_N = 32, TILE_GRAM = 512, ROWS_GRAM = 640 };
enum { TILE_DOUBLE = 64, DEEP = 512 };

/* Multiplications of a product, and numbers of a pass, below which starting threads costs more than it
 * saves. */
enum { FEW_PRODUCTS = 1 << 22, FEW = 1 << 16 };

static void product_tile(size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const float x[m][k], const float w[n][k], const float *bias, bool add)
{
	for (size_t i = 0; bias && i < m; i++)
		for (size_t j = 0; j < n; j++)
			y[i][j] = add ? y[i][j] + bias[j] : bias[j];
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)k, 1, x[0], (int)k, w[0],
		(int)k, add || bias ? 1 : 0, y[0], (int)stride);
}

void linalg_product(size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const float x[m][k], const float w[n][k], const float *bias, bool add)
{
	/* Tiles of nearly equal width; narrower if one tile has all rows, so that each thread gets tiles. */
	size_t columns = ceil_div(n, m <= TILE_M ? TILE_N / 2 : TILE_N);
	size_t wide = columns ? ((n - 1) / columns / ALIGN_N + 1) * ALIGN_N : 1;
	const bool few = m * n * k <= FEW_PRODUCTS;

	#pragma omp parallel for num_threads(threads) if (!few) schedule(dynamic) collapse(2)
	for (size_t j = 0; j < n; j += wide)
		for (size_t i = 0; i < m; i += TILE_M)
			product_tile(min(TILE_M, m - i), min(wide, n - j), k, stride,
				(float (*)[stride])&y[i][j], &x[i], &w[j], bias ? bias + j : NULL, add);
}

void linalg_product_double(size_t m, size_t n, size_t k, size_t y_stride, double y[m][y_stride],
	size_t x_stride, const double x[m][x_stride], const double w[k][n])
{
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, x[0], (int)x_stride,
		w[0], (int)n, 0, y[0], (int)y_stride);
}

/* Columns [j, j + columns) of y, by chunks of rows of w (transposed: of columns). */
static void thin_tile(size_t m, size_t n, size_t k, double y[m][n], const double x[m][k], const float w[],
	bool transposed, size_t j, size_t columns)
{
	double part[TILE_DOUBLE * DEEP];

	for (size_t i = 0; i < k; i += DEEP) {
		const size_t deep = min(DEEP, k - i), row = transposed ? deep : columns;

		for (size_t r = 0; r < (transposed ? columns : deep); r++) {
			const float *from = transposed ? w + (j + r) * k + i : w + (i + r) * n + j;

			for (size_t c = 0; c < row; c++)
				part[r * row + c] = (double)from[c];
		}
		cblas_dgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, (int)m,
			(int)columns, (int)deep, 1, &x[0][i], (int)k, part, (int)row, i > 0, &y[0][j],
			(int)n);
	}
}

void linalg_product_thin(size_t m, size_t n, size_t k, double y[m][n], const double x[m][k], const float w[],
	bool transposed)
{
	#pragma omp parallel for num_threads(threads) if (m * n * k > FEW_PRODUCTS) schedule(dynamic)
	for (size_t j = 0; j < n; j += TILE_DOUBLE)
		thin_tile(m, n, k, y, x, w, transposed, j, min(TILE_DOUBLE, n - j));
}

double linalg_orthogonality(size_t n, const double q[n][n])
{
	double worst = 0;

	#pragma omp parallel for num_threads(threads) if (n * n * n > FEW_PRODUCTS) schedule(dynamic) \
		collapse(2) reduction(max:worst)
	for (size_t i = 0; i < n; i += TILE_DOUBLE)
		for (size_t j = 0; j < n; j += TILE_DOUBLE) {
			const size_t rows = min(TILE_DOUBLE, n - i), columns = min(TILE_DOUBLE, n - j);
			double p[TILE_DOUBLE][TILE_DOUBLE];

			cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)columns, (int)n,
				1, q[i], (int)n, q[j], (int)n, 0, p[0], TILE_DOUBLE);
			for (size_t a = 0; a < rows; a++)
				for (size_t b = 0; b < columns; b++) {
					const double off = fabs(p[a][b] - (i + a == j + b));

					worst = isnan(off) ? INFINITY : fmax(worst, off);
				}
		}
	return worst;
}

/* p = xᵀx for the column tiles from i and from j; on the diagonal only the upper triangle. */
static void gram_tile(size_t m, size_t n, size_t width, size_t i, size_t j, float p[TILE_GRAM][TILE_GRAM],
	const float x[m][n])
{
	int ni = (int)min(width, n - i), nj = (int)min(width, n - j);

	for (size_t s = 0; s < m; s += ROWS_GRAM) {
		int rows = (int)min(ROWS_GRAM, m - s);

		if (i == j)
			cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, ni, rows, 1, &x[s][i], (int)n,
				s ? 1 : 0, p[0], TILE_GRAM);
		else
			cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, ni, nj, rows, 1, &x[s][i],
				(int)n, &x[s][j], (int)n, s ? 1 : 0, p[0], TILE_GRAM);
	}
}

CLONES(, void, linalg_magnitude, (size_t n, double sum[restrict n], double fourth[restrict n],
	float max[restrict n], const float x[restrict n]), (n, sum, fourth, max, x))
{
	for (size_t i = 0; i < n; i++) {
		const float a = fabsf(x[i]);
		const double square = (double)a * (double)a;

		sum[i] += (double)a;
		fourth[i] += square * square;
		max[i] = a > max[i] ? a : max[i];
	}
}

CLONES(, void, linalg_sum, (size_t n, double y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] += (double)x[i];
}

struct gram_tiles gram_tiles(size_t n, size_t widest)
{
	size_t side = max(ceil_div(n, widest), n > widest / 2 ? 2 : 1), width;

	side += side > 1 ? side % 2 : 0;	/* an even number has the same work for two threads */
	width = ceil_div(ceil_div(n, side), ALIGN_N) * ALIGN_N;
	side = ceil_div(n, width);
	return (struct gram_tiles){ width, side, side * (side + 1) / 2 };
}

void gram_tile_at(const struct gram_tiles *g, size_t t, size_t *i, size_t *j)
{
	size_t row = 0, columns = g->per_side - 1;	/* of this row, right of the diagonal */

	for (; columns && t >= columns; columns--, row++)
		t -= columns;
	*i = (columns ? row : t) * g->width;
	*j = (columns ? row + 1 + t : t) * g->width;
}

void linalg_gram(size_t blocks, size_t m, size_t n, double h[n][n], const float x[blocks][m][n])
{
	const bool few = blocks * m * n * n <= FEW_PRODUCTS;
	const struct gram_tiles g = gram_tiles(n, TILE_GRAM);

	#pragma omp parallel for num_threads(threads) if (!few) schedule(dynamic)
	for (size_t t = 0; t < g.tiles; t++) {
		float p[TILE_GRAM][TILE_GRAM];
		size_t i, j;

		gram_tile_at(&g, t, &i, &j);
		for (size_t s = 0; s < blocks; s++) {
			gram_tile(m, n, g.width, i, j, p, x[s]);
			for (size_t a = 0; a < min(g.width, n - i); a++) {
				size_t b = i == j ? a : 0;

				linalg_sum(min(g.width, n - j) - b, &h[i + a][j + b], &p[a][b]);
			}
		}
	}
}

/* c += xᵀ y for the column tiles from i of x and from j of y, over blocks of rows. */
static void cross_tile(size_t blocks, size_t m, size_t n, size_t i, size_t j, double c[n][n],
	const float x[blocks][m][n], const float y[blocks][m][n])
{
	const size_t ni = min(TILE_GRAM, n - i), nj = min(TILE_GRAM, n - j);
	float p[TILE_GRAM][TILE_GRAM];

	for (size_t b = 0; b < blocks; b++) {
		for (size_t s = 0; s < m; s += ROWS_GRAM)
			cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)ni, (int)nj,
				(int)min(ROWS_GRAM, m - s), 1, &x[b][s][i], (int)n, &y[b][s][j], (int)n,
				s ? 1 : 0, p[0], TILE_GRAM);
		for (size_t a = 0; a < ni; a++)
			linalg_sum(nj, &c[i + a][j], p[a]);
	}
}

void linalg_cross(size_t blocks, size_t m, size_t n, double c[n][n], const float x[blocks][m][n],
	const float y[blocks][m][n])
{
	const bool few = blocks * m * n * n <= FEW_PRODUCTS;

	#pragma omp parallel for num_threads(threads) if (!few) schedule(dynamic) collapse(2)
	for (size_t i = 0; i < n; i += TILE_GRAM)
		for (size_t j = 0; j < n; j += TILE_GRAM)
			cross_tile(blocks, m, n, i, j, c, x, y);
}

void linalg_mirror(size_t n, float y[n][n], const double h[n][n])
{
	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(dynamic, 16)
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			y[i][j] = (float)(j >= i ? h[i][j] : h[j][i]);
}
