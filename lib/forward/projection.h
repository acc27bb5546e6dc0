/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection.h -- linear layers that share an input, side by side
 *
 * Their outputs stand in one row, and in f32 and int16 their weights in one
 * matrix, so that they are one product. Inputs are rounded as the layers say
 * (quant/linear.h). Rows of x are tokens. Packed weights are multiplied as they
 * are where config->few says that products have few columns.
 */
#ifndef FORWARD_PROJECTION_H
#define FORWARD_PROJECTION_H
#include <stdbool.h>
#include <stddef.h>
#include "io/image.h"
#include "model/config.h"
#include "model/layer.h"
#include "quant/product.h"

struct projection {
	enum compute_type type;
	bool few;
	size_t in, out, layers;
	struct layer layer[LINEARS];
	size_t at[LINEARS];		/* first output of each layer */
	bool packed[LINEARS];		/* multiplied as it is, by product[] */
	struct product product[LINEARS];
	size_t bytes;			/* of the weights */
	void *memory;			/* that they stand in */
	void *weight[LINEARS];		/* of each other layer, as weight_make() makes it, one after the other */
	float *bias;			/* [out] or NULL */
};

/* The layers of a block of the projection; the image must stay as long as they do. s: zeroed, or emptied. */
void projection_read(struct projection *s, const struct image *image, const struct config *c, size_t index, enum projection_name projection);
void projection_empty(struct projection *s);	/* keeps the memory of the weights for the next ones */
void projection_free(struct projection *s);
/* Another layer in the place of layer i. */
void projection_set(struct projection *s, size_t i, const struct linear *l);

/* Room for inputs that had to be rounded; grows as it is needed, free() y. */
struct room {
	size_t bytes;
	void *y;
};

/* y[m][stride] = x wᵀ + bias, or y += with `add`. */
void projection_apply(const struct projection *s, size_t m, size_t stride, float y[m][stride], const float x[m][s->in], struct room *room,
	bool add);
#endif
