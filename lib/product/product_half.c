/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_half.c -- see product_half_private.h */
#include "product/product_half_private.h"
#include <omp.h>
#include <string.h>
#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Rows of a tile, which are as many streams of memory; columns that are widened at once; lanes of a sum. */
enum { TILE = 4, COLUMNS = LINEAR_COLUMNS, LANES = 8, VECTORS = COLUMNS / LANES };
/* Weights that are prefetched ahead; maximum rows that a thread takes at once. */
enum { AHEAD = 1024, ROW_PANEL = 1024,
	/* Products below which one thread runs: about 0.4 ms. If other processes run, each parallel loop
	 * may wait several ms for a thread. */
	FEW_PRODUCTS = 1 << 22 };

bool half_fits(const struct product_row *row, const struct linear *l)
{
	(void)row;
	return l->weight && l->weight_type != HALF_NONE;
}

size_t half_bytes(const struct linear *l, size_t n)
{
	return n * l->in * sizeof(uint16_t);
}

void half_weight(const struct product *p, size_t n, void *w)
{
	memcpy(w, (const uint16_t *)p->l->weight + p->first * p->l->in, half_bytes(p->l, n));
}

/* Tiles of a weight. Tile k is rows k, k + far .. k + 3 far; far 0: four times the same row. */
struct slice { const uint16_t *w; size_t in, far, tiles; enum half_type type; };

/* sum += Σ v x in lanes, over n numbers, a multiple of LANES. */
CLONES(static, void, plain_sums, (size_t m, size_t n, size_t in, float sum[m][TILE][LANES],
	const float v[TILE][COLUMNS], const float x[m][in]), (m, n, in, sum, v, x))
{
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < TILE; r++)
			for (size_t i = 0; i < n; i += LANES)
				for (size_t j = 0; j < LANES; j++)
					sum[t][r][j] += v[r][i + j] * x[t][i + j];
}

/* y = Σ w x over the first n columns, a multiple of LANES. */
static void plain_tile(const struct slice *a, size_t k, size_t n, size_t m, float y[m][ROW_PANEL],
	const float x[m][a->in])
{
	float sum[PRODUCT_FEW][TILE][LANES] = { { { 0 } } }, v[TILE][COLUMNS];

	for (size_t i = 0; i < n; i += COLUMNS) {
		for (size_t r = 0; r < TILE; r++)
			half_widen(min(COLUMNS, n - i), v[r], a->w + (k + r * a->far) * a->in + i, a->type);
		plain_sums(m, min(COLUMNS, n - i), a->in, sum, v, (const float (*)[a->in])&x[0][i]);
	}
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < TILE; r++) {
			const float *s = sum[t][r];

			y[t][k + r * a->far] = ((s[0] + s[1]) + (s[2] + s[3])) +
				((s[4] + s[5]) + (s[6] + s[7]));
		}
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define INLINE AVX2 static inline __attribute__((always_inline))

INLINE __m256 avx2_wide(enum half_type type, const uint16_t *w)
{
	const __m128i h = _mm_loadu_si128((const void *)w);

	return type == HALF_F16 ? _mm256_cvtph_ps(h) :
		_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE void avx2_total(size_t far, float *y, const __m256 s[TILE])
{
	const __m256 v = _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
	float sum[TILE];

	_mm_storeu_ps(sum, _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)));
	for (size_t r = 0; r < TILE; r++)
		y[r * far] = sum[r];
}

/* Adds some vectors of a tile to two alternating sums. */
INLINE void avx2_steps(enum half_type type, size_t vectors, __m256 s[2][TILE], const uint16_t *w,
	size_t stride, const float *x)
{
	#pragma GCC unroll 4
	for (size_t k = 0; k < vectors; k++)
		#pragma GCC unroll 4
		for (size_t r = 0; r < TILE; r++)
			s[k % 2][r] = _mm256_fmadd_ps(avx2_wide(type, w + r * stride + k * LANES),
				_mm256_loadu_ps(x + k * LANES), s[k % 2][r]);
}

/* One row of x. */
INLINE void avx2_one(enum half_type type, const struct slice *a, size_t n, float *y, const float x[n])
{
	const size_t stride = a->far * a->in, lines = n / 32 * 32;
	const uint16_t *w = a->w;

	for (size_t k = 0; k < a->tiles; k++, w += a->in, y++) {
		__m256 s[2][TILE];

		#pragma GCC unroll 8
		for (size_t r = 0; r < 2 * TILE; r++)
			s[r / TILE][r % TILE] = _mm256_setzero_ps();
		for (size_t i = 0; i < lines; i += 32) {
			#pragma GCC unroll 4
			for (size_t r = 0; r < TILE; r++)
				__builtin_prefetch(w + r * stride + i + AHEAD);
			avx2_steps(type, 4, s, w + i, stride, x + i);
		}
		for (size_t i = lines; i < n; i += LANES)
			avx2_steps(type, 1, s, w + i, stride, x + i);
		#pragma GCC unroll 4
		for (size_t r = 0; r < TILE; r++)
			s[0][r] = _mm256_add_ps(s[0][r], s[1][r]);
		avx2_total(a->far, y, s[0]);
	}
}

