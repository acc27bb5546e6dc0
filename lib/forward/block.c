/* SPDX-License-Identifier: GPL-3.0-or-later */
/* block.c -- a block of a transformer in memory; see block.h */
#include "forward/block.h"
#include "base/error.h"
#include "base/thread.h"
#include "num/linalg.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, FEW = 1 << 16 };	/* numbers, below which one thread is quicker */

static size_t most(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void fill(struct block *b, const struct image *image, size_t index)
{
	const struct config *c = b->config;

	b->index = index;
	for (int i = 0; i < 2; i++) {
		char *path = config_path(c, index, c->arch->norm[i]);

		b->norm[i] = norm_read(image, path, c);
		free(path);
	}
	for (int i = 0; i < PROJECTIONS; i++)
		projection_read(&b->projection[i], image, c, index, (enum projection_name)i);
}

struct block *block_read(const struct image *image, const struct config *c, size_t index)
{
	struct block *b = xalloc(1, sizeof *b);

	b->config = c;
	fill(b, image, index);
	return b;
}

void block_next(struct block *b, const struct image *image, size_t index)
{
	for (int i = 0; i < 2; i++)
		norm_free(&b->norm[i]);
	for (int i = 0; i < PROJECTIONS; i++)
		projection_empty(&b->projection[i]);
	fill(b, image, index);
}

void block_free(struct block *b)
{
	for (int i = 0; i < 2; i++)
		norm_free(&b->norm[i]);
	for (int i = 0; i < PROJECTIONS; i++)
		projection_free(&b->projection[i]);
	free(b);
}

void block_replace(struct block *b, const char *path, const struct linear *l)
{
	for (int k = 0; k < PROJECTIONS; k++)
		for (size_t i = 0; i < b->projection[k].layers; i++) {
			struct layer *old = &b->projection[k].layer[i];

			if (strcmp(old->path, path))
				continue;
			if (old->linear.out != l->out || old->linear.in != l->in)
				die("%s: a layer of another shape cannot take its place", path);
			projection_set(&b->projection[k], i, l);
			return;
		}
	die("%s: no linear layer of block %zu", path, b->index);
}

struct cache cache_make(const struct config *c, size_t sequences, size_t capacity)
{
	size_t width = c->kv_heads * c->head_dim;
	struct cache k = { .sequences = sequences, .capacity = capacity, .width = width };

	k.k = xalloc(c->blocks * sequences * capacity, width * sizeof *k.k);
	k.v = xalloc(c->blocks * sequences * capacity, width * sizeof *k.v);
	return k;
}

void cache_free(struct cache *k)
{
	free(k->k);
	free(k->v);
	*k = (struct cache){ 0 };
}

struct work work_make(const struct config *c, size_t tokens, size_t piece, size_t positions)
{
	size_t qkv = config_out(c, ROLE_QKV), q = c->heads * c->head_dim, n = c->intermediate;
	struct work w = { .tokens = tokens, .piece = piece };

	if (c->arch->position_kind == POSITION_ROPE) {
		double *frequency = xalloc(c->head_dim / 2, sizeof *frequency);

		config_rope(c, frequency);
		w.rope = rope_make(positions, c->head_dim / 2, frequency);
		free(frequency);
	}
	w.normed = xalloc(tokens, c->hidden * sizeof *w.normed);
	w.wide = xalloc(most(tokens * qkv, piece * (c->arch->mlp_kind == MLP_GATED ? 2 * n : n)), sizeof *w.wide);
	w.middle = xalloc(most(tokens * q, piece * n), sizeof *w.middle);
	w.rows = xalloc(tokens, sizeof *w.rows);
	w.sequence = xalloc(tokens, sizeof *w.sequence);
	return w;
}

void work_free(struct work *w)
{
	rope_free(&w->rope);
	free(w->normed);
	free(w->wide);
	free(w->middle);
	free(w->input.memory);
	free(w->sequence);
	free(w->rows);
	*w = (struct work){ 0 };
}

/* Turns queries and keys, puts keys and values into the cache, and says where each sequence's rows are. */
static void place_rows(const struct block *b, struct work *w, size_t sequences, size_t n, struct cache *cache)
{
	const struct config *c = b->config;
	size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim, stride = q + 2 * kv, past = cache ? cache->past : 0;

	#pragma omp parallel for num_threads(threads) if (sequences * n * stride > FEW) schedule(static, ROWS)
	for (size_t t = 0; t < sequences * n; t++) {
		float *row = w->wide + t * stride;

		if (c->arch->position_kind == POSITION_ROPE)
			rope_turn(&w->rope, past + t % n, c->heads + c->kv_heads, (float (*)[2 * w->rope.half])row);
		if (cache) {
			size_t to = ((b->index * cache->sequences + t / n) * cache->capacity + past + t % n) * kv;

			memcpy(cache->k + to, row + q, kv * sizeof *row);
			memcpy(cache->v + to, row + q + kv, kv * sizeof *row);
		}
	}
	for (size_t s = 0; s < sequences; s++) {
		float *row = w->wide + s * n * stride;
		size_t from = cache ? (b->index * cache->sequences + s) * cache->capacity * kv : 0;

		w->rows[s] = (struct attention_rows){ .y = w->middle + s * n * q, .y_stride = q, .q = row, .q_stride = stride,
			.k = cache ? cache->k + from : row + q, .v = cache ? cache->v + from : row + q + kv,
			.kv_stride = cache ? kv : stride };
	}
}

static void activate(const struct config *c, size_t m, float *y, const float *x)
{
	size_t n = c->intermediate, stride = c->arch->mlp_kind == MLP_GATED ? 2 * n : n;

	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++) {
		switch (c->activation) {
		case ACTIVATION_SILU:		linalg_silu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_GELU:		linalg_gelu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_GELU_TANH:	linalg_gelu_tanh(n, y + i * n, x + i * stride); break;
		}
		if (c->arch->mlp_kind == MLP_GATED)
			linalg_times(n, y + i * n, x + i * stride + n);
	}
}

