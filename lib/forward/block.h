/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * block.h -- a block of a transformer in memory
 *
 *	serial		x += output(attention(qkv(norm(x)))), then x += mlp(norm(x))
 *	parallel	x += output(attention(qkv(norm(x)))) + mlp(norm(x))
 *	norms last	x = norm(x + output(attention(qkv(x)))), then x = norm(x + mlp(x))
 *	mlp(x)		down(act(gate x) · up x), or down(act(up x)), or a mixture of such (forward/experts.h)
 *
 * Queries, keys and the outputs of residual branches are normed if the architecture's row has these norms
 * (model/config.h). Rows of x are tokens. A block holds the effective weights of its linear layers in the
 * type that the model computes in.
 *
 * Calling sequence: block_read() and work_make(); block_forward() or block_stage() for each batch;
 * block_next() for the next block; block_free() and work_free(). Bad members of a layer or norm are fatal
 * errors.
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
	struct norm norm[NORM_POSITIONS];	/* n = 0: absent */
	struct norm head_norm[2];		/* of queries, of keys */
	struct online hadamard;		/* of order n: every n channels x of queries and keys become x H/√n */
	struct projection projection[PROJECTIONS];	/* empty for experts, which are in the next member */
	struct experts experts;
};

/* Reads block `index` of a stack. The part must outlive the block. */
struct block *block_read(const struct part *part, const struct config *c, const struct execution *e,
	const struct stack *s, size_t index);
void block_free(struct block *b);
/* Replaces the block by another block of the same model, and reuses its memory where possible. */
void block_next(struct block *b, const struct part *part, const struct stack *s, size_t index);
/* Replaces a layer by one of the same shape, such as its quantized form. Another rotation of inputs is a
 * fatal error: the input was rotated, and calibrated, for all layers that share it. */
void block_replace(struct block *b, const struct layer_ref *layer, const struct linear *l);

/* Workspace of the blocks of a stack for `tokens` tokens at once, with rotary tables for `positions`
 * positions. */
struct work {
	const struct stack *stack;
	size_t tokens;
	size_t piece;			/* tokens that pass the MLP at once; experts with an observer: all */
	const struct device *device;	/* whose memory it is; NULL: the processor's */
	struct rotary rotary;
	float *normed, *wide, *middle;
	float *second;			/* [tokens][hidden] MLP input of a parallel block with its own norm */
	float *branch;			/* [tokens][hidden] output of a residual branch, before its norm */
	float *hidden;			/* [tokens][hidden] on a device: of a chunk */
	int32_t *position;
	int32_t *place;			/* on a device: [tokens][AXES] positions, [tokens] indices */
	struct device_rotation rotation;	/* on a device: of queries and keys */
	struct workspace input;
	struct routing routing;
	struct attention_rows *rows;
};
struct work work_make(const struct stack *s, size_t tokens, size_t piece, size_t positions);
/* The same in the memory of a device; NULL: of the processor. */
struct work work_on(const struct device *d, const struct stack *s, size_t tokens, size_t piece,
	size_t positions);
void work_free(struct work *w);
/* Bytes of its largest members: normed, wide and middle. */
size_t work_size(const struct stack *s, size_t tokens, size_t piece);

/*
 * x becomes the block's output. With a cache, sequence s of the batch attends to the sequence[s].past rows of
 * slot s of the cache, and its keys and values are appended there; such a batch must not have an index. The
 * batch has at most as many rows as the `tokens` of work_make().
 */
void block_forward(const struct block *b, struct work *w, const struct batch *batch,
	float x[batch->rows][b->stack->hidden], struct cache *cache, const struct observer *observer);

/*
 * Runs a stage of a block; between stages, layers are replaced. A stage ends at the input of projection `to`:
 * the observer receives that input, and it is not multiplied. With PROJECTIONS the stage ends at the block's
 * output.
 *	serial		x is the block's input until attention has been added, and each stage begins
 *			there. Afterwards x is the stream between attention and MLP, and stages begin with
 *			the MLP.
 *	parallel	x is the block's input until the last stage. Stages up to the inputs of the MLP skip
 *			attention; the last stage runs both.
 * The first stage begins at PROJECTION_QKV, each later one at block_resume() of the stage before it. Their
 * ends must ascend.
 */
struct stage { enum projection_name from, to; };
void block_stage(const struct block *b, struct work *w, const struct batch *batch,
	float x[batch->rows][b->stack->hidden], struct stage stage, const struct observer *observer);
/*
 * Runs a stage of a projector: y[rows][out] = mlp(norm(x)), or down(norm(x)) if it is one layer. A row of
 * the input is `merged` consecutive rows of x. Stages are as in block_stage(); the stage that ends at
 * PROJECTIONS writes y.
 */
void block_project(const struct block *b, struct work *w, const struct batch *batch, float y[],
	const float x[], struct stage stage, const struct observer *observer);
enum projection_name block_resume(const struct stack *s, struct stage done);
#endif
