/* SPDX-License-Identifier: GPL-3.0-or-later */
/* block_device.c -- see block_private.h */
#include <assert.h>
#include "forward/block_private.h"

/* Norms of the queries of all rows, then of the keys. */
static void norm_heads(const struct block *b, struct work *w, size_t rows, size_t stride)
{
	const struct stack *s = b->stack;
	const size_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;

	for (int i = 0; i < 2; i++) {
		const struct norm *f = &b->head_norm[i];
		float *x = w->wide + (i ? q : 0);

		if (f->n)
			norm_vectors(f, (struct device_rows){ rows, (i ? kv : q) / f->n, f->n, stride }, x,
				x);
	}
}

/* Multiplies queries and keys by the block's Hadamard matrix, which stays in w for the next block. */
static void rotate_heads(const struct block *b, struct work *w, size_t rows, size_t stride)
{
	const struct stack *s = b->stack;
	const size_t n = (s->heads + s->kv_heads) * s->head_dim;
	float *rotated;

	if (!b->hadamard.h.n)
		return;
	online_upload(&b->hadamard, w->device, n, false, &w->rotation);
	rotated = workspace_of(&w->input, rows * n * sizeof *rotated);
	w->device->rotate(rows, n, stride, w->rotation.order, rotated, w->wide, w->rotation.matrix);
	w->device->add(rows, n, stride, w->wide, rotated, true);
}

void block_device_attend(const struct block *b, struct work *w, const struct batch *batch)
{
	const struct stack *s = b->stack;
	const struct device *d = w->device;
	const size_t rows = batch->rows, stride = stack_out(s, ROLE_QKV), width = s->heads * s->head_dim;
	const size_t axes = batch->position && batch->axes ? batch->axes : 1;
	int32_t *index = w->place + w->tokens * AXES;

	norm_heads(b, w, rows, stride);
	d->upload(w->place, batch_positions(batch, w->position), rows * axes * sizeof *w->place);
	if (batch->index)
		d->upload(index, batch->index, rows * sizeof *index);
	rotary_rows(&w->rotary, b->index, w->place, axes, rows, stride, w->wide);
	rotate_heads(b, w, rows, stride);
	for (size_t n = 0; n < batch->sequences; n++) {
		const struct sequence *q = &batch->sequence[n];
		const struct device_attention a = { s->heads, s->kv_heads, s->head_dim,
			(float)s->attention_scale, (float)s->attention_cap, stack_window(s, b->index),
			q->length, stride, batch->index ? index + q->first : NULL };

		assert(!q->past && !s->arch->bidirectional);
		d->attention(&a, w->middle + q->first * width, w->wide + q->first * stride);
	}
}
