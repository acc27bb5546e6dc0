/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attend.cu -- attention of a sequence; see device/device.h
 *
 * Queries are taken in tiles. Their scores with all keys that they may attend to are two products and a
 * softmax between them. Scores and weights of a tile are in memory, those of the sequence never are.
 */
#include <math.h>
#include "cuda/gpu.h"
#include "cuda/growing.h"
#include "cuda/library.h"
#include "cuda/module.h"

enum { QUERIES = 512, WIDE = BLOCK_THREADS };

struct tile {
	size_t first, queries;		/* of the rows */
	size_t from, keys;		/* rows from .. from + keys - 1 */
	float cap;
	size_t window;
	const int32_t *index;
	float *scores;			/* [heads][queries][keys] */
};

/* A block takes the scores of a query and a head, and makes them weights that add up to 1. */
KERNEL(softmax, struct tile)
{
	float *s = a.scores + (BLOCK_Y * a.queries + BLOCK) * a.keys, most = -INFINITY, sum = 0;
	const size_t row = a.first + BLOCK;
	const int32_t me = a.index ? a.index[row] : (int32_t)row;

	for (size_t k = THREAD; k < a.keys; k += THREADS) {
		const int32_t other = a.index ? a.index[a.from + k] : (int32_t)(a.from + k);
		const bool seen = other <= me && (!a.window || (size_t)(me - other) < a.window);

		s[k] = !seen ? -INFINITY : a.cap > 0 ? a.cap * tanhf(s[k] / a.cap) : s[k];
		most = s[k] > most ? s[k] : most;
	}
	most = block_max(most);
	for (size_t k = THREAD; k < a.keys; k += THREADS) {
		s[k] = expf(s[k] - most);
		sum += s[k];
	}
	sum = 1 / block_sum(sum);
	for (size_t k = THREAD; k < a.keys; k += THREADS)
		s[k] *= sum;
}

/* Products of a tile with query head `member` of every group. */
static void attend_tile(const struct device_attention *a, const struct tile *t, size_t member, float *y,
	const float *x)
{
	const size_t d = a->head_dim, group = a->heads / a->kv_heads, width = a->heads * d;
	const float *key = x + t->from * a->stride + width, *value = key + a->kv_heads * d;
	struct gemm g = { .m = t->queries, .n = t->keys, .k = d, .transpose_b = true, .alpha = a->scale,
		.a = x + t->first * a->stride + member * d, .b = key, .c = t->scores, .lda = a->stride,
		.ldb = a->stride, .ldc = t->keys, .batch = a->kv_heads, .step_a = group * d, .step_b = d,
		.step_c = t->queries * t->keys };

	library_gemm(&g);
	LAUNCH_TOGETHER(softmax, t->queries, a->kv_heads, WIDE, *t);
	g.n = d, g.k = t->keys;
	g.transpose_b = false;
	g.alpha = 1;
	g.a = t->scores, g.lda = t->keys, g.step_a = t->queries * t->keys;
	g.b = value;
	g.c = y + t->first * width + member * d, g.ldc = width, g.step_c = group * d;
	library_gemm(&g);
}

void gpu_attention(const struct device_attention *a, float *y, const float *x)
{
	static struct growing scratch;
	const size_t most = QUERIES < a->rows ? QUERIES : a->rows;
	struct tile t = { 0, 0, 0, 0, a->cap, a->window, a->index, NULL };

	t.scores = (float *)growing_of(&scratch, a->kv_heads * most * a->rows * sizeof *t.scores);
	for (t.first = 0; t.first < a->rows; t.first += most) {
		t.queries = a->rows - t.first < most ? a->rows - t.first : most;
		if (a->index) {			/* any row may be attended to */
			t.from = 0, t.keys = a->rows;
		} else {
			t.from = a->window && t.first + 1 > a->window ? t.first + 1 - a->window : 0;
			t.keys = t.first + t.queries - t.from;
		}
		for (size_t member = 0; member < a->heads / a->kv_heads; member++)
			attend_tile(a, &t, member, y, x);
	}
}
