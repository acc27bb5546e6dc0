/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attention.c -- causal attention of grouped heads, and rotary positions; see attention.h */
#include "forward/attention.h"
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"

enum { TILE_Q = 256, TILE_K = 512, DIAGONAL = 64 };
enum { FEW_PRODUCTS = 1 << 20 };	/* threads only for more than that */

/* The keys of a tile that a query sees: those of index up to `at`, less than the sliding window before it. */
struct sight {
	const int32_t *index;		/* of the tile's keys; NULL: j, j + 1, ... */
	int64_t j, at;
	size_t window;
};

static bool sees(const struct sight *g, size_t key)
{
	return g->index[key] <= g->at && (!g->window || g->at - g->index[key] < (int64_t)g->window);
}

/* The next run of keys *lo .. *hi - 1 of n that are seen, from *lo on. */
static bool next_run(const struct sight *g, size_t n, size_t *lo, size_t *hi)
{
	if (g->index) {
		while (*lo < n && !sees(g, *lo))
			++*lo;
		for (*hi = *lo; *hi < n && sees(g, *hi); ++*hi)
			;
	} else {
		int64_t from = g->window && g->at + 1 > (int64_t)g->window ?
			g->at + 1 - (int64_t)g->window : 0;

		*lo = from > g->j + (int64_t)*lo ? least((size_t)(from - g->j), n) : *lo;
		*hi = g->at + 1 > g->j ? least((size_t)(g->at + 1 - g->j), n) : 0;
	}
	return *lo < *hi;
}

/* exp(score - max) of the keys that are seen, zero elsewhere; returns the factor of what came before. */
static float row_of_tile(size_t n, float s[n], const struct sight *g, float *max, float *sum)
{
	float top = *max, factor;
	size_t done = 0;

	for (size_t lo = 0, hi; next_run(g, n, &lo, &hi); lo = hi)
		top = fmaxf(top, linalg_max(hi - lo, s + lo));
	factor = top > -INFINITY ? expf(*max - top) : 1;
	for (size_t lo = 0, hi; next_run(g, n, &lo, &hi); lo = done = hi) {
		memset(s + done, 0, (lo - done) * sizeof *s);
		*sum = *sum * (done ? 1 : factor) + linalg_exp(hi - lo, s + lo, top);
	}
	memset(s + done, 0, (n - done) * sizeof *s);
	*max = done ? top : *max;
	return done ? factor : 1;
}

static void scale(size_t n, float y[n], float by)
{
	for (size_t i = 0; i < n; i++)
		y[i] *= by;
}

static void cap_scores(size_t m, size_t n, float s[m][TILE_K], float cap)
{
	for (size_t t = 0; t < m; t++)
		for (size_t j = 0; j < n; j++)
			s[t][j] = cap * tanhf(s[t][j] / cap);
}

/* State of a tile: queries i .. i + m - 1 of one head, and what the keys so far gave. */
struct tile {
	const struct attention *a;
	const struct attention_rows *r;
	size_t head, i, m, past;	/* past: keys before the first query of the sequence */
	bool begun;			/* y holds what some keys gave */
	float max[TILE_Q], sum[TILE_Q], (*score)[TILE_K];
};

/* Keys j .. j + n - 1 of all, which are `keys` from row `from` on. */
static void add_keys(struct tile *t, const struct attention_keys *keys, size_t from, size_t j, size_t n)
{
	const struct attention *a = t->a;
	const struct attention_rows *r = t->r;
	size_t d = a->head_dim, kv = t->head / (a->heads / a->kv_heads) * d, at = t->past + t->i;
	size_t skip = !keys->index && j > at ? j - at : 0;	/* queries before all of these keys */
	const float *q = r->q + (t->i + skip) * r->q_stride + t->head * d;
	const float *k = keys->k + from * keys->stride + kv;
	const float *v = keys->v + from * keys->stride + kv;
	float *y = r->y + t->i * r->y_stride + t->head * d;

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)(t->m - skip), (int)n, (int)d,
		(float)a->scale, q, (int)r->q_stride, k, (int)keys->stride, 0, t->score[skip], TILE_K);
	if (a->cap > 0)
		cap_scores(t->m - skip, n, t->score + skip, (float)a->cap);
	for (size_t p = skip; p < t->m; p++) {
		struct sight sight = { keys->index ? keys->index + from : NULL, (int64_t)j,
			r->index ? r->index[t->i + p] : (int64_t)(at + p), a->sliding_window };
		float factor = row_of_tile(n, t->score[p], &sight, &t->max[p], &t->sum[p]);

		if (t->begun && factor != 1)
			scale(d, y + p * r->y_stride, factor);
	}
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(t->m - skip), (int)d, (int)n, 1,
		t->score[skip], TILE_K, v, (int)keys->stride, t->begun ? 1 : 0, y + skip * r->y_stride,
		(int)r->y_stride);
	t->begun = true;
}

