/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16.c -- products of bfloat16 matrices; see bf16.h
 *
 * With AVX-512, the product of a tile is divided along k into blocks of STEPS lanes of 32 bits. A lane is a
 * pair of numbers if the processor multiplies pairs, else a number widened to float. A panel of the right
 * side, [STEPS][PANEL_N], stays in the first cache while the panels of the left side are read. A piece
 * PANEL_M × PANEL_N of the result is summed in registers.
 */
#include "num/bf16.h"
#include <cblas.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/half.h"
#include "num/linalg.h"
#include "num/tile.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Constants, not options: results depend on STEPS. Rows and panels are longer, so that they do not share a
 * cache set. */
enum { PANEL_M = 8, PANEL_N = 32, STEPS = 256, ROW_STEPS = STEPS + 16, PANEL_STEPS = STEPS + 2 };
enum { AHEAD = 16, TILE_M = 256, TILE_N = 512, TILE_GRAM = 384, FEW_ROWS = 16 };
/* Number of products below which starting threads costs more than it saves. */
enum { FEW_PRODUCTS = 1 << 22 };

static size_t halves(size_t k)
{
	return ceil_div(k, 2);
}

/* Pairs of a packed row: a multiple of 16, as tiles require. */
static size_t packed_pairs(size_t k)
{
	return ceil_div(k, PANEL_N) * (PANEL_N / 2);
}

size_t bf16_packed(size_t n, size_t k)
{
	return ceil_div(n, PANEL_N) * PANEL_N * packed_pairs(k);
}

void bf16_pack(size_t n, size_t k, uint32_t packed[], const uint16_t w[n][k])
{
	#pragma omp parallel for num_threads(threads) if (n * k > FEW_PRODUCTS / 64) schedule(static)
	for (size_t j = 0; j < n; j += PANEL_N) {
		uint32_t (*y)[PANEL_N] = (uint32_t (*)[PANEL_N])(packed + j * packed_pairs(k));

		for (size_t i = 0; i < PANEL_N; i++)
			for (size_t p = 0; p < packed_pairs(k); p++)
				y[p][i] = j + i >= n || 2 * p >= k ? 0 : w[j + i][2 * p] |
					(2 * p + 1 < k ? (uint32_t)w[j + i][2 * p + 1] << 16 : 0);
	}
}

/* Widens packed pairs: the lower number of each pair, then the upper one. */
CLONES(static, void, widen_pairs, (size_t pairs, size_t stride, uint32_t y[2 * pairs][stride],
	const uint32_t x[pairs][PANEL_N]), (pairs, stride, y, x))
{
	for (size_t p = 0; p < pairs; p++)
		for (size_t i = 0; i < PANEL_N; i++) {
			y[2 * p][i] = x[p][i] << 16;
			y[2 * p + 1][i] = x[p][i] & 0xffff0000;
		}
}

CLONES(static, void, widen_row, (size_t n, uint32_t y[restrict n], const uint16_t x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] = (uint32_t)x[i] << 16;
}

/* Lanes of one row of the left side. */
static void lanes_of_row(bool pairs, size_t n, uint32_t y[n], const uint16_t x[n])
{
	if (!pairs) {
		widen_row(n, y, x);
		return;
	}
	y[halves(n) - 1] = 0;
	memcpy(y, x, n * sizeof *x);
}

static inline uint32_t lane(bool pairs, uint32_t low, uint32_t high)
{
	return pairs ? low | high << 16 : low << 16;
}

/* Lanes of n columns of m rows, in panels y[panel][step][width]; the last panel is padded with zeros. */
static inline __attribute__((always_inline))
void panels_of_columns(size_t width, bool pairs, size_t n, size_t m, size_t stride,
	uint32_t y[][PANEL_STEPS][width], const uint16_t x[m][stride])
{
	for (size_t r = 0; r < m; r += pairs ? 2 : 1) {
		const uint16_t *low = x[r], *high = r + 1 < m ? x[r + 1] : low;
		uint32_t both = r + 1 < m ? 0xffff : 0;
		size_t s = pairs ? r / 2 : r, j = 0;

		for (size_t i = 0; r + AHEAD < m && i < n; i += 32)
			__builtin_prefetch(&x[r + AHEAD][i]);
		for (size_t i = 0; pairs && r + AHEAD + 1 < m && i < n; i += 32)
			__builtin_prefetch(&x[r + AHEAD + 1][i]);
		for (; j + width <= n; j += width)
			for (size_t i = 0; i < width; i++)
				y[j / width][s][i] = lane(pairs, low[j + i], high[j + i] & both);
		for (size_t i = 0; j < n && i < width; i++)
			y[j / width][s][i] = j + i >= n ? 0 : lane(pairs, low[j + i], high[j + i] & both);
	}
}

