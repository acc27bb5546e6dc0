/* SPDX-License-Identifier: GPL-3.0-or-later */
/* head.c -- final norm and output layer; see head.h */
#include "forward/head.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

/* The chosen product, with the kept weights if any. The head may have moved since they were prepared. */
static struct product product_of(const struct head *h)
{
	struct product p = h->kept;

	if (!h->weight)
		return product_choose(&h->layer.linear, h->execution->compute_type, h->execution->rows);
	p.l = &h->layer.linear;
	return p;
}

struct head head_read(const struct part *part, const struct config *c, const struct execution *e, bool keep)
{
	struct head h = { .config = c, .execution = e };
	const struct stack *last = config_last(c);

	if (!part_has(part, c->arch->head))
		die("%s: %s: is missing%s", part_name(part), c->arch->head, !c->tied ? "" :
			"; a tied head is stored as a hard link to the embeddings: import the model again");
	h.norm = stack_final_norm(last) ? norm_read(part, stack_final_norm(last), last, last->hidden) :
		(struct norm){ .n = last->hidden };
	h.layer = layer_read(part, c->arch->head, c->vocab, last->hidden);
	layer_require_plain(part, &h.layer);
	execution_layer(e, part, &h.layer, false);
	if (keep) {
		h.kept = product_of(&h);
		h.weight = xalloc(product_size(&h.kept, c->vocab), 1);
		product_make(&h.kept, 0, c->vocab, h.weight);
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
	if (h->norm.gain)
		norm_apply(&h->norm, batch->rows, y, x);
	else if (y != x)
		memcpy(y, x, batch->rows * sizeof *y);
	observe(observer, h->config->blocks, PROJECTION_HEAD, batch, 0, batch->rows, h->norm.n, y[0]);
}

size_t head_workspace(const struct head *h, size_t n)
{
	const struct product p = product_of(h);

	return product_size(&p, n);
}

struct product head_product(const struct head *h, size_t first, size_t n, void *workspace)
{
	struct product p = product_of(h);

	if (!h->weight && !product_view(&p))
		product_make(&p, first, n, workspace);
	return p;
}

void head_logits(const struct head *h, const struct product *p, size_t first, size_t n, size_t m,
	float y[m][n], const void *input)
{
	const float cap = (float)h->config->logit_cap;

	product_run(p, first, n, m, n, y, input, p->l->bias ? p->l->bias + first : NULL, false);
	for (size_t i = 0; cap > 0 && i < m * n; i++)
		y[i / n][i % n] = cap * tanhf(y[i / n][i % n] / cap);
}

void head_forward(const struct head *h, size_t m, float y[m][h->config->vocab], const float x[m][h->norm.n],
	const uint8_t *modality)
{
	const size_t vocab = h->config->vocab;
	void *weight = h->weight ? NULL : xalloc(head_workspace(h, vocab), 1);
	const struct product p = head_product(h, 0, vocab, weight);
	void *workspace = xalloc(product_workspace(&p, m), 1);

	head_logits(h, &p, 0, vocab, m, y, product_input(&p, m, workspace, x, modality));
	free(workspace);
	free(weight);
}
