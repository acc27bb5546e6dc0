/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention_tile.c -- see attention_private.h
 *
 * Scores are multiplied by log₂ e, so that softmax weights are powers of two. A power has the exponent
 * n = round(score - max) and a polynomial in the remainder, with an error within 2 units in the last place.
 * Weights below 2^-126 of the largest are zero.
 */
#include <math.h>
#include <string.h>
#include "base/cut.h"
#include "base/size.h"
#include "forward/attention_private.h"
#include "num/clones.h"
/* Fused multiply-add if the processor has it; bounds of loops do not become cases (num/linalg.c). */
#pragma GCC optimize ("fp-contract=fast", "no-thread-jumps")

enum { KEYS = 128 };			/* of a tile; results depend on it */
enum { VECTORS = 3, FOUR = 4 };		/* of a panel; rows that are multiplied at once */
enum { AHEAD = 8, ALIGN = 64 };		/* rows that are prefetched; bytes of a cache line */

/* Panels divide the columns of a tile. Column c belongs to query c / group and head c % group. */
struct tile {
	const struct attention *a;
	const struct attention_rows *r;
	size_t kv_head, first, group, columns, past;	/* past: keys before the first row of the sequence */
	size_t d, deep;			/* of a head; the same as a multiple of FOUR */
	size_t lanes, panels;
	float *q, *y;			/* [panels][d][wide], [panels][deep][wide] */
	float *max, *sum;		/* [panels][wide] */
	float *score;			/* [KEYS][wide] */
	float *k, *v;			/* [KEYS][d], [deep / FOUR][KEYS][FOUR] */
	int32_t *from, *at;		/* [panels][wide] first and last index that a column attends to */
	int32_t *index;			/* [KEYS] of the keys */
};

/* 2^x, for x ≤ 0. */
static inline __attribute__((always_inline)) float power_of_two(float x)
{
	const float round = 0x1.8p23f + 127;
	union { float f; uint32_t u; } two = { x + round };	/* its low bits are n + 127 */
	const float r = x - (two.f - round);
	float p = 1.53533620e-4f;

	p = p * r + 1.33988750e-3f;
	p = p * r + 9.61843692e-3f;
	p = p * r + 5.55033237e-2f;
	p = p * r + 2.40226476e-1f;
	p = p * r + 6.93147182e-1f;
	p = p * r + 1;
	two.u <<= 23;
	return x < -126 ? 0 : p * two.f;
}

static void cap_scores(size_t n, float s[n], float cap)
{
	for (size_t i = 0; i < n; i++)
		s[i] = cap * tanhf(s[i] / cap) * (float)M_LOG2E;
}

#define LANES 4
#define TARGET
#define NAME(x) plain_##x
#include "forward/attention_lanes_private.h"
#ifdef __x86_64__
#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) avx2_##x
#include "forward/attention_lanes_private.h"
#define LANES 16
#define TARGET __attribute__((CPU_AVX512_TARGET))
#define NAME(x) avx512_##x
#include "forward/attention_lanes_private.h"
#endif

/* Kernels of each kind of processor. As in BLAS, PTQ_CPU does not disable fused multiply-add, so all kernels
 * give the same bits. */
static const struct attention_kind {
	size_t lanes;
	void (*panel)(struct tile *t, int vectors, size_t panel, size_t n, bool masked);
} kinds[] = {
	[CPU_PLAIN] = { 4, plain_panel },
#ifdef __x86_64__
	[CPU_AVX2] = { 8, avx2_panel }, [CPU_AVX512] = { 16, avx512_panel },
#endif
};

static const struct attention_kind *kind(void)
{
	return &kinds[cpu == CPU_PLAIN && cpu_widest > CPU_PLAIN ? CPU_AVX2 : cpu];
}

/* Divides the workspace at `base` (NULL: none yet) and returns its size. */
static size_t cut_tile(struct tile *t, const struct attention *a, size_t queries, char *base)
{
	size_t used = 0, wide, columns;

	t->a = a;
	t->group = a->heads / a->kv_heads;
	t->columns = queries * t->group;
	t->d = a->head_dim;
	t->deep = ceil_div(t->d, FOUR) * FOUR;
	t->lanes = kind()->lanes;
	wide = VECTORS * t->lanes;
	t->panels = ceil_div(t->columns, wide);
	columns = t->panels * wide;
	t->q = cut(base, &used, columns * t->d, sizeof *t->q);
	t->y = cut(base, &used, columns * t->deep, sizeof *t->y);
	t->max = cut(base, &used, columns, sizeof *t->max);
	t->sum = cut(base, &used, columns, sizeof *t->sum);
	t->score = cut(base, &used, KEYS * wide, sizeof *t->score);
	t->k = cut(base, &used, KEYS * t->d, sizeof *t->k);
	t->v = cut(base, &used, KEYS * t->deep, sizeof *t->v);
	t->from = cut(base, &used, columns, sizeof *t->from);
	t->at = cut(base, &used, columns, sizeof *t->at);
	t->index = cut(base, &used, KEYS, sizeof *t->index);
	return used;
}

size_t attention_tile_workspace(const struct attention *a, size_t queries)
{
	struct tile t;

	return cut_tile(&t, a, queries, NULL);
}

/* The query of a column, and its head. */
static const float *query_of(const struct tile *t, size_t column)
{
	const size_t head = t->kv_head * t->group + column % t->group;

	return t->r->q + (t->first + column / t->group) * t->r->q_stride + head * t->d;
}

/* Copies queries into panels, sets the range of indices of each column, and zeroes the sums. Columns beyond
 * the last are copies of it. */
