/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * head.h -- final norm and output layer
 *
 * The weights of a large vocabulary are prepared tile by tile, or kept for many small products.
 */
#ifndef FORWARD_HEAD_H
#define FORWARD_HEAD_H
#include <stdbool.h>
#include <stddef.h>
#include "forward/batch.h"
#include "forward/execution.h"
#include "forward/norm.h"
#include "forward/observer.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer.h"
#include "product/product.h"

struct head {
	const struct config *config;
	const struct execution *execution;
	struct norm norm;		/* without a gain: there is none */
	struct layer layer;
	void *weight;			/* of the whole vocabulary, prepared and kept; NULL: tile by tile */
	struct product kept;		/* with `weight`; head_product() gives it */
};
/* keep: the prepared weights, of a model that takes a few tokens at a time. c and e must outlive the head. */
struct head head_read(const struct part *part, const struct config *c, const struct execution *e, bool keep);
void head_free(struct head *h);

/* The norm of the batch's rows x, which the output layer is fed; y may be x. */
void head_norm(const struct head *h, const struct batch *batch, float y[batch->rows][h->norm.n],
	const float x[batch->rows][h->norm.n], const struct observer *observer);
/* The product with entries [first, first + n); workspace: head_workspace() bytes, for its weights. */
size_t head_workspace(const struct head *h, size_t n);
struct product head_product(const struct head *h, size_t first, size_t n, void *workspace);
/* When it is done, before the workspace is used again. */
void head_release(const struct head *h, struct product *p);
/* Logits of these of its entries, soft-capped where the model is, of inputs as product_input() makes them of
 * head_norm()'s rows. */
void head_logits(const struct head *h, const struct product *p, size_t first, size_t n, size_t m,
	float y[m][n], const void *input);
/* The same of the whole vocabulary, of rows of head_norm(); modality of each, or NULL: all 0. */
void head_forward(const struct head *h, size_t m, float y[m][h->config->vocab], const float x[m][h->norm.n],
	const uint8_t *modality);
#endif