CLONES(static, void, left_lanes, (bool pairs, size_t n, size_t m, size_t stride,
	uint32_t y[][PANEL_STEPS][PANEL_M], const uint16_t x[m][stride]), (pairs, n, m, stride, y, x))
{
	panels_of_columns(PANEL_M, pairs, n, m, stride, y, x);
}

CLONES(static, void, right_lanes, (bool pairs, size_t n, size_t m, size_t stride,
	uint32_t y[][PANEL_STEPS][PANEL_N], const uint16_t x[m][stride]), (pairs, n, m, stride, y, x))
{
	panels_of_columns(PANEL_N, pairs, n, m, stride, y, x);
}

/* y[m][n] = or += a b, m ≤ PANEL_M, n ≤ PANEL_N; lane s of row i of a is a[i·row + s·step]. */
#ifdef __x86_64__
#define PIECE(name, features, MULTIPLY) \
__attribute__((CPU_AVX512_AND(features))) \
static void name(size_t m, size_t n, size_t steps, size_t stride, float *y, size_t row, size_t step, \
	const uint32_t *a, const uint32_t b[steps][PANEL_N], bool add) \
{ \
	const size_t low = min(n, 16); \
	__mmask16 mask[2] = { (__mmask16)((1u << low) - 1), (__mmask16)((1u << (n - low)) - 1) }; \
	__m512 sum[PANEL_M][2]; \
\
	for (int i = 0; i < PANEL_M; i++) \
		sum[i][0] = sum[i][1] = _mm512_setzero_ps(); \
	for (size_t i = 0; i < m; i++) { \
		__builtin_prefetch(y + i * stride, 1); \
		__builtin_prefetch(y + i * stride + n - 1, 1); \
	} \
	for (size_t s = 0; s < steps; s++, a += step) { \
		__m512i b0 = _mm512_loadu_si512(&b[s][0]), b1 = _mm512_loadu_si512(&b[s][16]); \
\
		for (int i = 0; i < PANEL_M; i++) { \
			__m512i ai = _mm512_set1_epi32((int)a[(size_t)i * row]); \
\
			sum[i][0] = MULTIPLY(sum[i][0], ai, b0); \
			sum[i][1] = MULTIPLY(sum[i][1], ai, b1); \
		} \
	} \
	for (int i = 0; i < PANEL_M; i++) \
		for (int j = 0; j < 2; j++) \
			if ((size_t)i < m && mask[j]) { \
				float *to = y + (size_t)i * stride + j * 16; \
				const __m512 old = _mm512_maskz_loadu_ps(add ? mask[j] : 0, to); \
\
				_mm512_mask_storeu_ps(to, mask[j], _mm512_add_ps(sum[i][j], old)); \
			} \
}
#define OF_PAIRS(sum, x, y) _mm512_dpbf16_ps(sum, (__m512bh)(x), (__m512bh)(y))
#define OF_FLOATS(sum, x, y) _mm512_fmadd_ps((__m512)(x), (__m512)(y), sum)
PIECE(piece_of_pairs, ",avx512bf16", OF_PAIRS)
PIECE(piece_of_floats, "", OF_FLOATS)
#endif

static void piece(bool pairs, size_t m, size_t n, size_t steps, size_t stride, float *y, size_t row,
	size_t step, const uint32_t *a, const uint32_t b[steps][PANEL_N], bool add)
{
#ifdef __x86_64__
	(pairs ? piece_of_pairs : piece_of_floats)(m, n, steps, stride, y, row, step, a, b, add);
#else
	(void)pairs, (void)m, (void)n, (void)steps, (void)stride, (void)y, (void)row, (void)step;
	(void)a, (void)b, (void)add;
#endif
}

