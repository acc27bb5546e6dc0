/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16.c -- products of bfloat16 matrices; see bf16.h
 *
 * A tile of the result is cut along k into blocks of PAIRS pairs. Of a block,
 * both sides lie packed in panels, [pair][PANEL_M] and [pair][PANEL_N]: a panel
 * of the right side stays in the first cache while those of the left side
 * stream past it, and a PANEL_M × PANEL_N piece of the result is summed in
 * registers.
 */
#include "num/bf16.h"
#include "base/cpu.h"
#include "base/thread.h"
#include "num/half.h"
#include <cblas.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Constants, not options: results depend on PAIRS. */
enum { PANEL_M = 8, PANEL_N = 32, PAIRS = 256, TILE_M = 256, TILE_N = 512, TILE_GRAM = 384 };
/* Products below which starting threads costs more than it saves. */
enum { FEW_PRODUCTS = 1 << 22 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t panels(size_t n, size_t width)
{
	return (n + width - 1) / width;
}

/* Neighbours 2p and 2p + 1 of a row of k numbers, the lower one in the lower half. */
static uint32_t pair(size_t k, const uint16_t row[k], size_t p)
{
	return row[2 * p] | (2 * p + 1 < k ? (uint32_t)row[2 * p + 1] << 16 : 0);
}

/* Pairs first .. first + pairs - 1 of n ≤ width rows that follow each other, as one panel. */
static void pack_rows(size_t width, size_t n, size_t k, size_t first, size_t pairs, uint32_t y[pairs][width], const uint16_t x[n][k])
{
	for (size_t i = 0; i < width; i++)
		for (size_t p = 0; p < pairs; p++)
			y[p][i] = i < n ? pair(k, x[i], first + p) : 0;
}

/* The same of columns j .. j + n - 1, pairs of rows. */
static void pack_columns(size_t width, size_t n, size_t m, size_t stride, size_t first, size_t pairs, uint32_t y[pairs][width],
	const uint16_t x[m][stride], size_t j)
{
	for (size_t p = 0; p < pairs; p++) {
		size_t i = 2 * (first + p);

		for (size_t a = 0; a < width; a++)
			y[p][a] = a >= n ? 0 : x[i][j + a] | (i + 1 < m ? (uint32_t)x[i + 1][j + a] << 16 : 0);
	}
}

size_t bf16_packed(size_t n, size_t k)
{
	return panels(n, PANEL_N) * PANEL_N * panels(k, 2);
}

void bf16_pack(size_t n, size_t k, uint32_t packed[], const uint16_t w[n][k])
{
	size_t pairs = panels(k, 2);

	#pragma omp parallel for num_threads(threads) if (n * k > FEW_PRODUCTS / 64) schedule(static)
	for (size_t j = 0; j < n; j += PANEL_N)
		pack_rows(PANEL_N, least(PANEL_N, n - j), k, 0, pairs, (uint32_t (*)[PANEL_N])(packed + j * pairs), &w[j]);
}

/* ---- a piece: y[m][n] += a bᵀ, m ≤ PANEL_M, n ≤ PANEL_N ---- */

#ifdef __x86_64__
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
static void piece(size_t m, size_t n, size_t pairs, size_t stride, float *y, const uint32_t a[pairs][PANEL_M],
	const uint32_t b[pairs][PANEL_N])
{
	__mmask16 left = (__mmask16)((1u << least(n, 16)) - 1), right = (__mmask16)((1u << (n - least(n, 16))) - 1);
	__m512 sum[PANEL_M][2];

	for (int i = 0; i < PANEL_M; i++)
		sum[i][0] = sum[i][1] = _mm512_setzero_ps();
	for (size_t p = 0; p < pairs; p++) {
		__m512bh b0 = (__m512bh)_mm512_loadu_si512(&b[p][0]), b1 = (__m512bh)_mm512_loadu_si512(&b[p][16]);

		for (int i = 0; i < PANEL_M; i++) {
			__m512bh ai = (__m512bh)_mm512_set1_epi32((int)a[p][i]);

			sum[i][0] = _mm512_dpbf16_ps(sum[i][0], ai, b0);
			sum[i][1] = _mm512_dpbf16_ps(sum[i][1], ai, b1);
		}
	}
	for (int i = 0; i < PANEL_M; i++)
		if ((size_t)i < m) {
			float *row = y + (size_t)i * stride;

			_mm512_mask_storeu_ps(row, left, _mm512_add_ps(_mm512_maskz_loadu_ps(left, row), sum[i][0]));
			if (right)
				_mm512_mask_storeu_ps(row + 16, right, _mm512_add_ps(_mm512_maskz_loadu_ps(right, row + 16), sum[i][1]));
		}
}
#else
static void piece(size_t m, size_t n, size_t pairs, size_t stride, float *y, const uint32_t a[pairs][PANEL_M],
	const uint32_t b[pairs][PANEL_N])
{
	(void)m, (void)n, (void)pairs, (void)stride, (void)y, (void)a, (void)b;
}
#endif

/* ---- products ---- */

static void product_packed(size_t m, size_t n, size_t k, size_t stride, float y[m][stride], const uint16_t x[m][k], const uint32_t packed[])
{
	size_t all = panels(k, 2);
	uint32_t a[TILE_M / PANEL_M][PAIRS * PANEL_M];

	for (size_t first = 0; first < all; first += PAIRS) {
		size_t pairs = least(PAIRS, all - first);

		for (size_t i = 0; i < m; i += PANEL_M)
			pack_rows(PANEL_M, least(PANEL_M, m - i), k, first, pairs, (uint32_t (*)[PANEL_M])a[i / PANEL_M], &x[i]);
		for (size_t j = 0; j < n; j += PANEL_N)
			for (size_t i = 0; i < m; i += PANEL_M)
				piece(least(PANEL_M, m - i), least(PANEL_N, n - j), pairs, stride, &y[i][j],
					(const uint32_t (*)[PANEL_M])a[i / PANEL_M],
					(const uint32_t (*)[PANEL_N])(packed + j * all + first * PANEL_N));
	}
}

static void product_widened(size_t m, size_t n, size_t k, size_t stride, float y[m][stride], const uint16_t x[m][k], const uint32_t packed[])
{
	size_t all = panels(k, 2);
	float a[TILE_M][2 * PAIRS], b[2 * PAIRS][TILE_N];

	for (size_t first = 0; first < all; first += PAIRS) {
		size_t pairs = least(PAIRS, all - first), wide = least(2 * pairs, k - 2 * first);

		for (size_t i = 0; i < m; i++)
			half_widen(wide, a[i], &x[i][2 * first], HALF_BF16);
		for (size_t j = 0; j < n; j += PANEL_N)
			for (size_t p = 0; p < pairs; p++) {
				const uint32_t *from = packed + j * all + (first + p) * PANEL_N;

				for (size_t i = 0; i < PANEL_N; i++) {
					uint32_t u[2] = { from[i] << 16, from[i] & 0xffff0000 };

					memcpy(&b[2 * p][j + i], &u[0], sizeof u[0]);
					memcpy(&b[2 * p + 1][j + i], &u[1], sizeof u[1]);
				}
			}
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)wide, 1, a[0], 2 * PAIRS,
			b[0], TILE_N, 1, y[0], (int)stride);
	}
}

