/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * head.h -- final norm and output layer
 *
 * The weights of a large vocabulary are prepared tile by tile. For many small products they are prepared once
 * and kept (`keep`).
 *
 * Calling sequence: head_read(); head_norm() on rows of hidden states; head_forward() for all logits, or
 * head_product(), product_input() and head_logits() for some entries of the vocabulary; head_free(). A head
 * that is missing, or whose shape is wrong, is a fatal error.
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
	struct norm norm;		/* without a gain: the model has no final norm */
	struct layer layer;
	void *weight;			/* kept weights of the whole vocabulary; NULL: tile by tile */
	struct product kept;		/* product with `weight`; head_product() returns it */
};
/* keep: keep the prepared weights, for a model that is run on few tokens at a time. c and e must outlive the
 * head. */
struct head head_read(const struct part *part, const struct config *c, const struct execution *e, bool keep);
void head_free(struct head *h);

/* y = the final norm of the batch's rows x, the input of the output layer. y may be x. */
void head_norm(const struct head *h, const struct batch *batch, float y[batch->rows][h->norm.n],
	const float x[batch->rows][h->norm.n], const struct observer *observer);
/* The product with entries [first, first + n) of the vocabulary. workspace: head_workspace() bytes for
 * weights. */
size_t head_workspace(const struct head *h, size_t n);
struct product head_product(const struct head *h, size_t first, size_t n, void *workspace);
/* y = logits of entries [first, first + n), soft-capped if the model has a cap. input: from product_input()
 * on m rows of head_norm(). */
void head_logits(const struct head *h, const struct product *p, size_t first, size_t n, size_t m,
	float y[m][n], const void *input);
/* y = logits of the whole vocabulary for m rows x of head_norm(). modality: of each row; NULL: all 0. */
void head_forward(const struct head *h, size_t m, float y[m][h->config->vocab], const float x[m][h->norm.n],
	const uint8_t *modality);
#endif
