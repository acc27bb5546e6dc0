/* SPDX-License-Identifier: GPL-3.0-or-later */
/* resident.c -- a whole model in memory, run token by token; see resident.h */
#include "forward/resident.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "forward/embed.h"
#include "forward/forward.h"
#include "model/layer_list.h"
#include "model/shard_file.h"

struct resident resident_open(const struct part *part, const struct config *c, const struct execution *e)
{
	const struct stack *last = config_last(c);
	struct resident r = { .config = c, .execution = e };

	shard_refuse(part);
	layer_blocks_check(part, c);
	r.embedding = layer_read(part, c->arch->embedding, c->vocab, last->hidden);
	if (c->arch->position)
		r.position = layer_read(part, c->arch->position, 0, last->hidden);
	layer_require_plain(part, &r.embedding);
	if (c->arch->position)
		layer_require_plain(part, &r.position);
	r.block = xalloc(last->blocks, sizeof *r.block);
	for (size_t i = 0; i < last->blocks; i++)
		r.block[i] = block_read(part, c, e, last, i);
	r.head = head_read(part, c, e, true);
	return r;
}

void resident_close(struct resident *r)
{
	layer_free(&r->embedding);
	layer_free(&r->position);
	for (size_t i = 0; i < config_last(r->config)->blocks; i++)
		block_free(r->block[i]);
	free(r->block);
	head_free(&r->head);
}

void resident_step(const struct resident *r, struct work *w, struct cache *cache, const struct batch *batch,
	float logits[batch->sequences][r->config->vocab], const int32_t id[batch->rows],
	const float *const feature[])
{
	size_t hidden = config_last(r->config)->hidden, n = batch->sequences;
	const size_t padded = batch->apart ? resident_rows(n) : n;
	float *x = xalloc(max(batch->rows, padded), hidden * sizeof *x);
	float (*row)[hidden] = (float (*)[hidden])x;
	uint8_t *modality = xalloc(padded, 1);

	embed_tokens(r->config, r->execution, &r->embedding, batch->rows, row, id);
	for (size_t i = 0; feature && i < batch->rows; i++)
		if (feature[i])
			memcpy(row[i], feature[i], sizeof row[i]);
	if (r->position.path)
		embed_positions(&r->position, r->config->arch->position_offset, batch, row);
	for (size_t i = 0; i < config_last(r->config)->blocks; i++)
		block_forward(r->block[i], w, batch, row, cache, NULL);
	for (size_t s = 0; logits && s < n; s++) {
		const size_t last = batch->sequence[s].first + batch->sequence[s].length - 1;

		memmove(row[s], row[last], sizeof row[s]);
		modality[s] = batch->modality ? batch->modality[last] : 0;
	}
	if (logits)
		head_norm(&r->head, &(struct batch){ .rows = n }, row, (const float (*)[hidden])x, NULL);
	for (size_t s = 0, step = batch->apart ? PRODUCT_FEW : n; logits && s < padded; s += step)
		head_forward(&r->head, min(step, padded - s), logits + s, (const float (*)[hidden])row[s],
			modality + s);
	free(x);
	free(modality);
}

size_t resident_rows(size_t sequences)
{
	return sequences % PRODUCT_FEW < PRODUCT_APART ? ceil_div(sequences, PRODUCT_APART) * PRODUCT_APART :
		sequences;
}
