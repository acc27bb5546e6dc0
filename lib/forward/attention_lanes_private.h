/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention_lanes_private.h -- attention of a panel of queries to the keys of a tile; attention_tile.c
 * includes it once for each vector width
 *
 * A panel has VECTORS vectors of columns. A product multiplies FOUR rows by a panel and keeps the sums in
 * registers.
 *
 * The includer defines LANES, TARGET and NAME(x). They are undefined at the end of this file.
 */
#define INLINE TARGET static inline __attribute__((always_inline))
#define WIDE ((size_t)VECTORS * LANES)

typedef float NAME(floats) __attribute__((vector_size(4 * LANES), may_alias));

/* sum[r] = Σ_i a[i · step + r · row] b[i][], for the first `vectors` vectors of b's rows. */
INLINE void NAME(outer)(int vectors, size_t n, NAME(floats) sum[FOUR][VECTORS], const float *a, size_t step,
	size_t row, const float b[n][WIDE])
{
	const NAME(floats) zero = { 0 };

	for (int r = 0; r < FOUR; r++)
		for (int v = 0; v < vectors; v++)
			sum[r][v] = zero;
	for (size_t i = 0; i < n; i++, a += step) {
		const NAME(floats) *x = (const NAME(floats) *)b[i];

		#pragma GCC unroll 4
		for (int r = 0; r < FOUR; r++)
			#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				sum[r][v] += (a[(size_t)r * row] - zero) * x[v];
	}
}

/* score[key][] = key · query, for n keys. */
INLINE void NAME(scores)(const struct tile *t, int vectors, size_t n, float score[n][WIDE],
	const float q[t->d][WIDE])
{
	NAME(floats) sum[FOUR][VECTORS];

	for (size_t k = 0; k < n; k += FOUR) {
		NAME(outer)(vectors, t->d, sum, t->k + k * t->d, 1, t->d, q);
		for (int r = 0; r < FOUR; r++)
			for (int v = 0; v < vectors; v++)
				((NAME(floats) *)score[k + (size_t)r])[v] = sum[r][v];
	}
}

/* y = y · factor + Σ_key score[key] v_key */
INLINE void NAME(values)(const struct tile *t, int vectors, size_t n, float y[t->deep][WIDE],
	const float score[n][WIDE], const float factor[WIDE])
{
	NAME(floats) sum[FOUR][VECTORS];

	for (size_t c = 0; c < t->deep; c += FOUR) {
		NAME(outer)(vectors, n, sum, t->v + c * KEYS, FOUR, 1, score);
		for (int r = 0; r < FOUR; r++)
			for (int v = 0; v < vectors; v++) {
				NAME(floats) *to = (NAME(floats) *)y[c + (size_t)r] + v;

				*to = *to * ((const NAME(floats) *)factor)[v] + sum[r][v];
			}
	}
}

/* Sets the scores of masked keys to -infinity. */
INLINE void NAME(mask)(const struct tile *t, size_t columns, size_t n, float score[n][WIDE],
	const int32_t from[columns], const int32_t at[columns])
{
	for (size_t k = 0; k < n; k++)
		for (size_t c = 0; c < columns; c++)
			score[k][c] = (t->index[k] >= from[c]) & (t->index[k] <= at[c]) ? score[k][c] :
				-INFINITY;
}

/* The largest score of each column so far. */
INLINE void NAME(tops)(size_t columns, size_t n, float new_max[columns], const float score[n][WIDE])
{
	size_t k = 0;

	for (; k + 4 <= n; k += 4)
		for (size_t c = 0; c < columns; c++) {
			float a = score[k][c], b = score[k + 1][c];

			a = score[k + 2][c] > a ? score[k + 2][c] : a;
			b = score[k + 3][c] > b ? score[k + 3][c] : b;
			a = b > a ? b : a;
			new_max[c] = a > new_max[c] ? a : new_max[c];
		}
	for (; k < n; k++)
		for (size_t c = 0; c < columns; c++)
			new_max[c] = score[k][c] > new_max[c] ? score[k][c] : new_max[c];
}

/* score = 2^(score - max) with the new maximum, and its sum. factor: for earlier sums, under the old maximum.
 */
INLINE void NAME(weights)(size_t columns, size_t n, float score[n][WIDE], float factor[columns],
	float max[columns], float sum[columns])
{
	float new_max[WIDE], part[WIDE] = { 0 };

	memcpy(new_max, max, columns * sizeof *new_max);
	NAME(tops)(columns, n, new_max, (const float (*)[WIDE])score);
	for (size_t c = 0; c < columns; c++) {
		const float shift = new_max[c] > -INFINITY ? new_max[c] : 0;

		factor[c] = power_of_two(max[c] - shift);
		max[c] = new_max[c];
		new_max[c] = shift;
	}
	for (size_t k = 0; k < n; k++)
		for (size_t c = 0; c < columns; c++)
			part[c] += score[k][c] = power_of_two(score[k][c] - new_max[c]);
	for (size_t c = 0; c < columns; c++)
		sum[c] = sum[c] * factor[c] + part[c];
}

/* Adds the first n keys of the tile to the columns of a panel. */
INLINE void NAME(some)(struct tile *t, int vectors, size_t panel, size_t n, bool masked)
{
	const size_t columns = (size_t)vectors * LANES, first = panel * WIDE;
	float (*score)[WIDE] = (float (*)[WIDE])t->score;
	_Alignas(64) float factor[WIDE];

	NAME(scores)(t, vectors, n, score, (const float (*)[WIDE])(t->q + first * t->d));
	if (t->a->cap > 0)
		cap_scores(n * WIDE, t->score, (float)t->a->cap);
	if (masked)
		NAME(mask)(t, columns, n, score, t->from + first, t->at + first);
	NAME(weights)(columns, n, score, factor, t->max + first, t->sum + first);
	NAME(values)(t, vectors, n, (float (*)[WIDE])(t->y + first * t->deep), (const float (*)[WIDE])score,
		factor);
}

TARGET static void NAME(panel)(struct tile *t, int vectors, size_t panel, size_t n, bool masked)
{
	switch (vectors) {
	case 1: NAME(some)(t, 1, panel, n, masked); break;
	case 2: NAME(some)(t, 2, panel, n, masked); break;
	default: NAME(some)(t, VECTORS, panel, n, masked); break;
	}
}
#undef INLINE
#undef WIDE
#undef LANES
#undef TARGET
#undef NAME
