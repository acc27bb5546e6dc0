/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection.h -- linear layers that share an input
 *
 * Their outputs lie next to each other in one row. The table of products chooses how each layer is multiplied
 * (product/product.h). Layers with the same rounding of inputs share the prepared input. Layers whose weights
 * can be one matrix are one product.
 *
 * On a device, inputs, outputs and the workspace are in its memory. For observers see forward/observer.h.
 *
 * Calling sequence: projection_read() on a zeroed struct; projection_apply() for each batch;
 * projection_empty() before other layers are read; projection_free(). Bad members of a layer are fatal
 * errors.
 */
#ifndef FORWARD_PROJECTION_H
#define FORWARD_PROJECTION_H
#include <stdbool.h>
#include <stddef.h>
#include "device/device.h"
#include "forward/batch.h"
#include "forward/execution.h"
#include "forward/observer.h"
#include "forward/online.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer.h"
#include "product/product.h"

struct device_projection;
struct projection {
	enum projection_name name;
	size_t block;			/* number in the model */
	enum compute_type type;
	size_t rows;			/* most rows of a product; 0: many */
	size_t in, out, layers;
	struct layer layer[LINEARS];
	size_t at[LINEARS];		/* first output of each layer */
	struct product product[LINEARS];
	size_t bytes;			/* of the prepared weights of all layers, in order */
	void *memory;			/* the prepared weights */
	float *bias;			/* [out] or NULL */
	struct online online;		/* rotation of inputs */
	struct online after[LINEARS];	/* of each layer's outputs; its inverse precedes the bias */
	const struct device *device;	/* where it is multiplied; NULL: the processor */
	struct device_projection *on_device;
};

/* Reads the layers of a projection of block `index` of a stack; none if the block has no such projection. The
 * part must outlive the layers. s: zeroed, or emptied. expert: its number, or 0 outside of experts. */
void projection_read(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert);
/* projection_read() in two steps: layers, then products. Threads may prepare several projections at once. */
void projection_layers(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert);
void projection_prepare(struct projection *s);
/* Reads the embedding of patches of the model's encoder. */
void projection_patch(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e);
/* Frees the layers. The memory of weights and the Hadamard matrices are kept for the next layers. */
void projection_empty(struct projection *s);
void projection_free(struct projection *s);
/* Replaces layer i and its rotations. All layers share the rotation of inputs: if it changes, all are
 * replaced before the next product. */
void projection_set(struct projection *s, size_t i, const struct linear *l);

/* Memory that grows on demand, without keeping its contents. */
struct workspace {
	size_t bytes;
	void *memory;
	const struct device *device;	/* whose memory it is; NULL: the processor's */
};
void *workspace_of(struct workspace *w, size_t bytes);
void workspace_free(struct workspace *w);

/* Returns the m rows of input that an observer receives: x, or its rotation in the workspace. */
const float *projection_observed(const struct projection *s, size_t m, const float *x,
	struct workspace *workspace);
/* Calls the observer with the input of rows [first, first + m), as projection_apply() does, and multiplies
 * nothing. */
void projection_observe(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	const float *x, struct workspace *workspace, const struct observer *observer);
/*
 * y[m][stride] = x wᵀ + bias, or y += with `add`, for rows [first, first + m) of the batch. The observer
 * receives the input, and it is rotated if the layers specify it, rounded once for each distinct input scale,
 * and multiplied. Split columns are added. The inverse of a layer's rotation of outputs is applied to its
 * outputs.
 */
void projection_apply(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	size_t stride, float y[m][stride], const float x[m][s->in], struct workspace *workspace,
	const struct observer *observer, bool add);
#endif