static void product_tile(size_t m, size_t n, size_t k, size_t stride, float y[m][stride], const uint16_t x[m][k],
	const uint32_t packed[], const float *bias, bool add)
{
	for (size_t i = 0; (bias || !add) && i < m; i++)
		for (size_t j = 0; j < n; j++)
			y[i][j] = (add ? y[i][j] : 0) + (bias ? bias[j] : 0);
	if (cpu_bf16)
		product_packed(m, n, k, stride, y, x, packed);
	else
		product_widened(m, n, k, stride, y, x, packed);
}

void bf16_product(size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], const float *bias, bool add)
{
	#pragma omp parallel for num_threads(threads) if (m * n * k > FEW_PRODUCTS) schedule(dynamic) collapse(2)
	for (size_t j = 0; j < n; j += TILE_N)
		for (size_t i = 0; i < m; i += TILE_M)
			product_tile(least(TILE_M, m - i), least(TILE_N, n - j), k, stride, (float (*)[stride])&y[i][j], &x[i],
				packed + j * panels(k, 2), bias ? bias + j : NULL, add);
}

/* ---- Hessians ---- */

static void gram_packed(size_t m, size_t n, size_t i, size_t j, float y[TILE_GRAM][TILE_GRAM], const uint16_t x[m][n])
{
	size_t all = panels(m, 2), ni = least(TILE_GRAM, n - i), nj = least(TILE_GRAM, n - j);
	uint32_t a[TILE_GRAM / PANEL_M][PAIRS * PANEL_M], b[PAIRS * PANEL_N];

	for (size_t first = 0; first < all; first += PAIRS) {
		size_t pairs = least(PAIRS, all - first);

		for (size_t c = 0; c < ni; c += PANEL_M)
			pack_columns(PANEL_M, least(PANEL_M, ni - c), m, n, first, pairs, (uint32_t (*)[PANEL_M])a[c / PANEL_M], x, i + c);
		for (size_t d = 0; d < nj; d += PANEL_N) {
			pack_columns(PANEL_N, least(PANEL_N, nj - d), m, n, first, pairs, (uint32_t (*)[PANEL_N])b, x, j + d);
			for (size_t c = 0; c < ni && i + c < j + d + PANEL_N; c += PANEL_M)
				piece(least(PANEL_M, ni - c), least(PANEL_N, nj - d), pairs, TILE_GRAM, &y[c][d],
					(const uint32_t (*)[PANEL_M])a[c / PANEL_M], (const uint32_t (*)[PANEL_N])b);
		}
	}
}

