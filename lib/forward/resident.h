/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * resident.h -- a whole language model in memory, run token by token with a KV cache
 *
 * Calling sequence: resident_open(); work_make() and cache_make(); resident_step() for each step;
 * resident_close().
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
	struct layer embedding, position;	/* position.path NULL: no learned positions */
	struct block **block;			/* [blocks] of the language model */
	struct head head;
};

/* The part contains the whole model and must outlive the result. Fatal error: it is a shard, or has a block
 * beyond the last one. */
struct resident resident_open(const struct part *part, const struct config *c, const struct execution *e);
void resident_close(struct resident *r);

/*
 * Appends ids to each sequence and computes the logits of its last position. Sequence s of the batch uses
 * its slot of the cache, which has sequence[s].past tokens: past + length ≤ cache->capacity, sequences ≤
 * cache->sequences, rows ≤ w->tokens. If the rows of the batch are apart, logits have room for
 * resident_rows() sequences. logits NULL: they are not computed.
 *
 * feature: the embedding of each row that belongs to an image, NULL for the others; NULL: no row does.
 */
void resident_step(const struct resident *r, struct work *w, struct cache *cache, const struct batch *batch,
	float logits[batch->sequences][r->config->vocab], const int32_t id[batch->rows],
	const float *const feature[]);
/* sequences, and further ones so that no product has fewer than PRODUCT_APART rows */
size_t resident_rows(size_t sequences);
#endif
