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
/* The hidden states become the inputs of the output layer, once; logits_score() does it too. */
void forward_head(struct forward *f, const struct head *h, const struct observer *observer);
#endif