INLINE void avx2_sums(size_t m, size_t n, size_t in, __m256 sum[m][TILE], const float v[TILE][COLUMNS],
	const float x[m][in])
{
	__m256 s[2][TILE];

	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < TILE; r++)
			s[t][r] = sum[t][r];
	for (size_t i = 0; i < n; i += LANES)
		for (size_t t = 0; t < m; t++)
			for (size_t r = 0; r < TILE; r++)
				s[t][r] = _mm256_fmadd_ps(_mm256_loadu_ps(&v[r][i]),
					_mm256_loadu_ps(&x[t][i]), s[t][r]);
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < TILE; r++)
			sum[t][r] = s[t][r];
}

/* Several rows of x. Columns are widened once, then multiplied with two rows of x at a time. */
INLINE void avx2_some(enum half_type type, const struct slice *a, size_t k, size_t n, size_t m,
	float y[m][ROW_PANEL], const float x[m][a->in])
{
	__m256 sum[PRODUCT_FEW][TILE];
	float v[TILE][COLUMNS];

	memset(sum, 0, m * sizeof *sum);
	for (size_t i = 0, some; i < n; i += some) {
		size_t t = 0;

		some = min(COLUMNS, n - i);
		for (size_t r = 0; r < TILE; r++)
			for (size_t j = 0; j < some; j += LANES) {
				const uint16_t *w = a->w + (k + r * a->far) * a->in + i + j;

				if (j % 32 == 0)
					__builtin_prefetch(w + AHEAD);
				_mm256_storeu_ps(&v[r][j], avx2_wide(type, w));
			}
		for (; t + 2 <= m; t += 2)
			avx2_sums(2, some, a->in, sum + t, v, (const float (*)[a->in])&x[t][i]);
		if (t < m)
			avx2_sums(1, some, a->in, sum + t, v, (const float (*)[a->in])&x[t][i]);
	}
	for (size_t t = 0; t < m; t++)
		avx2_total(a->far, &y[t][k], sum[t]);
}

AVX2 static void avx2_tiles(const struct slice *a, size_t n, size_t m, float y[m][ROW_PANEL],
	const float x[m][a->in])
{
	const bool f16 = a->type == HALF_F16;

	if (m == 1 && f16)
		avx2_one(HALF_F16, a, n, *y, *x);
	else if (m == 1)
		avx2_one(HALF_BF16, a, n, *y, *x);
	for (size_t k = 0; m > 1 && k < a->tiles; k++)
		if (f16)
			avx2_some(HALF_F16, a, k, n, m, y, x);
		else
			avx2_some(HALF_BF16, a, k, n, m, y, x);
}
#endif

static void tiles(const struct slice *a, size_t m, float y[m][ROW_PANEL], const float x[m][a->in])
{
	const size_t whole = a->in / LANES * LANES;

#ifdef __x86_64__
	if (cpu >= CPU_AVX2 && cpu_half) {
		avx2_tiles(a, whole, m, y, x);
		return;
	}
#endif
	for (size_t k = 0; k < a->tiles; k++)
		plain_tile(a, k, whole, m, y, x);
}

/* At most ROW_PANEL rows, and PRODUCT_FEW rows of x. Columns after the last multiple of LANES are added
 * last. */
static void half_rows(const struct product *p, const uint16_t *w, size_t n, size_t m, size_t stride,
	float y[m][stride], const float x[m][p->l->in], const float *bias, bool add)
{
	const size_t in = p->l->in, whole = in / LANES * LANES, far = n / TILE;
	struct slice a = { .w = w, .in = in, .far = far, .tiles = far, .type = p->l->weight_type };
	float sum[PRODUCT_FEW][ROW_PANEL], rest[LANES];

	tiles(&a, m, sum, x);
	a.far = 0, a.tiles = 1;
	for (size_t o = TILE * far; o < n; o++) {
		a.w = w + o * in;
		tiles(&a, m, (float (*)[ROW_PANEL])&sum[0][o], x);
	}
	for (size_t o = 0; whole < in && o < n; o++) {
		half_widen(in - whole, rest, w + o * in + whole, a.type);
		for (size_t t = 0; t < m; t++)
			for (size_t i = whole; i < in; i++)
				sum[t][o] += rest[i - whole] * x[t][i];
	}
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < n; o++)
			y[t][o] = sum[t][o] + (bias ? bias[o] : 0) + (add ? y[t][o] : 0);
}

void half_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add)
{
	const size_t in = p->l->in, all = omp_in_parallel() ? 1 : (size_t)threads;
	const size_t step = ceil_div(ceil_div(n, all * ceil_div(n, all * ROW_PANEL)), TILE) * TILE;
	const uint16_t *w = (const uint16_t *)p->weight + (first - p->first) * in;
	const float (*x)[in] = input;

	#pragma omp parallel for num_threads(threads) if (m * n * in >= FEW_PRODUCTS) schedule(dynamic)
	for (size_t o = 0; o < n; o += step)
		for (size_t t = 0; t < m; t += PRODUCT_FEW) {
			const size_t some = min(PRODUCT_FEW, m - t);

			half_rows(p, w + o * in, min(step, n - o), some, stride, (float (*)[stride])&y[t][o],
				x + t, bias ? bias + o : NULL, add);
		}
}
