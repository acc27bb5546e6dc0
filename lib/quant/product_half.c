/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_half.c -- see product_half.h */
#include "quant/product_half.h"
#include <omp.h>
#include <string.h>
#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Rows of a tile, in as many streams of memory; columns that are widened at once, numbers of a lane's sum. */
enum { TILE = 4, COLUMNS = LINEAR_COLUMNS, LANES = 8, VECTORS = COLUMNS / LANES };
/* Halves asked for ahead; rows that a thread takes at once at most; numbers below which one is quicker. */
enum { AHEAD = 1024, ROW_PANEL = 1024, FEW_NUMBERS = 1 << 16 };

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

/* A tile: rows 0, d .. (rows - 1)d of a weight. */
struct tile { const uint16_t *w; size_t rows, d, in; enum half_type type; };

/* sum += Σ v x in lanes, of n numbers, whole lanes. */
CLONES(static, void, plain_sums, (size_t rows, size_t m, size_t n, size_t in, float sum[m][TILE][LANES],
	const float v[TILE][COLUMNS], const float x[m][in]), (rows, m, n, in, sum, v, x))
{
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < rows; r++)
			for (size_t i = 0; i < n; i += LANES)
				for (size_t j = 0; j < LANES; j++)
					sum[t][r][j] += v[r][i + j] * x[t][i + j];
}

static void plain_columns(const struct tile *a, size_t i, size_t n, size_t m, float sum[m][TILE][LANES],
	const float x[m][a->in])
{
	float v[TILE][COLUMNS];

	for (size_t r = 0; r < a->rows; r++)
		half_widen(n, v[r], a->w + r * a->d * a->in + i, a->type);
	plain_sums(a->rows, m, n, a->in, sum, v, (const float (*)[a->in])&x[0][i]);
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

INLINE void avx2_sums(size_t rows, size_t m, size_t n, size_t in, float sum[m][TILE][LANES],
	const float v[TILE][COLUMNS], const float x[m][in])
{
	__m256 s[2][TILE];

	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < rows; r++)
			s[t][r] = _mm256_loadu_ps(sum[t][r]);
	for (size_t i = 0; i < n; i += LANES)
		for (size_t t = 0; t < m; t++)
			for (size_t r = 0; r < rows; r++)
				s[t][r] = _mm256_fmadd_ps(_mm256_loadu_ps(&v[r][i]), _mm256_loadu_ps(&x[t][i]),
					s[t][r]);
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < rows; r++)
			_mm256_storeu_ps(sum[t][r], s[t][r]);
}

INLINE void avx2_some(enum half_type type, size_t rows, const struct tile *a, size_t i, size_t n, size_t m,
	float sum[m][TILE][LANES], const float x[m][a->in])
{
	float v[TILE][COLUMNS];
	size_t t = 0;

	for (size_t r = 0; r < rows; r++)
		for (size_t j = 0; j < n; j += LANES) {
			const uint16_t *w = a->w + r * a->d * a->in + i + j;

			if (j % 32 == 0)
				__builtin_prefetch(w + AHEAD);
			_mm256_storeu_ps(&v[r][j], avx2_wide(type, w));
		}
	for (; t + 2 <= m; t += 2)
		avx2_sums(rows, 2, n, a->in, sum + t, v, (const float (*)[a->in])&x[t][i]);
	if (t < m)
		avx2_sums(rows, 1, n, a->in, sum + t, v, (const float (*)[a->in])&x[t][i]);
}

AVX2 static void avx2_columns(const struct tile *a, size_t i, size_t n, size_t m, float sum[m][TILE][LANES],
	const float x[m][a->in])
{
	if (a->type == HALF_F16 && a->rows == TILE)
		avx2_some(HALF_F16, TILE, a, i, n, m, sum, x);
	else if (a->rows == TILE)
		avx2_some(HALF_BF16, TILE, a, i, n, m, sum, x);
	else
		avx2_some(a->type, a->rows, a, i, n, m, sum, x);
}
#endif

static void columns(const struct tile *a, size_t i, size_t n, size_t m, float sum[m][TILE][LANES],
	const float x[m][a->in])
{
#ifdef __x86_64__
	if (cpu >= CPU_AVX2 && cpu_half) {
		avx2_columns(a, i, n, m, sum, x);
		return;
	}
#endif
	plain_columns(a, i, n, m, sum, x);
}

/* What is over after whole lanes is added last. */
static void tile(const struct tile *a, size_t m, float y[m][TILE], const float x[m][a->in])
{
	const size_t whole = a->in / LANES * LANES;
	float sum[PRODUCT_FEW][TILE][LANES], rest[LANES];

	memset(sum, 0, m * sizeof *sum);
	for (size_t i = 0; i < whole; i += COLUMNS)
		columns(a, i, least(COLUMNS, whole - i), m, sum, x);
	for (size_t r = 0; r < a->rows; r++) {
		half_widen(a->in - whole, rest, a->w + r * a->d * a->in + whole, a->type);
		for (size_t t = 0; t < m; t++) {
			const float *s = sum[t][r];

			y[t][r] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
			for (size_t i = whole; i < a->in; i++)
				y[t][r] += rest[i - whole] * x[t][i];
		}
	}
}

/* n rows of the weight, at most PRODUCT_FEW of x: tiles of rows n / TILE apart, and what is over. */
static void rows_of(const struct tile *all, size_t n, size_t m, size_t stride, float y[m][stride],
	const float x[m][all->in], const float *bias, bool add)
{
	const size_t d = n / TILE;
	struct tile a = *all;

	for (size_t k = 0; k < d + (n % TILE > 0); k++) {
		const size_t first = k < d ? k : TILE * d;
		float sum[PRODUCT_FEW][TILE];

		a.w = all->w + first * a.in, a.d = k < d ? d : 1, a.rows = k < d ? TILE : n % TILE;
		tile(&a, m, sum, x);
		for (size_t t = 0; t < m; t++)
			for (size_t r = 0, o = first; r < a.rows; r++, o += a.d)
				y[t][o] = sum[t][r] + (bias ? bias[o] : 0) + (add ? y[t][o] : 0);
	}
}

void half_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add)
{
	const size_t in = p->l->in, all = omp_in_parallel() ? 1 : (size_t)threads;
	const size_t step = ceil_div(ceil_div(n, all * ceil_div(n, all * ROW_PANEL)), TILE) * TILE;
	const uint16_t *w = (const uint16_t *)p->weight + (first - p->first) * in;
	const float (*x)[in] = input;

	#pragma omp parallel for num_threads(threads) if (m * n * in > FEW_NUMBERS) schedule(dynamic)
	for (size_t o = 0; o < n; o += step)
		for (size_t t = 0; t < m; t += PRODUCT_FEW) {
			const struct tile a = { .w = w + o * in, .in = in, .type = p->l->weight_type };
			const size_t some = least(PRODUCT_FEW, m - t);

			rows_of(&a, least(step, n - o), some, stride, (float (*)[stride])&y[t][o], x + t,
				bias ? bias + o : NULL, add);
		}
}
