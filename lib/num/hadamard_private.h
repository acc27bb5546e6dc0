/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard_private.h -- products with Sylvester's matrix and with a small matrix K, for one vector width
 *
 * hadamard_product.c includes it once for each vector width. tests/hadamard.c includes it for the widest one
 * on any machine. The includer defines LANES (floats of a vector), RADIX ≥ 8 (vectors in registers at the
 * same time), TARGET and NAME(x); they are undefined at the end.
 *
 * For any LANES and RADIX, butterflies are computed in the order of their distances 1, 2, 4, …, so that
 * results have the same bits.
 */
#define INLINE TARGET static inline __attribute__((always_inline))
#if LANES == 4
#define EACH(f, h) f(0, h), f(1, h), f(2, h), f(3, h)
#elif LANES == 8
#define EACH(f, h) f(0, h), f(1, h), f(2, h), f(3, h), f(4, h), f(5, h), f(6, h), f(7, h)
#else
#define EACH(f, h) f(0, h), f(1, h), f(2, h), f(3, h), f(4, h), f(5, h), f(6, h), f(7, h), \
	f(8, h), f(9, h), f(10, h), f(11, h), f(12, h), f(13, h), f(14, h), f(15, h)
#endif
#define OTHER(i, h) (i) ^ (h)
#define SIGN(i, h) (i) & (h) ? -1.0f : 1.0f
#ifdef __clang__
#define OTHERS(x, h) __builtin_shufflevector(x, x, EACH(OTHER, h))
#else
#define OTHERS(x, h) __builtin_shuffle(x, (NAME(words)){ EACH(OTHER, h) })
#endif
/* Butterflies within a vector. The product is exact, so that fusing it with the sum changes nothing. */
#define WITHIN(x, h) (x) = (x) * (NAME(floats)){ EACH(SIGN, h) } + OTHERS(x, h)

typedef float NAME(floats) __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t NAME(words) __attribute__((vector_size(4 * LANES)));
typedef float NAME(anywhere) __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));

/* Butterflies between the first `radix` vectors of r. On AMD's processors, fused products and sums run on
 * different units. */
INLINE void NAME(between)(size_t radix, NAME(floats) r[RADIX])
{
#if LANES > 4
	const float minus = minus_one;
#endif
	#pragma GCC unroll 4
	for (size_t h = 1; h < radix; h *= 2)
		#pragma GCC unroll 16
		for (size_t i = 0; i < radix; i++)
			if (!(i & h)) {
				const NAME(floats) a = r[i], b = r[i + h];

				r[i] = a + b;
#if LANES > 4
				r[i + h] = b * minus + a;
#else
				r[i + h] = a - b;
#endif
			}
}

/* Butterflies with distances up to radix · LANES / 2, on scale · x. */
INLINE void NAME(first)(size_t radix, size_t n, float x[n], float scale)
{
	for (size_t i = 0; i < n; i += radix * LANES) {
		NAME(anywhere) *v = (NAME(anywhere) *)(x + i);
		NAME(floats) r[RADIX];

		#pragma GCC unroll 16
		for (size_t k = 0; k < radix; k++) {
			r[k] = v[k] * scale;
			WITHIN(r[k], 1);
			WITHIN(r[k], 2);
#if LANES > 4
			WITHIN(r[k], 4);
#endif
#if LANES > 8
			WITHIN(r[k], 8);
#endif
		}
		NAME(between)(radix, r);
		#pragma GCC unroll 16
		for (size_t k = 0; k < radix; k++)
			v[k] = r[k];
	}
}

/* Butterflies with distances from h up to radix · h / 2. */
INLINE void NAME(next)(size_t radix, size_t h, size_t n, float x[n])
{
	for (size_t i = 0; i < n; i += radix * h)
		for (size_t j = 0; j < h; j += LANES) {
			NAME(floats) r[RADIX];

			#pragma GCC unroll 16
			for (size_t k = 0; k < radix; k++)
				r[k] = *(NAME(anywhere) *)(x + i + j + k * h);
			NAME(between)(radix, r);
			#pragma GCC unroll 16
			for (size_t k = 0; k < radix; k++)
				*(NAME(anywhere) *)(x + i + j + k * h) = r[k];
		}
}