static void run_projection(const struct block *b, enum projection_name projection, struct work *w, const struct batch *batch,
	size_t first, size_t m, float *y, const float *x, const struct observer *observer, bool add)
{
	const struct projection *s = &b->projection[projection];

	projection_apply(s, batch, first, m, s->out, (float (*)[s->out])y, (const float (*)[s->in])x, &w->input, observer, add);
}

void block_forward(const struct block *b, struct work *w, size_t sequences, size_t n,
	float x[sequences * n][b->config->hidden], struct cache *cache, const struct observer *observer)
{
	const struct config *c = b->config;
	const struct attention a = { c->heads, c->kv_heads, c->head_dim, config_sliding_window(c, b->index) };
	size_t m = sequences * n, hidden = c->hidden, piece = observer ? m : w->piece;
	float (*normed)[hidden] = (float (*)[hidden])w->normed;
	const struct batch batch = { .rows = m, .sequences = sequences, .sequence = w->sequence };

	for (size_t s = 0; s < sequences; s++)
		w->sequence[s] = (struct sequence){ .first = s * n, .length = n, .past = cache ? cache->past : 0 };
	norm_apply(&b->norm[0], m, normed, x);
	run_projection(b, PROJECTION_QKV, w, &batch, 0, m, w->wide, w->normed, observer, false);
	place_rows(b, w, sequences, n, cache);
	attention(&a, sequences, n, cache ? cache->past : 0, w->rows);
	run_projection(b, PROJECTION_OUTPUT, w, &batch, 0, m, x[0], w->middle, observer, true);

	for (size_t i = 0, rows; i < m; i += rows) {
		rows = m - i < piece ? m - i : piece;
		norm_apply(&b->norm[1], rows, normed, (const float (*)[hidden])x[i]);
		run_projection(b, PROJECTION_GATE_UP, w, &batch, i, rows, w->wide, w->normed, observer, false);
		activate(c, rows, w->middle, w->wide);
		run_projection(b, PROJECTION_DOWN, w, &batch, i, rows, x[i], w->middle, observer, true);
	}
}
