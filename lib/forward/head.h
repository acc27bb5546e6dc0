/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * head.h -- final norm and output layer
 *
 * The weights of a large vocabulary are made tile by tile, or kept for many
 * small products; a tile begins at a multiple of WEIGHT_ROWS (forward/weight.h).
 */
#ifndef FORWARD_HEAD_H
#define FORWARD_HEAD_H
#include <stdbool.h>
#include <stddef.h>
#include "io/image.h"
#include "forward/block.h"
#include "model/config.h"
#include "model/layer.h"
#include "forward/norm.h"

struct head {
	const struct config *config;
	enum compute_type type;
	struct norm norm;
	struct layer layer;
	void *weight;			/* of the whole vocabulary, kept; NULL: made tile by tile */
};
struct head head_read(const struct image *image, const struct config *c, bool keep);
void head_free(struct head *h);

/* The norm of x, which the output layer is fed; y may be x. */
void head_norm(const struct head *h, const struct batch *batch, float y[batch->rows][h->norm.n],
	const float x[batch->rows][h->norm.n], const struct observer *observer);
/* What it multiplies of head_norm()'s rows: these, or what is made of them in `own` of input_size() bytes. */
const void *head_input(const struct head *h, size_t m, const float x[m][h->norm.n], void *own);
/* The weights of entries first .. first + n - 1: a view, or made in `own` of weight_size() bytes. */
const void *head_weight(const struct head *h, size_t first, size_t n, void *own);
/* Their logits, from head_input()'s rows and head_weight()'s weights. */
void head_logits(const struct head *h, size_t m, size_t first, size_t n, float y[m][n], const void *x, const void *w);
#endif
