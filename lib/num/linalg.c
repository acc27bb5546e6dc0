/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linalg.c -- matrix products, norms and exponentials in fixed tiles; see linalg.h
 *
 * Sums in float run over 16 partial sums, which a compiler that may not reorder them still turns into
 * vectors; the order is the same on every processor, and without contraction to fused operations so are the
 * bits. exp: n = round(x / ln 2), then a polynomial in x - n ln 2: in float that of Cephes expf, in double
 * the Taylor sum, whose rest is below 2^-52.
 */
#include "num/linalg.h"
#include <cblas.h>
#include <math.h>
#include <stdint.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/clones.h"
/* Else the bounds of exp_of() become cases, computed for every number and slow where they underflow. */
#pragma GCC optimize ("no-thread-jumps")

/* Constants, not options: results depend on them. */
enum { TILE_M = 512, TILE_N = 1024, ALIGN_N = 32, TILE_GRAM = 640, ROWS_GRAM = 640, LANES = 16, ROWS = 16 };
enum { TILE_DOUBLE = 64, DEEP = 512 };

/* Below these, starting threads costs more than it saves: multiplications of a product, numbers of a pass. */
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
	/* Of tiles, nearly equal ones; narrower where one tile has all rows, so that threads get some. */
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

/* Columns [j, j + columns) of y, from rows or columns of w in parts. */
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

/* p = xᵀx of the tiles of columns from i and from j; on the diagonal only its upper triangle. */
static void gram_tile(size_t m, size_t n, size_t i, size_t j, float p[TILE_GRAM][TILE_GRAM],
	const float x[m][n])
{
	int ni = (int)min(TILE_GRAM, n - i), nj = (int)min(TILE_GRAM, n - j);

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

void linalg_gram(size_t blocks, size_t m, size_t n, double h[n][n], const float x[blocks][m][n])
{
	const bool few = blocks * m * n * n <= FEW_PRODUCTS;

	#pragma omp parallel for num_threads(threads) if (!few) schedule(dynamic) collapse(2)
	for (size_t i = 0; i < n; i += TILE_GRAM)
		for (size_t j = 0; j < n; j += TILE_GRAM) {
			float p[TILE_GRAM][TILE_GRAM];

			for (size_t s = 0; j >= i && s < blocks; s++) {
				gram_tile(m, n, i, j, p, x[s]);
				for (size_t a = 0; a < min(TILE_GRAM, n - i); a++) {
					size_t b = i == j ? a : 0;

					linalg_sum(min(TILE_GRAM, n - j) - b, &h[i + a][j + b], &p[a][b]);
				}
			}
		}
}

void linalg_mirror(size_t n, float y[n][n], const double h[n][n])
{
	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(dynamic, 16)
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			y[i][j] = (float)(j >= i ? h[i][j] : h[j][i]);
}

static inline float fold(float sum[LANES])
{
	for (size_t n = LANES / 2; n; n /= 2)
		for (size_t i = 0; i < n; i++)
			sum[i] += sum[i + n];
	return sum[0];
}

CLONES(static, float, sum_of, (size_t n, const float x[n]), (n, x))
{
	float sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += x[i + j];
	for (; i < n; i++)
		sum[i % LANES] += x[i];
	return fold(sum);
}

CLONES(static, float, sum_of_squares, (size_t n, const float x[n], float mean), (n, x, mean))
{
	float sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += (x[i + j] - mean) * (x[i + j] - mean);
	for (; i < n; i++)
		sum[i % LANES] += (x[i] - mean) * (x[i] - mean);
	return fold(sum);
}

/* A row whose squares overflow becomes NaN, not 0: what is made of it must not pass for numbers. */
static void norm_row(size_t n, float y[n], const float x[n], float mean, const float gain[n],
	const float *shift, double eps)
{
	const float squares = sum_of_squares(n, x, mean);
	float scale = isfinite(squares) ? (float)(1 / sqrt((double)squares / (double)n + eps)) : NAN;

	for (size_t i = 0; i < n; i++)
		y[i] = (x[i] - mean) * scale * gain[i] + (shift ? shift[i] : 0);
}

void linalg_rmsnorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++)
		norm_row(n, y[i], x[i], 0, gain, shift, eps);
}

void linalg_layernorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++)
		norm_row(n, y[i], x[i], sum_of(n, x[i]) / (float)n, gain, shift, eps);
}

