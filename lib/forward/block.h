/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * block.h -- a block of a transformer in memory
 *
 *	x += output(attention(input(norm(x))))
 *	x += down(act(gate) · up), or down(act(up)), of norm(x)
 *
 * Rows of x are tokens. It holds the effective weights of its linear layers in
 * the type that the model computes in.
 */
#ifndef FORWARD_BLOCK_H
#define FORWARD_BLOCK_H
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"
#include "forward/attention.h"
#include "model/config.h"
#include "forward/norm.h"
#include "forward/projection.h"

struct block {
	const struct config *config;
	size_t index;
	struct norm norm[2];
	struct projection projection[PROJECTIONS];
};

/* Block `index` of an image; the image must stay as long as the block does. */
struct block *block_read(const struct image *image, const struct config *c, size_t index);
void block_free(struct block *b);
/* Another block of the same model in its place and, as far as it fits, in its memory. */
void block_next(struct block *b, const struct image *image, size_t index);
/* Another layer in the place of the one at `path`, of the same shape: what a quantizer made of it. */
void block_replace(struct block *b, const char *path, const struct linear *l);

/* Keys (turned already) and values of all blocks, [blocks][sequences][capacity][width]. */
struct cache {
	size_t sequences, capacity, width;
	size_t past;			/* positions that are filled; whoever steps the model adds */
	float *k, *v;
};
struct cache cache_make(const struct config *c, size_t sequences, size_t capacity);
void cache_free(struct cache *k);

/* Work space of a block for so many tokens at once, and the rotary table for so many positions. */
struct work {
	size_t tokens;
	size_t piece;			/* of them, that go through the MLP together, where no observer wants all */
	struct rope rope;
	float *normed, *wide, *middle;
	struct workspace input;
	struct sequence *sequence;	/* [tokens] */
	struct attention_rows *rows;
};
struct work work_make(const struct config *c, size_t tokens, size_t piece, size_t positions);
void work_free(struct work *w);

/*
 * x becomes the block's output: `sequences` of n tokens each, from position 0,
 * or behind cache->past positions (cache NULL: none), whose keys and values it
 * then fills. sequences · n must not exceed the tokens of work_make(), with an
 * observer its piece.
 */
void block_forward(const struct block *b, struct work *w, size_t sequences, size_t n,
	float x[sequences * n][b->config->hidden], struct cache *cache, const struct observer *observer);

#endif
