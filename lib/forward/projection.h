/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection.h -- linear layers that share an input, side by side
 *
 * Their outputs stand in one row. What multiplies them is the table of products' choice
 * (product/product.h); layers that round the input alike share what is made of it, and where their
 * weights can stand in one matrix they are one product.
 */
#ifndef FORWARD_PROJECTION_H
#define FORWARD_PROJECTION_H
#include <stdbool.h>
#include <stddef.h>
#include "forward/batch.h"
#include "forward/execution.h"
#include "forward/observer.h"
#include "forward/online.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer.h"
#include "product/product.h"

struct projection {
	enum projection_name name;
	size_t block;			/* of the model */
	enum compute_type type;
	size_t rows;			/* of a product, at most; 0: many */
	size_t in, out, layers;
	struct layer layer[LINEARS];
	size_t at[LINEARS];		/* first output of each layer */
	struct product product[LINEARS];
	size_t bytes;			/* of the prepared weights, one after the other */
	void *memory;			/* that they stand in */
	float *bias;			/* [out] or NULL */
	struct online online;		/* that inputs pass first */
	struct online after[LINEARS];	/* whose inverse the outputs of each layer pass, before the bias */
};

/* The layers of a projection of the stack's block `index`, none where the block has no such; the part must
 * stay as long as they do. s: zeroed, or emptied; expert: whose, 0 where there is one of the kind. */
void projection_read(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert);
/* In two steps: the layers, then their products, which threads may do for several projections at once. */
void projection_layers(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert);
void projection_prepare(struct projection *s);
/* The embedding of patches, of the model's encoder. */
void projection_patch(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e);
/* Keeps the memory of the weights, and the Hadamard matrices, for the next layers. */
void projection_empty(struct projection *s);
void projection_free(struct projection *s);
/* Another layer in the place of layer i, with its rotation of outputs; that of inputs, which all layers
 * share, must be the same. */
void projection_set(struct projection *s, size_t i, const struct linear *l);

/* Memory that grows as it is needed, and then holds nothing of before; free() it. */
struct workspace {
	size_t bytes;
	void *memory;
};
void *workspace_of(struct workspace *w, size_t bytes);

/* What of m rows of input is observed, rounded and multiplied: x, or in the workspace what the layers'
 * rotation of inputs makes of it. */
const float *projection_rotate(const struct projection *s, size_t m, const float *x,
	struct workspace *workspace);
/* Shows the input of all rows to the observer, as projection_apply() does first. */
void projection_show(const struct projection *s, const struct batch *batch, const float *x,
	struct workspace *workspace, const struct observer *observer);
/*
 * y[m][stride] = x wᵀ + bias, or y += with `add`, of rows [first, first + m) of the batch. The input is
 * rotated where the layers say so, is observed, rounded once for each distinct input scale, and multiplied;
 * columns taken out of a layer are added. Outputs pass the inverse of the layer's own rotation of outputs. An
 * observer expects all rows.
 */
void projection_apply(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	size_t stride, float y[m][stride], const float x[m][s->in], struct workspace *workspace,
	const struct observer *observer, bool add);
#endif
