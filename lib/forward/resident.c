/* SPDX-License-Identifier: GPL-3.0-or-later */
/* resident.c -- a whole model in memory, stepped token by token; see resident.h */
#include "forward/resident.h"
#include "base/error.h"
#include "forward/forward.h"
#include <stdlib.h>
#include <string.h>

struct resident resident_open(const struct image *image, const struct config *c)
{
	struct resident r = { .config = c };

	r.embedding = layer_read(image, c->arch->embedding, c->vocab, c->hidden);
	if (c->arch->position)
		r.position = layer_read(image, c->arch->position, 0, c->hidden);
	r.block = xalloc(c->blocks, sizeof *r.block);
	for (size_t i = 0; i < c->blocks; i++)
		r.block[i] = block_read(image, c, i);
	r.head = head_read(image, c, true);
	return r;
}

void resident_close(struct resident *r)
{
	layer_free(&r->embedding);
	layer_free(&r->position);
	for (size_t i = 0; i < r->config->blocks; i++)
		block_free(r->block[i]);
	free(r->block);
	head_free(&r->head);
}

void resident_step(const struct resident *r, struct work *w, struct cache *cache, size_t sequences, size_t n,
	float logits[sequences][r->config->vocab], const int32_t id[sequences][n])
{
	size_t hidden = r->config->hidden;
	float *x = xalloc(sequences * n, hidden * sizeof *x);
	float (*row)[hidden] = (float (*)[hidden])x;
	struct product p = head_product(&r->head, 0, r->config->vocab, NULL);
	void *workspace = xalloc(product_workspace(&p, sequences), 1);

	embed_tokens(&r->embedding, sequences * n, row, id[0]);
	if (r->position.path)
		embed_positions(&r->position, sequences * n, row, cache->past, n);
	for (size_t i = 0; i < r->config->blocks; i++)
		block_forward(r->block[i], w, sequences, n, row, cache, NULL);
	cache->past += n;
	for (size_t s = 0; s < sequences; s++)
		memmove(row[s], row[s * n + n - 1], sizeof row[s]);
	head_norm(&r->head, &(struct batch){ .rows = sequences }, row, (const float (*)[hidden])x, NULL);
	head_logits(&p, 0, r->config->vocab, sequences, logits,
		product_input(&p, sequences, workspace, (const float (*)[hidden])x, NULL));
	free(x);
	free(workspace);
}
