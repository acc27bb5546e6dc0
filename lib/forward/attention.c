/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attention.c -- causal attention of grouped heads, and rotary positions; see attention.h */
#include "forward/attention.h"
#include "base/error.h"
#include "base/thread.h"
#include "num/linalg.h"
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_Q = 256, TILE_K = 512, DIAGONAL = 64, FEW_PRODUCTS = 1 << 20 };	/* threads only for more than that */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* exp(score - max) of what query `at` sees of keys j .. j + n - 1, zero elsewhere; returns the factor of what came before. */
static float row_of_tile(size_t n, float s[n], size_t j, size_t at, size_t window, float *max, float *sum)
{
	size_t from = window && at + 1 > window ? at + 1 - window : 0;
	size_t lo = from > j ? least(from - j, n) : 0, hi = at + 1 > j ? least(at + 1 - j, n) : 0;
	float top, factor;

	if (lo >= hi) {
		memset(s, 0, n * sizeof *s);
		return 1;
	}
	memset(s, 0, lo * sizeof *s);
	memset(s + hi, 0, (n - hi) * sizeof *s);
	top = fmaxf(*max, linalg_max(hi - lo, s + lo));
	factor = expf(*max - top);
	*sum = *sum * factor + linalg_exp(hi - lo, s + lo, top);
	*max = top;
	return factor;
}

static void scale(size_t n, float y[n], float by)
{
	for (size_t i = 0; i < n; i++)
		y[i] *= by;
}

/* Queries i .. i + m - 1 of one head. */
static void tile(const struct attention *a, size_t head, size_t i, size_t m, size_t past, const struct attention_rows *r)
{
	size_t d = a->head_dim, kv = head / (a->heads / a->kv_heads);
	size_t first = a->window && past + i + 1 > a->window ? past + i + 1 - a->window : 0, end = past + i + m;
	size_t split = m > DIAGONAL ? past + i : end;	/* narrow tiles of keys where some queries see none of them */
	const float *q = r->q + i * r->q_stride + head * d, *k = r->k + kv * d, *v = r->v + kv * d;
	float *y = r->y + i * r->y_stride + head * d;
	float s[TILE_Q][TILE_K], max[TILE_Q], sum[TILE_Q] = { 0 };

	for (size_t t = 0; t < m; t++)
		max[t] = -INFINITY;
	for (size_t j = first, n; j < end; j += n) {
		size_t skip = j > past + i ? j - past - i : 0;	/* queries before all of these keys */

		n = j < split ? least(TILE_K, split - j) : least(DIAGONAL, end - j);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)(m - skip), (int)n, (int)d, (float)(1 / sqrt((double)d)),
			q + skip * r->q_stride, (int)r->q_stride, k + j * r->kv_stride, (int)r->kv_stride, 0, s[skip], TILE_K);
		for (size_t t = skip; t < m; t++) {
			float factor = row_of_tile(n, s[t], j, past + i + t, a->window, &max[t], &sum[t]);

			if (j > first && factor != 1)
				scale(d, y + t * r->y_stride, factor);
		}
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(m - skip), (int)d, (int)n, 1, s[skip], TILE_K,
			v + j * r->kv_stride, (int)r->kv_stride, j > first ? 1 : 0, y + skip * r->y_stride, (int)r->y_stride);
	}
	for (size_t t = 0; t < m; t++)
		scale(d, y + t * r->y_stride, 1 / sum[t]);
}

void attention(const struct attention *a, size_t sequences, size_t n, size_t past,
	const struct attention_rows rows[sequences])
{
	size_t tiles = (n + TILE_Q - 1) / TILE_Q, heads = a->heads;
	size_t work = sequences * heads * n * (past + n) * a->head_dim;

	#pragma omp parallel for num_threads(threads) schedule(dynamic) collapse(3) if (work > FEW_PRODUCTS)
	for (size_t s = 0; s < sequences; s++)
		for (size_t head = 0; head < heads; head++)
			for (size_t t = 0; t < tiles; t++)
				tile(a, head, t * TILE_Q, least(TILE_Q, n - t * TILE_Q), past, &rows[s]);
}

struct rope rope_make(size_t positions, size_t half, const double frequency[half])
{
	struct rope r = { positions, half, xalloc(positions * half, sizeof(float)), xalloc(positions * half, sizeof(float)) };

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

void rope_turn(const struct rope *r, size_t position, size_t heads, float x[heads][2 * r->half])
{
	const float *c = r->cosine + position * r->half, *s = r->sine + position * r->half;

	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < r->half; i++) {
			float a = x[h][i], b = x[h][i + r->half];

			x[h][i] = a * c[i] - b * s[i];
			x[h][i + r->half] = b * c[i] + a * s[i];
		}
}