static void gram_widened(size_t m, size_t n, size_t i, size_t j, float y[TILE_GRAM][TILE_GRAM], const uint16_t x[m][n])
{
	size_t ni = least(TILE_GRAM, n - i), nj = least(TILE_GRAM, n - j);
	float a[2 * PAIRS][TILE_GRAM], b[2 * PAIRS][TILE_GRAM];

	for (size_t first = 0; first < m; first += 2 * PAIRS) {
		size_t rows = least(2 * PAIRS, m - first);

		for (size_t r = 0; r < rows; r++) {
			half_widen(ni, a[r], &x[first + r][i], HALF_BF16);
			half_widen(nj, b[r], &x[first + r][j], HALF_BF16);
		}
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)ni, (int)nj, (int)rows, 1, a[0], TILE_GRAM,
			b[0], TILE_GRAM, 1, y[0], TILE_GRAM);
	}
}

void bf16_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n])
{
	#pragma omp parallel for num_threads(threads) if (blocks * m * n * n > FEW_PRODUCTS) schedule(dynamic) collapse(2)
	for (size_t i = 0; i < n; i += TILE_GRAM)
		for (size_t j = 0; j < n; j += TILE_GRAM) {
			float y[TILE_GRAM][TILE_GRAM];

			for (size_t s = 0; j >= i && s < blocks; s++) {
				memset(y, 0, sizeof y);
				if (cpu_bf16)
					gram_packed(m, n, i, j, y, x[s]);
				else
					gram_widened(m, n, i, j, y, x[s]);
				for (size_t c = 0; c < least(TILE_GRAM, n - i); c++)
					for (size_t d = i == j ? c : 0; d < least(TILE_GRAM, n - j); d++)
						h[i + c][j + d] += (double)y[c][d];
			}
		}
}
