/* SPDX-License-Identifier: GPL-3.0-or-later */
/* embed.c -- see embed.h */
#include "forward/embed.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/thread.h"
#include "num/half.h"

enum { ROWS = 16, FEW = 1 << 16 };	/* FEW: numbers, up to which one thread is faster */

/* transformers stores the scale in the type of its weights. */
static float embedding_scale(const struct config *c, const struct execution *e)
{
	float scale = (float)c->embedding_scale;
	uint16_t narrow;

	if (e->compute_type == COMPUTE_BF16) {
		half_narrow(1, &narrow, &scale, HALF_BF16);
		half_widen(1, &scale, &narrow, HALF_BF16);
	}
	return scale;
}

void embed_tokens(const struct config *c, const struct execution *e, const struct layer *embedding,
	size_t n, float x[n][embedding->linear.in], const int32_t id[n])
{
	const struct linear *l = &embedding->linear;
	const float scale = embedding_scale(c, e);

	for (size_t i = 0; i < n; i++)
		if (id[i] < 0 || (size_t)id[i] >= l->out)
			die("%s: %s: token id %d is not in the vocabulary of %zu", embedding->file,
				embedding->path, id[i], l->out);
	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < n; i++) {
		linear_weight(l, (size_t)id[i], 1, &x[i]);
		for (size_t j = 0; c->embedding_scale != 1 && j < l->in; j++)
			x[i][j] *= scale;
	}
}

void embed_positions(const struct layer *position, size_t offset, const struct batch *batch,
	float x[batch->rows][position->linear.in])
{
	const struct linear *l = &position->linear;
	int32_t *own = xalloc(batch->rows, sizeof *own);
	const int32_t *at = batch_positions(batch, own);
	size_t last = 0;

	for (size_t i = 0; i < batch->rows; i++)
		last = (size_t)at[i] > last ? (size_t)at[i] : last;
	if (last + offset >= l->out)
		die("%s: %s: has %zu positions, the context needs %zu: use a smaller --ctx", position->file,
			position->path, l->out > offset ? l->out - offset : 0, last + 1);
	#pragma omp parallel num_threads(threads) if (batch->rows * l->in > FEW)
	{
		float *row = xalloc(l->in, sizeof *row);

		#pragma omp for schedule(static, ROWS)
		for (size_t i = 0; i < batch->rows; i++) {
			linear_weight(l, (size_t)at[i] + offset, 1, (float (*)[l->in])row);
			for (size_t j = 0; j < l->in; j++)
				x[i][j] += row[j];
		}
		free(row);
	}
	free(own);
}
