/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * block.h -- a block of a transformer in memory
 *
 *	serial		x += output(attention(qkv(norm(x)))), then x += mlp(norm(x))
 *	parallel	x += output(attention(qkv(norm(x)))) + mlp(norm(x))
 *	norms last	x = norm(x + output(attention(qkv(x)))), then x = norm(x + mlp(x))
 *	mlp(x)		down(act(gate x) · up x), or down(act(up x)), or a mixture of such (forward/experts.h)
 *
 * with norms of queries and keys, and of what a branch adds, where the architecture's
 * row has them (model/config.h). Rows of x are tokens. A block holds the effective
 * weights of its linear layers in the type that the model computes in.
 */
#ifndef FORWARD_BLOCK_H
#define FORWARD_BLOCK_H
#include <stddef.h>
#include <stdint.h>
#include "forward/attention.h"
#include "forward/batch.h"
#include "forward/cache.h"
#include "forward/execution.h"
#include "forward/experts.h"
#include "forward/norm.h"
#include "forward/projection.h"
#include "forward/rotary.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer_ref.h"

struct block {
	const struct config *config;		/* of the model */
	const struct execution *execution;
	const struct stack *stack;
	size_t index;				/* in the stack */
	struct norm norm[NORM_PLACES];		/* n = 0: none there */
	struct norm head_norm[2];		/* of queries, of keys */
	struct online hadamard;		/* of order n: parts x of each query and key become x H/√n */
	struct projection projection[PROJECTIONS];	/* those of experts are empty: they stand in */
	struct experts experts;
};

/* Block `index` of a stack; the part must stay as long as the block does. */
struct block *block_read(const struct part *part, const struct config *c, const struct execution *e,
	const struct stack *s, size_t index);
void block_free(struct block *b);
/* Another block of the same model in its place and, as far as it fits, in its memory. */
void block_next(struct block *b, const struct part *part, const struct stack *s, size_t index);
/* Another layer of the same shape in its place: what a quantizer made of it. Dies if it has another
 * rotation of inputs: the input was rotated, and calibrated, for all layers that share it. */
void block_replace(struct block *b, const struct layer_ref *layer, const struct linear *l);

/* Workspace of a stack's block for so many tokens at once, and the rotary tables for so many positions. */
struct work {
	const struct stack *stack;
	size_t tokens;
	size_t piece;			/* of them, through the MLP together where no observer expects all */
	struct rotary rotary;
	float *normed, *wide, *middle;
	float *second;			/* [tokens][hidden] MLP input of a parallel block with its own norm */
	float *branch;			/* [tokens][hidden] what a branch adds, where it is normed before */
	int32_t *position;
	struct workspace input;
	struct routing routing;
	struct attention_rows *rows;
};
struct work work_make(const struct stack *s, size_t tokens, size_t piece, size_t positions);
void work_free(struct work *w);

/*
 * x becomes the block's output. With a cache, sequence s of the batch sees the
 * sequence[s].past rows of its place there, and fills the next ones; the batch then has no index of its own.
 * The batch's rows must not exceed the tokens of work_make(),
 * with an observer its piece.
 */
void block_forward(const struct block *b, struct work *w, const struct batch *batch,
	float x[batch->rows][b->stack->hidden], struct cache *cache, const struct observer *observer);

/*
 * A block in stages, between which layers are replaced: each ends at the input of projection `to`, which the
 * observer sees and nothing multiplies; with PROJECTIONS at the block's output.
 *	serial		until attention has been added x stays the block's input, and each stage begins
 *			there; then x is the stream between attention and MLP, and stages begin with
 *			the MLP
 *	parallel	x stays the block's input to the end: stages up to the inputs of the MLP do not need
 *			attention, and the last runs both
 * The first stage begins at PROJECTION_QKV, the others where block_resume() says. Their ends ascend.
 */
struct stage { enum projection_name from, to; };
void block_stage(const struct block *b, struct work *w, const struct batch *batch,
	float x[batch->rows][b->stack->hidden], struct stage stage, const struct observer *observer);
/*
 * Of a projector: y[rows][out] = mlp(norm(x)), `merged` rows of x side by side for each. Stages are those of
 * block_stage(); y is written by the one that ends at PROJECTIONS.
 */
void block_project(const struct block *b, struct work *w, const struct batch *batch, float y[],
	const float x[], struct stage stage, const struct observer *observer);
enum projection_name block_resume(const struct stack *s, struct stage done);
#endif