/* x becomes scale · x S, n a power of two. */
TARGET static void NAME(sylvester)(size_t n, float x[n], float scale)
{
	size_t radix = n / LANES < RADIX ? n / LANES : RADIX;

	switch (radix) {
	case 0: sylvester_plain(n, x, scale); return;
	case 1: NAME(first)(1, n, x, scale); break;
	case 2: NAME(first)(2, n, x, scale); break;
	case 4: NAME(first)(4, n, x, scale); break;
#if RADIX > 8
	case 8: NAME(first)(8, n, x, scale); break;
#endif
	default: NAME(first)(RADIX, n, x, scale); break;
	}
	for (size_t h = radix * LANES; h < n; h *= radix) {
		radix = n / h < RADIX ? n / h : RADIX;
		switch (radix) {
		case 2: NAME(next)(2, h, n, x); break;
		case 4: NAME(next)(4, h, n, x); break;
#if RADIX > 8
		case 8: NAME(next)(8, h, n, x); break;
#endif
		default: NAME(next)(RADIX, h, n, x); break;
		}
	}
}

/* table[bits] = Σ ±x of four rows; the sign of row t is - if bit t is set. */
INLINE void NAME(fill)(float table[16 * COLUMNS], size_t stride, const float x[4][stride])
{
	#pragma GCC unroll 4
	for (size_t v = 0; v < COLUMNS; v += LANES) {
		NAME(floats) r[4], low[4], high[4];

		#pragma GCC unroll 4
		for (size_t k = 0; k < 4; k++)
			r[k] = *(const NAME(anywhere) *)&x[k][v];
		low[0] = r[0] + r[1], low[1] = r[1] - r[0], low[2] = r[0] - r[1], low[3] = -low[0];
		high[0] = r[2] + r[3], high[1] = r[3] - r[2], high[2] = r[2] - r[3], high[3] = -high[0];
		#pragma GCC unroll 16
		for (size_t bits = 0; bits < 16; bits++)
			*(NAME(floats) *)&table[bits * COLUMNS + v] = low[bits % 4] + high[bits / 4];
	}
}

/* y = from + Σ over tables of the line that the pattern selects; from NULL: 0. */
INLINE void NAME(pick)(size_t tables, size_t stride, float y[ROWS][stride], const float from[ROWS][COLUMNS],
	size_t quarter, const uint8_t pattern[ROWS][quarter], const float table[tables][16 * COLUMNS])
{
	NAME(floats) sum[ROWS][COLUMNS / LANES];

	#pragma GCC unroll 4
	for (size_t b = 0; b < ROWS; b++)
		#pragma GCC unroll 4
		for (size_t v = 0; v < COLUMNS / LANES; v++) {
			sum[b][v] = *(const NAME(floats) *)&table[0][pattern[b][0] + v * LANES];
			if (from)
				sum[b][v] += *(const NAME(anywhere) *)&from[b][v * LANES];
		}
	for (size_t g = 1; g < tables; g++)
		#pragma GCC unroll 4
		for (size_t b = 0; b < ROWS; b++)
			#pragma GCC unroll 4
			for (size_t v = 0; v < COLUMNS / LANES; v++)
				sum[b][v] += *(const NAME(floats) *)&table[g][pattern[b][g] + v * LANES];
	#pragma GCC unroll 4
	for (size_t b = 0; b < ROWS; b++)
		#pragma GCC unroll 4
		for (size_t v = 0; v < COLUMNS / LANES; v++)
			*(NAME(anywhere) *)&y[b][v * LANES] = sum[b][v];
}

/* COLUMNS columns x become K x, by the patterns of K. Partial sums are in `sum`. The last tables contain all
 * remaining rows of x, so that the result may overwrite x. */
TARGET static void NAME(small)(size_t order, const uint8_t pattern[order][order / 4], size_t stride,
	float x[order][stride], float sum[order][COLUMNS])
{
	_Alignas(64) float table[TABLES][16 * COLUMNS];

	for (size_t g = 0; g < order / 4; g += TABLES) {
		const size_t n = min(TABLES, order / 4 - g);

		for (size_t i = 0; i < n; i++)
			NAME(fill)(table[i], stride, (const float (*)[stride])&x[4 * (g + i)]);
		for (size_t b = 0; b < order; b += ROWS) {
			const uint8_t (*rows)[order / 4] = (const uint8_t (*)[order / 4])&pattern[b][g];
			const float (*t)[16 * COLUMNS] = (const float (*)[16 * COLUMNS])table;
			const float (*from)[COLUMNS] = g ? (const float (*)[COLUMNS])&sum[b] : NULL;

			if (g + n < order / 4)
				NAME(pick)(n, COLUMNS, &sum[b], from, order / 4, rows, t);
			else
				NAME(pick)(n, stride, &x[b], from, order / 4, rows, t);
		}
	}
}
#undef INLINE
#undef EACH
#undef OTHER
#undef SIGN
#undef OTHERS
#undef WITHIN
#undef LANES
#undef RADIX
#undef TARGET
#undef NAME
