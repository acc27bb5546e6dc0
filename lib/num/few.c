/* SPDX-License-Identifier: GPL-3.0-or-later */
/* few.c -- see few.h */
#include "num/few.h"
#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Rows of w that a thread takes at once; products below which one thread runs; rows of w in a tile; lanes. */
enum { ROWS = 32, FEW_PRODUCTS = 1 << 20, TILE = 4, LANES = 8 };

struct few {
	size_t m, k, stride;
	float *y;
	const float *x, *w, *bias;
	bool add;
};

static void put(const struct few *p, size_t t, size_t o, float sum)
{
	float *y = p->y + t * p->stride + o;

	sum += p->bias ? p->bias[o] : 0;
	*y = p->add ? *y + sum : sum;
}

#ifdef __x86_64__
#define INLINE(features) __attribute__((features)) __attribute__((always_inline)) static inline

/* Rows o to o + r - 1 of w by rows t to t + s - 1 of x; r and s are constants. */
INLINE(CPU_AVX512_TARGET) void avx512_tile(const struct few *p, size_t o, size_t r, size_t t, size_t s)
{
	const size_t k = p->k, whole = k / 16 * 16;
	const float *w = p->w + o * k, *x = p->x + t * k;
	const __mmask16 rest = (__mmask16)((1u << (k - whole)) - 1);
	__m512 sum[TILE][TILE];

	#pragma GCC unroll 4
	for (size_t a = 0; a < s; a++)
		#pragma GCC unroll 4
		for (size_t b = 0; b < r; b++)
			sum[a][b] = _mm512_setzero_ps();
	for (size_t i = 0; i < whole; i += 16) {
		__m512 v[TILE];

		#pragma GCC unroll 4
		for (size_t b = 0; b < r; b++)
			v[b] = _mm512_loadu_ps(w + b * k + i);
		#pragma GCC unroll 4
		for (size_t a = 0; a < s; a++) {
			const __m512 u = _mm512_loadu_ps(x + a * k + i);

			#pragma GCC unroll 4
			for (size_t b = 0; b < r; b++)
				sum[a][b] = _mm512_fmadd_ps(u, v[b], sum[a][b]);
		}
	}
	#pragma GCC unroll 4
	for (size_t a = 0; a < s; a++)
		#pragma GCC unroll 4
		for (size_t b = 0; b < r; b++) {
			if (rest)
				sum[a][b] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(rest, x + a * k + whole),
					_mm512_maskz_loadu_ps(rest, w + b * k + whole), sum[a][b]);
			put(p, t + a, o + b, _mm512_reduce_add_ps(sum[a][b]));
		}
}

INLINE(CPU_AVX512_TARGET) void avx512_stripe(const struct few *p, size_t o, size_t r)
{
	size_t t = 0;

	for (; t + TILE <= p->m; t += TILE)
		avx512_tile(p, o, r, t, TILE);
	for (; t < p->m; t++)
		avx512_tile(p, o, r, t, 1);
}

__attribute__((CPU_AVX512_TARGET))
static void avx512_rows(const struct few *p, size_t o, size_t end)
{
	for (; o + TILE <= end; o += TILE)
		avx512_stripe(p, o, TILE);
	for (; o < end; o++)
		avx512_stripe(p, o, 1);
}

#define AVX2 target("avx2,fma")

INLINE(AVX2) float avx2_total(__m256 v)
{
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE(AVX2) void avx2_tile(const struct few *p, size_t o, size_t r, size_t t, size_t s)
{
	const size_t k = p->k, whole = k / LANES * LANES;
	const float *w = p->w + o * k, *x = p->x + t * k;
	__m256 sum[2][TILE];

	#pragma GCC unroll 4
	for (size_t a = 0; a < s; a++)
		#pragma GCC unroll 4
		for (size_t b = 0; b < r; b++)
			sum[a][b] = _mm256_setzero_ps();
	for (size_t i = 0; i < whole; i += LANES)
		#pragma GCC unroll 4
		for (size_t b = 0; b < r; b++) {
			const __m256 v = _mm256_loadu_ps(w + b * k + i);

			#pragma GCC unroll 4
			for (size_t a = 0; a < s; a++)
				sum[a][b] = _mm256_fmadd_ps(_mm256_loadu_ps(x + a * k + i), v, sum[a][b]);
		}
	#pragma GCC unroll 4
	for (size_t a = 0; a < s; a++)
		#pragma GCC unroll 4
		for (size_t b = 0; b < r; b++) {
			float y = avx2_total(sum[a][b]);

			for (size_t i = whole; i < k; i++)
				y += x[a * k + i] * w[b * k + i];
			put(p, t + a, o + b, y);
		}
}

INLINE(AVX2) void avx2_stripe(const struct few *p, size_t o, size_t r)
{
	size_t t = 0;

	for (; t + 2 <= p->m; t += 2)
		avx2_tile(p, o, r, t, 2);
	if (t < p->m)
		avx2_tile(p, o, r, t, 1);
}

__attribute__((AVX2))
static void avx2_rows(const struct few *p, size_t o, size_t end)
{
	for (; o + TILE <= end; o += TILE)
		avx2_stripe(p, o, TILE);
	for (; o < end; o++)
		avx2_stripe(p, o, 1);
}
#endif

static void plain_rows(const struct few *p, size_t o, size_t end)
{
	for (; o < end; o++)
		for (size_t t = 0; t < p->m; t++) {
			const float *x = p->x + t * p->k, *w = p->w + o * p->k;
			float sum[LANES] = { 0 };
			size_t i = 0;

			for (; i + LANES <= p->k; i += LANES)
				for (size_t j = 0; j < LANES; j++)
					sum[j] += x[i + j] * w[i + j];
			for (size_t j = 0; i < p->k; i++, j++)
				sum[j] += x[i] * w[i];
			put(p, t, o, ((sum[0] + sum[1]) + (sum[2] + sum[3])) +
				((sum[4] + sum[5]) + (sum[6] + sum[7])));
		}
}

static void some_rows(const struct few *p, size_t o, size_t end)
{
#ifdef __x86_64__
	if (cpu == CPU_AVX512)
		avx512_rows(p, o, end);
	else if (cpu == CPU_AVX2)
		avx2_rows(p, o, end);
	else
#endif
		plain_rows(p, o, end);
}

void few_product(size_t m, size_t n, size_t k, size_t stride, float y[m][stride], const float x[m][k],
	const float w[n][k], const float *bias, bool add)
{
	const struct few p = { m, k, stride, y[0], x[0], w[0], bias, add };

	#pragma omp parallel for num_threads(threads) if (m * n * k > FEW_PRODUCTS) schedule(static)
	for (size_t o = 0; o < n; o += ROWS)
		some_rows(&p, o, min(o + ROWS, n));
}
