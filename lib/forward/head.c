/* SPDX-License-Identifier: GPL-3.0-or-later */
/* head.c -- final norm and output layer; see head.h */
#include "forward/head.h"
#include "base/error.h"
#include "forward/weight.h"
#include <stdlib.h>

struct head head_read(const struct image *image, const struct config *c, bool keep)
{
	struct head h = { .config = c, .type = c->compute_type };

	if (!image_has(image, c->arch->head))
		die("%s: %s: is missing%s", image_name(image), c->arch->head,
			c->tied ? "; a tied head is stored as a hard link to the embeddings, import the model anew" : "");
	h.norm = norm_read(image, c->arch->final_norm, c, c->hidden);
	h.layer = layer_read(image, c->arch->head, c->vocab, c->hidden);
	layer_runs(image, &h.layer);
	if (keep) {
		h.weight = xalloc(weight_size(h.type, c->vocab, c->hidden), 1);
		weight_make(h.type, &h.layer.linear, 0, c->vocab, h.weight);
	}
	return h;
}

void head_free(struct head *h)
{
	norm_free(&h->norm);
	layer_free(&h->layer);
	free(h->weight);
	h->weight = NULL;
}

void head_norm(const struct head *h, const struct batch *batch, float y[batch->rows][h->norm.n],
	const float x[batch->rows][h->norm.n], const struct observer *observer)
{
	norm_apply(&h->norm, batch->rows, y, x);
	observe(observer, h->config->blocks, PROJECTION_HEAD, batch, h->norm.n, y[0]);
}

const void *head_input(const struct head *h, size_t m, const float x[m][h->norm.n], void *own)
{
	if (input_same(h->type, &h->layer.linear))
		return x;
	input_make(h->type, &h->layer.linear, m, own, x);
	return own;
}

const void *head_weight(const struct head *h, size_t first, size_t n, void *own)
{
	const struct linear *l = &h->layer.linear;

	if (h->weight)
		return (const char *)h->weight + weight_size(h->type, first, l->in);
	if (h->type == COMPUTE_F32 && l->weight && l->weight_type == HALF_NONE)
		return (const float *)l->weight + first * l->in;
	weight_make(h->type, l, first, n, own);
	return own;
}

void head_logits(const struct head *h, size_t m, size_t first, size_t n, float y[m][n], const void *x, const void *w)
{
	const float *bias = h->layer.linear.bias;

	weight_product(h->type, m, n, h->norm.n, n, y, x, w, bias ? bias + first : NULL, false);
}
