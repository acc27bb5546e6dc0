/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * forward.h -- a model run over all windows, part by part as it streams in
 *
 * The hidden states of all windows are the work space: a part of the model
 * (embeddings, a block) is loaded once, all windows go through it, and it can
 * be forgotten. Each thread takes some windows at a time through a block; where
 * there are fewer such chunks than threads, and for an observer, who
 * expects windows in their order, all threads work at one. Products are cut into
 * the same tiles either way. The head ends it: negative log-likelihoods of the
 * targets, or logits.
 */
#ifndef FORWARD_FORWARD_H
#define FORWARD_FORWARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "forward/block.h"
#include "forward/execution.h"
#include "forward/head.h"
#include "forward/hidden.h"
#include "forward/images.h"
#include "forward/windows.h"
#include "io/part.h"
#include "model/config.h"

struct forward {
	const struct config *config;
	const struct execution *execution;
	const struct windows *windows;
	const char *name;		/* of the model's file, for messages */
	struct hidden hidden;		/* [rows of the windows][hidden] of the language model */
	struct images *images;		/* NULL: the windows have none */
	size_t works;
	struct work *work;		/* [works], one a thread */
	struct block *block;		/* at hand, until all are done: its memory serves the next */
	const struct linear *embedding;	/* in place of the part's; NULL: that one */
	bool embedded, placed, normed;
	size_t blocks;			/* done */
};

/* memory: bytes of hidden states that stay in memory. config, execution and windows must outlive it. Dies
 * where a token's position is beyond the model's, or where there are images and the model sees none. Without
 * images the encoder and the projector are passed over. */
struct forward *forward_open(const struct config *c, const struct execution *e, const struct windows *w,
	size_t memory);
void forward_close(struct forward *f);

/*
 * Runs whatever the part holds of embeddings and blocks; the parts must come
 * in order. observer may be NULL. Returns whether it also has the head, before
 * which all blocks must be done.
 */
bool forward_part(struct forward *f, const struct part *part, const struct observer *observer);
/*
 * The same with the blocks in the hands of the caller, the observer sees the rest: run() is called with each,
 * f->block, and takes all windows through it, by one forward_stage() or by several (block_stage()).
 */
bool forward_blocks(struct forward *f, const struct part *part, const struct observer *observer,
	void (*run)(void *arg, struct forward *f), void *arg);
void forward_stage(struct forward *f, struct stage stage, const struct observer *observer);
/* The hidden states become the inputs of the output layer, once; forward_score() does it too. */
void forward_head(struct forward *f, const struct head *h, const struct observer *observer);
/*
 * The logits of one or two models over the same windows, side by side, tile by
 * tile over the vocabulary that they share: visit() gets y[k][m][n] of model k, for rows
 * row .. row + m - 1 and entries first .. first + n - 1. Threads call it, for
 * different rows; the tiles of a row come in order, the same for any number of
 * threads.
 */
typedef void forward_visit(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[]);
void forward_tiles(size_t models, struct forward *const f[models], const struct head *const h[models],
	forward_visit *visit, void *arg);
/* -log p of each target, nats, window by window: log Σ exp(logits) - logit, sums in double. likeliest, or
 * NULL: whether no other token is likelier. */
void forward_score(struct forward *f, const struct head *h, double nll[f->windows->targets],
	uint8_t *likeliest);
/* All logits of rows first .. first + n - 1 of the windows. */
void forward_logits(struct forward *f, const struct head *h, size_t first, size_t n,
	float y[n][f->config->vocab]);

/* Embeddings of ids in x[n][hidden], scaled where the architecture has it so, by a factor of the type that
 * the model computes in; and the learned positions added where there are any,
 * position 0 behind so many rows. */
void embed_tokens(const struct config *c, const struct execution *e, const struct layer *embedding,
	size_t n, float x[n][embedding->linear.in], const int32_t id[n]);
void embed_positions(const struct layer *position, size_t offset, const struct batch *batch,
	float x[batch->rows][position->linear.in]);
#endif
