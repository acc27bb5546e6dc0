/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * block.h -- the pieces of a transformer in memory: norms, sites, blocks, head
 *
 * A block holds the effective weights of its linear layers in float, the
 * products of one site side by side, so that they are one product. Inputs are
 * rounded as the layers say (quant/linear.h). Rows of x are tokens.
 */
#ifndef MODEL_BLOCK_H
#define MODEL_BLOCK_H
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"
#include "model/attention.h"
#include "model/config.h"
#include "model/layer.h"

struct norm {
	enum norm_kind kind;		/* attribute `norm` of the group, else the architecture's */
	size_t n;
	double eps;
	float *gain, *shift;		/* shift may be NULL */
};
struct norm norm_read(const struct image *image, const char *path, const struct config *c);
void norm_free(struct norm *n);
void norm_apply(const struct norm *n, size_t m, float y[m][n->n], const float x[m][n->n]);	/* y may be x */

struct site {
	size_t in, out, layers;
	struct layer layer[LINEARS];
	size_t at[LINEARS];		/* first output of each layer */
	float *weight, *bias;		/* [out][in], [out] or NULL */
};

struct block {
	const struct config *config;
	size_t index;
	struct norm norm[2];
	struct site site[SITES];
};

/* Block `index` of an image; the image must stay as long as the block does. */
struct block *block_read(const struct image *image, const struct config *c, size_t index);
void block_free(struct block *b);
/* Another layer in the place of the one at `path`, of the same shape: what a quantizer made of it. */
void block_replace(struct block *b, const char *path, const struct linear *l);

/*
 * Sees the raw input of each shared site, before any rounding of activations:
 * x[sequences][tokens][in]. For the head, block is
 * the number of blocks. NULL where nobody looks.
 */
struct observer {
	void (*see)(void *arg, size_t block, enum site_name site, size_t sequences, size_t tokens, size_t in, const float *x);
	void *arg;
};

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
	struct rope rope;
	float *normed, *wide, *middle, *rounded;
	struct attention_rows *rows;
};
struct work work_make(const struct config *c, size_t tokens, size_t positions);
void work_free(struct work *w);

/*
 * x becomes the block's output: `sequences` of n tokens each, from position 0,
 * or behind cache->past positions (cache NULL: none), whose keys and values it
 * then fills. sequences · n ≤ w->tokens.
 */
void block_forward(const struct block *b, struct work *w, size_t sequences, size_t n,
	float x[sequences * n][b->config->hidden], struct cache *cache, const struct observer *observer);

/* Final norm and output layer. */
struct head {
	const struct config *config;
	struct norm norm;
	struct layer layer;
	float *weight;			/* [vocab][hidden], kept; NULL: rebuilt tile by tile */
};
/* keep: hold the effective weight, for many small products. */
struct head head_read(const struct image *image, const struct config *c, bool keep);
void head_free(struct head *h);
/* What the output layer multiplies: the norm of x, rounded as the layer says; seen before rounding. y may be x. */
void head_input(const struct head *h, size_t sequences, size_t n, float y[sequences * n][h->norm.n],
	const float x[sequences * n][h->norm.n], const struct observer *observer);
/* Effective weight of the vocabulary's entries first .. first + n - 1: a view, or rebuilt in `own` [n][hidden]. */
const float *head_weight(const struct head *h, size_t first, size_t n, float *own);
/* Their logits from head_input()'s rows and head_weight()'s weight. */
void head_logits(const struct head *h, size_t m, size_t first, size_t n, float y[m][n], const float x[m][h->norm.n],
	const float w[n][h->norm.n]);
#endif
