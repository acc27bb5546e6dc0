/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * experts.h -- the mixture of experts of a block
 *
 *	p = softmax(router x); chosen: the k largest of p (ties: lowest index)
 *	g_e = p_e / Σ_chosen p, or p_e without normalization
 *	y += Σ_chosen g_e · down_e(act(gate_e x) · up_e x)
 *	y += sigmoid(shared_gate x) · shared(x), for all tokens, if a shared expert exists
 *
 * (Shazeer et al., 2017; Mixtral; Qwen2-MoE). The rows of each expert are gathered and multiplied together.
 * Then the outputs for a token are added in the order of its experts. So no result depends on the number of
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
	size_t n, block;		/* block: its number in the model */
	enum activation activation;
	struct projection (*of)[2];	/* [n]: gate and up, down */
};

/* Reads the experts of block `index` of a stack; none if its MLP is not a mixture. e: zeroed, or emptied. */
void experts_read(struct experts *e, const struct part *part, const struct config *c,
	const struct execution *execution, const struct stack *s, size_t index);
void experts_empty(struct experts *e);	/* keeps the memory of the weights */
void experts_free(struct experts *e);
struct projection *experts_projection(const struct experts *e, enum projection_name name, size_t expert);

/* The experts of some tokens. */
struct routing {
	size_t experts, chosen, hidden;
	int32_t *choice;		/* [tokens][chosen] experts of each token, ascending */
	float *weight;			/* [tokens][chosen] g_e of each */
	size_t *place;			/* [tokens][chosen] row of each in `rows` */
	size_t *start;			/* [experts + 1] first row of each expert */
	int32_t *token;			/* [tokens · chosen] token of each row, ascending in each expert */
	uint8_t *modality;		/* [tokens · chosen] modality of each row */
	struct workspace rows;		/* [tokens · chosen][hidden] inputs, then outputs of experts */
};
struct routing routing_make(const struct stack *s, size_t tokens);
void routing_free(struct routing *r);
float *routing_rows(struct routing *r, size_t m);	/* `rows`, large enough for m tokens */
/* Chooses the experts of m tokens. The router's logits of a token begin every `stride` numbers. */
void routing_choose(struct routing *r, const struct stack *s, size_t m, size_t stride, const float *logits);
/* y[m][hidden] += sigmoid(logit) · x, with one logit every `stride` numbers. */
void routing_add_shared(const struct stack *s, size_t m, float *y, const float *x, size_t stride,
	const float *logit);

/*
 * y[m][hidden] += outputs of the experts for x, rows [first, first + m) of the batch. With an observer, these
 * must be all rows. to = PROJECTIONS: computes y. to = a projection of the experts: the observer receives its
 * inputs, and y is not changed.
 */
void experts_apply(const struct experts *e, struct routing *r, const struct batch *batch, size_t first,
	size_t m, float *y, const float *x, enum projection_name to, const struct observer *observer);
#endif