static void product_by_pieces(bool pairs, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], bool add)
{
	const size_t block = STEPS * (pairs ? 2 : 1);
	_Alignas(64) uint32_t a[TILE_M][ROW_STEPS], wide[STEPS][PANEL_N];

	memset(a[m], 0, (ceil_div(m, PANEL_M) * PANEL_M - m) * sizeof a[m]);
	for (size_t first = 0; first < k; first += block) {
		size_t numbers = min(block, k - first), steps = pairs ? halves(numbers) : numbers;

		for (size_t i = 0; i < m; i++)
			lanes_of_row(pairs, numbers, a[i], &x[i][first]);
		for (size_t j = 0; j < n; j += PANEL_N) {
			const uint32_t *panel = packed + j * packed_pairs(k) + first / 2 * PANEL_N;
			const uint32_t (*b)[PANEL_N] = (const uint32_t (*)[PANEL_N])panel;

			if (!pairs) {
				widen_pairs(halves(numbers), PANEL_N, wide, b);
				b = (const uint32_t (*)[PANEL_N])wide;
			}
			for (size_t i = 0; i < m; i += PANEL_M)
				piece(pairs, min(PANEL_M, m - i), min(PANEL_N, n - j), steps, stride,
					&y[i][j], ROW_STEPS, 1, a[i], b, add || first);
		}
	}
}

/* y = a b, with `add` y += a b, for few rows of a. A sum depends on its row of a only, which a BLAS does not
 * promise. */
CLONES(static, void, few_rows, (size_t m, size_t n, size_t steps, size_t stride, float *y,
	const float a[m][STEPS], const float b[steps][TILE_N], bool add), (m, n, steps, stride, y, a, b, add))
{
	for (size_t j = 0; j < n; j += PANEL_N)
		for (size_t i = 0; i < m; i++) {
			float sum[PANEL_N] = { 0 };

			for (size_t s = 0; s < steps; s++)
				for (size_t l = 0; l < PANEL_N; l++)
					sum[l] += a[i][s] * b[s][j + l];
			for (size_t l = 0; l < min(PANEL_N, n - j); l++)
				y[i * stride + j + l] = (add ? y[i * stride + j + l] : 0) + sum[l];
		}
}

static void product_by_blas(size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], bool add)
{
	union { uint32_t lane[TILE_M][STEPS]; float number[TILE_M][STEPS]; } a;
	union { uint32_t lane[STEPS][TILE_N]; float number[STEPS][TILE_N]; } b;

	for (size_t first = 0; first < k; first += STEPS) {
		size_t steps = min(STEPS, k - first);

		for (size_t i = 0; i < m; i++)
			widen_row(steps, a.lane[i], &x[i][first]);
		for (size_t j = 0; j < n; j += PANEL_N) {
			const uint32_t *panel = packed + j * packed_pairs(k) + first / 2 * PANEL_N;

			widen_pairs(halves(steps), TILE_N, (uint32_t (*)[TILE_N])&b.lane[0][j],
				(const uint32_t (*)[PANEL_N])panel);
		}
		if (m <= FEW_ROWS)
			few_rows(m, n, steps, stride, y[0], (const float (*)[STEPS])a.number,
				(const float (*)[TILE_N])b.number, add || first);
		else
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)steps, 1,
				a.number[0], STEPS, b.number[0], TILE_N, add || first ? 1 : 0, y[0],
				(int)stride);
	}
}

static void product_tile(bool pairs, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], const float *bias, bool add)
{
	for (size_t i = 0; bias && i < m; i++)
		for (size_t j = 0; j < n; j++)
			y[i][j] = add ? y[i][j] + bias[j] : bias[j];
	if (cpu == CPU_AVX512)
		product_by_pieces(pairs, m, n, k, stride, y, x, packed, add || bias);
	else
		product_by_blas(m, n, k, stride, y, x, packed, add || bias);
}

