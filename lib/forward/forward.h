/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * forward.h -- runs a model over all windows, part by part as it streams in
 *
 * Calling sequence: forward_open(); forward_part() for each part until it returns true; then logits_score(),
 * logits_tiles() (forward/logits.h); forward_close(). A part that is missing or out of order
 * is a fatal error.
 *
 * A part (embeddings, a block) is loaded once, and all windows pass it. Only the hidden states of all windows
 * remain afterwards. Each thread takes a chunk of windows through a block; an observer receives inputs of
 * groups of chunks (forward/collect.h). All threads work on one chunk if there are fewer chunks than threads,
 * if the chunks of an observer would take too much memory, and for an observer of a mixture of experts, whose
 * results depend on the order of chunks. Products are cut into the same tiles in both cases.
 */
#ifndef FORWARD_FORWARD_H
#define FORWARD_FORWARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "forward/block.h"
#include "forward/collect.h"
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
	const char *name;		/* file of the model, for messages */
	struct hidden hidden;		/* [rows of the windows][hidden] of the language model */
	struct images *images;		/* NULL: the windows have none */
	size_t works;
	struct work *work;		/* [works], one a thread */
	struct block *block;		/* the current block; the next one reuses its memory */
	struct collection collection;	/* inputs for an observer */
	const struct linear *embedding;	/* used instead of the embedding of the part; NULL: not */
	bool embedded, placed, normed;
	size_t blocks;			/* number of finished blocks */
};

/* memory: bytes of hidden states that are kept in memory. config, execution and windows must outlive the
 * result. A token's position beyond the model's is a fatal error, and so are images for a model of text.
 * Without images, the encoder and the projector are skipped. */
struct forward *forward_open(const struct config *c, const struct execution *e, const struct windows *w,
	size_t memory);
void forward_close(struct forward *f);

/*
 * Runs the embeddings and blocks of a part; parts must come in order. observer may be NULL. Returns whether
 * the part has the head; all blocks must be finished by then.
 */
bool forward_part(struct forward *f, const struct part *part, const struct observer *observer);
/*
 * forward_part(), but the caller runs the blocks. run() is called for each block, which is f->block, and must
 * take all windows through it, by one forward_stage() or by several (block_stage()). The observer receives
 * the inputs of layers outside of blocks.
 */
bool forward_blocks(struct forward *f, const struct part *part, const struct observer *observer,
	void (*run)(void *arg, struct forward *f), void *arg);
void forward_stage(struct forward *f, struct stage stage, const struct observer *observer);
/* forward_stage() of n models of the same sizes, on the same windows and on the processor: each group of
 * windows passes the block of every model, in their order, before the next group. */
void forward_stages(size_t n, struct forward *const f[n], struct stage stage,
	const struct observer *const observer[n]);
/* Runs only the encoder and the projector, up to the features of all images, f->images->feature. The part
 * contains the whole model, and the windows have images. */
void forward_features(struct forward *f, const struct part *part);
/* Applies the final norm: hidden states become inputs of the output layer. A second call has no effect.
 * logits_score() and logits_tiles() call it. */
void forward_head(struct forward *f, const struct head *h, const struct observer *observer);
#endif
