/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attention.c -- causal attention of grouped heads, and rotary positions; see attention.h */
#include "forward/attention.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/attention_tile.h"

enum { COLUMNS = 768 };			/* queries, one for each head, that a thread takes at once */
enum { FEW_PRODUCTS = 1 << 20 };	/* threads only for more than that */

/* Tiles of all sequences are taken the last first: they see the most keys. */
static void run_tile(const struct attention *a, const struct attention_rows *r, size_t head, size_t tile,
	size_t queries, void *workspace)
{
	const size_t tiles = ceil_div(r->n, queries), i = tile < tiles ? (tiles - 1 - tile) * queries : r->n;

	if (i < r->n)
		attention_tile(a, r, head, i, min(queries, r->n - i), workspace);
}

void attention(const struct attention *a, size_t sequences, const struct attention_rows rows[sequences])
{
	const size_t group = a->heads / a->kv_heads, queries = group < COLUMNS ? COLUMNS / group : 1;
	size_t longest = 0, products = 0;

	for (size_t s = 0; s < sequences; s++) {
		longest = rows[s].n > longest ? rows[s].n : longest;
		products += a->heads * rows[s].n * (rows[s].keys[0].n + rows[s].keys[1].n) * a->head_dim;
	}
	#pragma omp parallel num_threads(threads) if (products > FEW_PRODUCTS)
	{
		void *workspace = xalloc(attention_tile_workspace(a, min(queries, longest)), 1);

		#pragma omp for schedule(dynamic) collapse(3)
		for (size_t t = 0; t < ceil_div(longest, queries); t++)
			for (size_t s = 0; s < sequences; s++)
				for (size_t head = 0; head < a->kv_heads; head++)
					run_tile(a, &rows[s], head, t, queries, workspace);
		free(workspace);
	}
}

struct rope rope_make(size_t positions, size_t half, const double frequency[half], double scale,
	bool interleaved)
{
	struct rope r = { positions, half, interleaved, xalloc(positions * half, sizeof(float)),
		xalloc(positions * half, sizeof(float)), NULL };

	for (size_t p = 0; p < positions; p++)
		for (size_t i = 0; i < half; i++) {
			r.cosine[p * half + i] = (float)(scale * cos((double)p * frequency[i]));
			r.sine[p * half + i] = (float)(scale * sin((double)p * frequency[i]));
		}
	return r;
}

void rope_free(struct rope *r)
{
	free(r->cosine);
	free(r->sine);
	*r = (struct rope){ 0 };
}

void rope_rotate(const struct rope *r, const int32_t position[], size_t heads, size_t head_dim,
	float x[heads][head_dim])
{
	float cosine[r->half], sine[r->half];
	const float *c = r->cosine + (size_t)position[0] * r->half;
	const float *s = r->sine + (size_t)position[0] * r->half;
	const size_t step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : r->half;

	if (r->axis) {
		for (size_t i = 0; i < r->half; i++) {
			const size_t at = (size_t)position[r->axis[i]] * r->half + i;

			cosine[i] = r->cosine[at];
			sine[i] = r->sine[at];
		}
		c = cosine, s = sine;
	}
	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < r->half; i++) {
			float a = x[h][i * step], b = x[h][i * step + apart];

			x[h][i * step] = a * c[i] - b * s[i];
			x[h][i * step + apart] = b * c[i] + a * s[i];
		}
}
