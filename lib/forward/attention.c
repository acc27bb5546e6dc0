/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attention.c -- causal attention of grouped heads; see attention.h */
#include "forward/attention.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/attention_private.h"

enum { COLUMNS = 768 };			/* queries times heads that a thread computes at once */
enum { FEW_PRODUCTS = 1 << 20 };	/* up to this number of products one thread is faster */

/* Tiles of a sequence run from last to first, since the last ones have the most keys. */
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
