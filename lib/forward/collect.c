/* SPDX-License-Identifier: GPL-3.0-or-later */
/* collect.c -- see collect.h */
#include "forward/collect.h"
#include <string.h>

/* Whether a run up to projection `to` collects inputs of projection p: with PROJECTIONS all, else only `to`.
 */
static bool collects(const struct block *b, enum projection_name to, int p)
{
	return b->projection[p].layers && (to == PROJECTIONS || to == (enum projection_name)p);
}

size_t collection_size(const struct block *b, enum projection_name to)
{
	size_t n = 0;

	for (int p = 0; p < PROJECTIONS; p++)
		n += collects(b, to, p) ? b->projection[p].in : 0;
	return n * sizeof(float);
}

void collection_begin(struct collection *g, const struct block *b, enum projection_name to, size_t rows)
{
	float *next = workspace_of(&g->memory, rows * collection_size(b, to));

	g->block = b;
	memset(g->seen, 0, sizeof g->seen);
	for (int p = 0; p < PROJECTIONS; p++) {
		g->input[p] = next;
		next += collects(b, to, p) ? rows * b->projection[p].in : 0;
	}
}

static void copy_input(void *arg, size_t block, enum projection_name p, const struct batch *batch,
	size_t first, size_t rows, size_t in, const float *x)
{
	const struct collection_chunk *c = arg;

	(void)block, (void)batch;
	memcpy(c->group->input[p] + (c->first + first) * in, x, rows * in * sizeof *x);
	__atomic_store_n(&c->group->seen[p], true, __ATOMIC_RELAXED);
}

struct observer collection_of_chunk(struct collection_chunk *chunk, struct collection *g, size_t first)
{
	*chunk = (struct collection_chunk){ g, first };
	return (struct observer){ .on_input = copy_input, .arg = chunk };
}

void collection_show(const struct collection *g, const struct batch *batch, const struct observer *observer)
{
	for (int p = 0; p < PROJECTIONS; p++)
		if (g->seen[p])
			observe(observer, g->block->projection[p].block, (enum projection_name)p, batch, 0,
				batch->rows, g->block->projection[p].in, g->input[p]);
}
