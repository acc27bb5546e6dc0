/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * experts.h -- the mixture of experts of a block
 *
 *	p = softmax(router x); chosen: the k largest of p, of equal ones the first
 *	g_e = p_e / Σ_chosen p, or p_e where they are not normalized
 *	y += Σ_chosen g_e · down_e(act(gate_e x) · up_e x)
 *	y += sigmoid(shared_gate x) · shared(x), where there is a shared expert, which sees all tokens
 *
 * (Shazeer et al., 2017; Mixtral; Qwen2-MoE). The rows of each expert are gathered and go through it
 * together; then those of a token are added up expert after expert. So no result depends on the number of
 * threads.
 */
#ifndef FORWARD_EXPERTS_H
#define FORWARD_EXPERTS_H
#include <stddef.h>
#include <stdint.h>
#include "forward/batch.h"
#include "forward/observer.h"
#include "forward/projection.h"
#include "io/part.h"
#include "model/config.h"

struct experts {
	size_t n, block;		/* block: of the model */
	enum activation activation;
	struct projection (*of)[2];	/* [n]: gate and up, down */
};

/* Those of the stack's block `index`, none where its MLP is none; e: zeroed, or emptied. */
void experts_read(struct experts *e, const struct part *part, const struct config *c,
	const struct execution *execution, const struct stack *s, size_t index);
void experts_empty(struct experts *e);	/* keeps the memory of the weights */
void experts_free(struct experts *e);
struct projection *experts_projection(const struct experts *e, enum projection_name name, size_t expert);

/* Which experts the tokens of a piece go to. */
struct routing {
	size_t experts, chosen, hidden;
	int32_t *choice;		/* [tokens][chosen] experts of each, ascending */
	float *share;			/* [tokens][chosen] */
	size_t *place;			/* [tokens][chosen] rows of the same; an expert's stand together */
	size_t *start;			/* [experts + 1]: where the rows of each begin */
	int32_t *token;			/* [tokens · chosen] of each row, ascending in each expert */
	uint8_t *modality;		/* likewise */
	struct workspace rows;		/* [tokens · chosen][hidden] */
};
struct routing routing_make(const struct stack *s, size_t tokens);
void routing_free(struct routing *r);
float *routing_rows(struct routing *r, size_t m);	/* memory for a piece of m tokens */
/* The experts of m tokens from the router's logits, a row of them every `stride` numbers. */
void routing_choose(struct routing *r, const struct stack *s, size_t m, size_t stride, const float *logits);
/* y[m][hidden] += sigmoid(logit) · x. */
void routing_add_shared(const struct stack *s, size_t m, float *y, const float *x, size_t stride,
	const float *logit);

/*
 * y[m][hidden] += what the experts make of x, rows [first, first + m) of the batch; an observer expects all.
 * to: a projection of theirs, whose inputs are shown, and y stays; PROJECTIONS: none, y is wanted.
 */
void experts_apply(const struct experts *e, struct routing *r, const struct batch *batch, size_t first,
	size_t m, float *y, const float *x, enum projection_name to, const struct observer *observer);
#endif