void bf16_product(bool pairs, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], const float *bias, bool add)
{
	const bool many = m * n * k > FEW_PRODUCTS;

	#pragma omp parallel for num_threads(threads) if (many) schedule(dynamic) collapse(2)
	for (size_t j = 0; j < n; j += TILE_N)
		for (size_t i = 0; i < m; i += TILE_M)
			product_tile(pairs, min(TILE_M, m - i), min(TILE_N, n - j), k, stride,
				(float (*)[stride])&y[i][j], &x[i], packed + j * packed_pairs(k),
				bias ? bias + j : NULL, add);
}

/* y = the product of the column tiles from i and from j, starting from 0. Numbers below the diagonal may be
 * missing. */
static void gram_by_pieces(size_t m, size_t n, size_t width, size_t i, size_t j,
	float y[TILE_GRAM][TILE_GRAM], const uint16_t x[m][n])
{
	const bool pairs = cpu_bf16;
	const size_t block = STEPS * (pairs ? 2 : 1);
	const size_t ni = min(width, n - i), nj = min(width, n - j);
	_Alignas(64) uint32_t a[TILE_GRAM / PANEL_M][PANEL_STEPS][PANEL_M];
	_Alignas(64) uint32_t b[TILE_GRAM / PANEL_N][PANEL_STEPS][PANEL_N];

	for (size_t first = 0; first < m; first += block) {
		size_t rows = min(block, m - first), steps = pairs ? halves(rows) : rows;

		left_lanes(pairs, ni, rows, n, a, (const uint16_t (*)[n])&x[first][i]);
		right_lanes(pairs, nj, rows, n, b, (const uint16_t (*)[n])&x[first][j]);
		for (size_t d = 0; d < nj; d += PANEL_N)
			for (size_t c = 0; c < ni && i + c < j + d + PANEL_N; c += PANEL_M)
				piece(pairs, min(PANEL_M, ni - c), min(PANEL_N, nj - d), steps, TILE_GRAM,
					&y[c][d], 1, PANEL_M, a[c / PANEL_M][0],
					(const uint32_t (*)[PANEL_N])b[d / PANEL_N], first);
	}
}

static void gram_by_blas(size_t m, size_t n, size_t width, size_t i, size_t j,
	float y[TILE_GRAM][TILE_GRAM], const uint16_t x[m][n])
{
	size_t ni = min(width, n - i), nj = min(width, n - j);
	float a[STEPS][TILE_GRAM], b[STEPS][TILE_GRAM];

	for (size_t first = 0; first < m; first += STEPS) {
		size_t rows = min(STEPS, m - first);

		for (size_t r = 0; r < rows; r++) {
			half_widen(ni, a[r], &x[first + r][i], HALF_BF16);
			half_widen(nj, b[r], &x[first + r][j], HALF_BF16);
		}
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)ni, (int)nj, (int)rows, 1,
			a[0], TILE_GRAM, b[0], TILE_GRAM, first ? 1 : 0, y[0], TILE_GRAM);
	}
}

size_t bf16_gram_workspace(size_t m, size_t n)
{
	return cpu_amx ? tile_gram_workspace(m, n) : 0;
}

void bf16_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n],
	void *workspace)
{
	const bool many = blocks * m * n * n > FEW_PRODUCTS;
	const struct gram_tiles g = gram_tiles(n, TILE_GRAM);

	if (cpu_amx) {
		tile_gram(blocks, m, n, h, x, workspace);
		return;
	}
	#pragma omp parallel for num_threads(threads) if (many) schedule(dynamic)
	for (size_t t = 0; t < g.tiles; t++) {
		_Alignas(64) float y[TILE_GRAM][TILE_GRAM];
		size_t i, j;

		gram_tile_at(&g, t, &i, &j);
		for (size_t s = 0; s < blocks; s++) {
			(cpu == CPU_AVX512 ? gram_by_pieces : gram_by_blas)(m, n, g.width, i, j, y, x[s]);
			for (size_t c = 0; c < min(g.width, n - i); c++) {
				size_t d = i == j ? c : 0;

				linalg_sum(min(g.width, n - j) - d, &h[i + c][j + d], &y[c][d]);
			}
		}
	}
}