static inline float exp_of(float x)
{
	const float round = 0x1.8p23f;
	float n, r, p;
	union { float f; uint32_t u; } two;

	x = x < -87.0f ? -87.0f : x;
	x = x > 88.0f ? 88.0f : x;
	n = (x * 1.44269504f + round) - round;
	r = x - n * 0.693359375f + n * 2.12194440e-4f;
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1;
	two.u = (uint32_t)((int32_t)n + 127) << 23;
	return p * two.f;
}

CLONES(, float, linalg_exp, (size_t n, float x[n], float shift), (n, x, shift))
{
	float sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += x[i + j] = exp_of(x[i + j] - shift);
	for (size_t j = 0; i < n; i++, j++)
		sum[j] += x[i] = exp_of(x[i] - shift);
	return fold(sum);
}

CLONES(, double, linalg_sum_exp, (size_t n, const float x[n], float shift), (n, x, shift))
{
	double sum[LANES] = { 0 }, s = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += (double)exp_of(x[i + j] - shift);
	for (; i < n; i++)
		sum[i % LANES] += (double)exp_of(x[i] - shift);
	for (size_t j = 0; j < LANES; j++)
		s += sum[j];
	return s;
}

/* Of x ≤ 0. */
static inline double exp_of_double(double x)
{
	const double round = 0x1.8p52;
	double n, r, p;
	union { double f; uint64_t u; } two;

	x = x < -708 ? -708 : x;
	two.f = x * 0x1.71547652b82fep0 + round;	/* n in its last places */
	n = two.f - round;
	r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
	p = 1.0 / 479001600;
	p = p * r + 1.0 / 39916800;
	p = p * r + 1.0 / 3628800;
	p = p * r + 1.0 / 362880;
	p = p * r + 1.0 / 40320;
	p = p * r + 1.0 / 5040;
	p = p * r + 1.0 / 720;
	p = p * r + 1.0 / 120;
	p = p * r + 1.0 / 24;
	p = p * r + 1.0 / 6;
	p = p * r + 0.5;
	p = p * r * r + r + 1;
	two.u = (two.u + 1023) << 52;
	return p * two.f;
}

CLONES(, void, linalg_sum_exp_pair,
	(size_t n, double sum[3], const float x[n], float a, const float y[n], float b), (n, sum, x, a, y, b))
{
	double ex[LANES] = { 0 }, ey[LANES] = { 0 }, d[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++) {
			double u = (double)x[i + j], v = (double)y[i + j], e = exp_of_double(u - (double)a);

			ex[j] += e;
			ey[j] += exp_of_double(v - (double)b);
			d[j] += e * (u - v);
		}
	for (; i < n; i++) {
		double u = (double)x[i], v = (double)y[i], e = exp_of_double(u - (double)a);

		ex[i % LANES] += e;
		ey[i % LANES] += exp_of_double(v - (double)b);
		d[i % LANES] += e * (u - v);
	}
	sum[0] = sum[1] = sum[2] = 0;
	for (size_t j = 0; j < LANES; j++)
		sum[0] += ex[j], sum[1] += ey[j], sum[2] += d[j];
}

CLONES(, float, linalg_max, (size_t n, const float x[n]), (n, x))
{
	enum { MANY = 4 * LANES };	/* the order does not matter here */
	float max[MANY];
	size_t i = 0;

	for (size_t j = 0; j < MANY; j++)
		max[j] = -INFINITY;
	for (; i + MANY <= n; i += MANY)
		for (size_t j = 0; j < MANY; j++)
			max[j] = x[i + j] > max[j] ? x[i + j] : max[j];
	for (size_t j = 0; i < n; i++, j++)
		max[j] = x[i] > max[j] ? x[i] : max[j];
	for (size_t k = MANY / 2; k; k /= 2)
		for (size_t j = 0; j < k; j++)
			max[j] = max[j + k] > max[j] ? max[j + k] : max[j];
	return max[0];
}

CLONES(, void, linalg_silu, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] / (1 + exp_of(-x[i]));
}

void linalg_gelu(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i++)
		y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}

CLONES(, void, linalg_gelu_tanh, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	/* ½(1 + tanh z) = 1 / (1 + e^-2z) */
	for (size_t i = 0; i < n; i++) {
		float z = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);

		y[i] = x[i] / (1 + exp_of(-2 * z));
	}
}

CLONES(, void, linalg_quick_gelu, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] / (1 + exp_of(-1.702f * x[i]));
}

CLONES(, void, linalg_times, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] *= x[i];
}