static void begin_tile(struct tile *t)
{
	const struct attention *a = t->a;
	const size_t wide = VECTORS * t->lanes;
	const float scale = (float)(a->cap > 0 ? a->scale : a->scale * M_LOG2E);
	const int64_t min_index = t->r->index ? INT32_MIN : 0;	/* the index of a BOS may be negative */

	for (size_t c = 0; c < t->panels * wide; c++) {
		const size_t column = min(c, t->columns - 1), row = t->first + column / t->group;
		const float *x = query_of(t, column);
		float *q = t->q + c / wide * wide * t->d + c % wide;

		for (size_t i = 0; i < t->d; i++)
			q[i * wide] = x[i] * scale;
		t->at[c] = t->r->index ? t->r->index[row] : (int32_t)(t->past + row);
		t->from[c] = (int32_t)min_index;
		if (a->sliding_window && a->sliding_window < INT32_MAX &&
		    t->at[c] + 1 - (int64_t)a->sliding_window > min_index)
			t->from[c] = (int32_t)(t->at[c] + 1 - (int64_t)a->sliding_window);
		t->max[c] = -INFINITY;
		t->sum[c] = 0;
	}
	memset(t->y, 0, t->panels * wide * t->deep * sizeof *t->y);
}

/* Copies keys j .. j + n - 1, padded to a multiple of four with zeros, and their values in groups of four
 * channels. */
static void load_keys(struct tile *t, size_t j, size_t n)
{
	const size_t before = t->r->keys[0].n, d = t->d;

	for (size_t i = 0; i < n; i++) {
		const struct attention_keys *keys = &t->r->keys[j + i >= before];
		const size_t row = j + i < before ? j + i : j + i - before;
		const float *v = keys->v + row * keys->stride + t->kv_head * d;

		for (size_t c = 0; i + AHEAD < n && c < d; c += ALIGN / sizeof *v) {
			__builtin_prefetch(v + AHEAD * keys->stride + c);
			__builtin_prefetch(keys->k + (row + AHEAD) * keys->stride + t->kv_head * d + c);
		}
		memcpy(t->k + i * d, keys->k + row * keys->stride + t->kv_head * d, d * sizeof *t->k);
		for (size_t c = 0; c < t->deep; c += FOUR)
			memcpy(t->v + c * KEYS + i * FOUR, v + c, min(FOUR, d - c) * sizeof *v);
		t->index[i] = keys->index ? keys->index[row] : (int32_t)(j + i);
	}
	memset(t->k + n * d, 0, (ceil_div(n, FOUR) * FOUR - n) * d * sizeof *t->k);
}

struct tile_range { int32_t min, max; };

static struct tile_range range_of(size_t n, const int32_t x[n])
{
	struct tile_range y = { x[0], x[0] };

	for (size_t i = 1; i < n; i++) {
		y.min = x[i] < y.min ? x[i] : y.min;
		y.max = x[i] > y.max ? x[i] : y.max;
	}
	return y;
}

/* Adds the n keys of the tile to each panel that attends to one of them, by index. */
static void add_keys_by_index(struct tile *t, size_t n)
{
	const struct tile_range keys = range_of(n, t->index);
	const size_t wide = VECTORS * t->lanes;

	for (size_t p = 0; p < t->panels; p++) {
		const size_t columns = min(wide, t->columns - p * wide);
		const struct tile_range from = range_of(columns, t->from + p * wide);
		const struct tile_range at = range_of(columns, t->at + p * wide);

		if (keys.min <= at.max && keys.max >= from.min)
			kind()->panel(t, (int)ceil_div(columns, t->lanes), p, n,
				keys.max > at.min || keys.min < from.max);
	}
}

/* Adds keys j .. j + n - 1 to each panel, in storage order: no key after the last query of the panel is used.
 */
static void add_keys(struct tile *t, size_t j, size_t n)
{
	const size_t wide = VECTORS * t->lanes;

	for (size_t p = 0; p < t->panels; p++) {
		const size_t columns = min(wide, t->columns - p * wide);
		const int32_t *from = t->from + p * wide, *at = t->at + p * wide;
		const size_t last = (size_t)at[columns - 1] + 1;
		const size_t seen = last > j ? min(n, last - j) : 0;

		if (seen && j + n > (size_t)from[0])
			kind()->panel(t, (int)ceil_div(columns, t->lanes), p, seen,
				j + seen > (size_t)at[0] + 1 || j < (size_t)from[columns - 1]);
	}
}

static void finish_tile(const struct tile *t)
{
	const size_t wide = VECTORS * t->lanes;

	for (size_t c = 0; c < t->columns; c++) {
		const float *from = t->y + c / wide * wide * t->deep + c % wide;
		float *y = t->r->y + (t->first + c / t->group) * t->r->y_stride +
			(t->kv_head * t->group + c % t->group) * t->d;
		const float by = 1 / t->sum[c];

		for (size_t i = 0; i < t->d; i++)
			y[i] = from[i * wide] * by;
	}
}

void attention_tile(const struct attention *a, const struct attention_rows *r, size_t kv_head, size_t first,
	size_t queries, void *workspace)
{
	const size_t all = r->keys[0].n + r->keys[1].n;
	struct tile t = { .r = r, .kv_head = kv_head, .first = first, .past = all - r->n };
	size_t end;

	cut_tile(&t, a, queries, workspace);
	begin_tile(&t);
	/* By index, a query may attend to any key; in storage order, to no key after the last query. */
	end = r->index ? all : t.past + first + queries;
	for (size_t j = r->index ? 0 : (size_t)t.from[0] / KEYS * KEYS, n; j < end; j += n) {
		n = min(KEYS, end - j);
		load_keys(&t, j, n);
		if (r->index)
			add_keys_by_index(&t, n);
		else
			add_keys(&t, j, n);
	}
	finish_tile(&t);
}
