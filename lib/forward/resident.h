/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * resident.h -- a whole language model in memory, stepped token by token behind a cache
 */
#ifndef FORWARD_RESIDENT_H
#define FORWARD_RESIDENT_H
#include <stddef.h>
#include <stdint.h>
#include "forward/block.h"
#include "forward/head.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer.h"

struct resident {
	const struct config *config;
	const struct execution *execution;
	struct layer embedding, position;	/* position.path NULL: none */
	struct block **block;			/* [blocks] of the language model */
	struct head head;
};

/* The part holds the whole tree and must stay as long as the model does. */
struct resident resident_open(const struct part *part, const struct config *c, const struct execution *e);
void resident_close(struct resident *r);

/*
 * Logits after more ids of each sequence, the last position only; Sequence s of
 * the batch stands in the cache's place s, behind sequence[s].past tokens there:
 * past + length ≤ cache->capacity, sequences ≤ cache->sequences, rows ≤ w->tokens.
 */
void resident_step(const struct resident *r, struct work *w, struct cache *cache, const struct batch *batch,
	float logits[batch->sequences][r->config->vocab], const int32_t id[batch->rows]);
#endif