static void run_tile(const struct attention *a, const struct attention_rows *r, size_t head, size_t i,
	size_t m)
{
	float score[TILE_Q][TILE_K];
	struct tile t = { .a = a, .r = r, .head = head, .i = i, .m = m,
		.past = r->keys[0].n + r->keys[1].n - r->n, .score = score };
	size_t at = t.past + i, all = r->keys[0].n + r->keys[1].n;
	/* By index any query may see any key; otherwise these, and no further. */
	size_t first = !r->index && a->sliding_window && at + 1 > a->sliding_window ?
		at + 1 - a->sliding_window : 0;
	size_t end = r->index ? all : at + m, split = !r->index && m > DIAGONAL ? at : end;

	for (size_t p = 0; p < m; p++)
		t.max[p] = -INFINITY, t.sum[p] = 0;
	for (size_t j = first, n; j < end; j += n) {
		size_t before = j < r->keys[0].n ? 0 : r->keys[0].n;
		const struct attention_keys *keys = &r->keys[before > 0 || !r->keys[0].n];
		size_t stop = least(end, before + keys->n);

		n = j < split ? least(TILE_K, least(split, stop) - j) : least(DIAGONAL, stop - j);
		add_keys(&t, keys, j - before, j, n);
	}
	for (size_t p = 0; p < m; p++)
		scale(a->head_dim, r->y + (i + p) * r->y_stride + head * a->head_dim, 1 / t.sum[p]);
}

void attention(const struct attention *a, size_t sequences, const struct attention_rows rows[sequences])
{
	size_t tiles = 0, heads = a->heads, products = 0;

	for (size_t s = 0; s < sequences; s++) {
		tiles = rows[s].n > tiles * TILE_Q ? (rows[s].n + TILE_Q - 1) / TILE_Q : tiles;
		products += heads * rows[s].n * (rows[s].keys[0].n + rows[s].keys[1].n) * a->head_dim;
	}
	#pragma omp parallel for num_threads(threads) schedule(dynamic) collapse(3) \
		if (products > FEW_PRODUCTS)
	for (size_t s = 0; s < sequences; s++)
		for (size_t head = 0; head < heads; head++)
			for (size_t t = 0; t < tiles; t++)
				if (t * TILE_Q < rows[s].n)
					run_tile(a, &rows[s], head, t * TILE_Q,
						least(TILE_Q, rows[s].n - t * TILE_Q));
}

struct rope rope_make(size_t positions, size_t half, const double frequency[half], bool interleaved)
{
	struct rope r = { positions, half, interleaved, xalloc(positions * half, sizeof(float)),
		xalloc(positions * half, sizeof(float)) };

	for (size_t p = 0; p < positions; p++)
		for (size_t i = 0; i < half; i++) {
			r.cosine[p * half + i] = (float)cos((double)p * frequency[i]);
			r.sine[p * half + i] = (float)sin((double)p * frequency[i]);
		}
	return r;
}

void rope_free(struct rope *r)
{
	free(r->cosine);
	free(r->sine);
	*r = (struct rope){ 0 };
}

void rope_turn(const struct rope *r, size_t position, size_t heads, size_t head_dim, float x[heads][head_dim])
{
	const float *c = r->cosine + position * r->half, *s = r->sine + position * r->half;
	const size_t step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : r->half;

	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < r->half; i++) {
			float a = x[h][i * step], b = x[h][i * step + apart];

			x[h][i * step] = a * c[i] - b * s[i];
			x[h][i * step + apart] = b * c[i] + a * s[i];
		}
}
