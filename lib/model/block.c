/* SPDX-License-Identifier: GPL-3.0-or-later */
/* block.c -- the pieces of a transformer in memory; see block.h */
#include "model/block.h"
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

/* ---- norms ---- */

struct norm norm_read(const struct image *image, const char *path, const struct config *c)
{
	struct norm y = { .kind = c->arch->norm_kind, .n = c->hidden, .eps = c->eps };
	char *kind = image_text(image, path, "norm"), *gain = xformat("%s/weight", path), *shift = xformat("%s/bias", path);

	if (kind && !strcmp(kind, "rms"))
		y.kind = NORM_RMS;
	else if (kind && !strcmp(kind, "layer"))
		y.kind = NORM_LAYER;
	else if (kind)
		die("%s: %s: attribute norm is '%s', rms or layer was wanted", image_name(image), path, kind);
	y.gain = layer_vector(image, gain, c->hidden);
	if (!y.gain)
		die("%s: %s: is missing", image_name(image), gain);
	y.shift = layer_vector(image, shift, c->hidden);
	free(kind);
	free(gain);
	free(shift);
	return y;
}

void norm_free(struct norm *n)
{
	free(n->gain);
	free(n->shift);
	*n = (struct norm){ 0 };
}

void norm_apply(const struct norm *n, size_t m, float y[m][n->n], const float x[m][n->n])
{
	if (n->kind == NORM_RMS)
		linalg_rmsnorm(m, n->n, y, x, n->gain, n->shift, n->eps);
	else
		linalg_layernorm(m, n->n, y, x, n->gain, n->shift, n->eps);
}

/* ---- linear layers that share an input ---- */

static void effective_weight(const struct linear *l, size_t first, size_t n, float w[n][l->in])
{
	size_t tiles = (n + ROWS - 1) / ROWS;

	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW) schedule(static)
	for (size_t t = 0; t < tiles; t++) {
		size_t i = t * ROWS;

		linear_weight(l, first + i, n - i < ROWS ? n - i : ROWS, &w[i]);
	}
}

static void rounded_input(const struct linear *l, size_t m, float y[m][l->in], const float x[m][l->in])
{
	size_t tiles = (m + ROWS - 1) / ROWS;

	#pragma omp parallel for num_threads(threads) if (m * l->in > FEW) schedule(static)
	for (size_t t = 0; t < tiles; t++) {
		size_t i = t * ROWS;

		linear_input(l, m - i < ROWS ? m - i : ROWS, &y[i], &x[i], NULL);
	}
}

static void site_set(struct site *s, size_t i, const struct linear *l)
{
	effective_weight(l, 0, l->out, (float (*)[l->in])(s->weight + s->at[i] * s->in));
	if (l->bias && !s->bias)
		s->bias = xalloc(s->out, sizeof *s->bias);
	if (l->bias)
		memcpy(s->bias + s->at[i], l->bias, l->out * sizeof *l->bias);
}

static void site_read(struct site *s, const struct image *image, const struct config *c, size_t index, enum site_name site)
{
	s->in = config_in(c, site);
	for (const struct linear_row *row = c->arch->linear; row->name; row++) {
		struct layer *l = &s->layer[s->layers];
		char *path;

		if (row->site != site)
			continue;
		path = config_path(c, index, row->name);
		*l = layer_read(image, path, config_out(c, row->role), s->in);
		if (c->bias[row->role] && !l->linear.bias)
			die("%s: %s/bias: is missing; this model's layers of the kind have one", image_name(image), path);
		s->at[s->layers++] = s->out;
		s->out += l->linear.out;
		free(path);
	}
	s->weight = xalloc(s->out * s->in, sizeof *s->weight);
	for (size_t i = 0; i < s->layers; i++)
		site_set(s, i, &s->layer[i].linear);
}

static void site_free(struct site *s)
{
	for (size_t i = 0; i < s->layers; i++)
		layer_free(&s->layer[i]);
	free(s->weight);
	free(s->bias);
}

/* y[m][stride] = or += x wᵀ + bias; layers whose input is not rounded are one product. */
static void site_apply(const struct site *s, size_t m, size_t stride, float y[m][stride], const float x[m][s->in],
	float *rounded, bool add)
{
	for (size_t i = 0, j; i < s->layers; i = j) {
		const struct linear *l = &s->layer[i].linear;
		size_t at = s->at[i], end;
		const float *input = x[0];

		for (j = i + 1; l->act_mode == ACT_NONE && j < s->layers && s->layer[j].linear.act_mode == ACT_NONE; j++)
			;
		end = j < s->layers ? s->at[j] : s->out;
		if (l->act_mode != ACT_NONE) {
			rounded_input(l, m, (float (*)[l->in])rounded, x);
			input = rounded;
		}
		linalg_product(m, end - at, s->in, stride, (float (*)[stride])&y[0][at], (const float (*)[s->in])input,
			(const float (*)[s->in])(s->weight + at * s->in), s->bias ? s->bias + at : NULL, add);
	}
}

/* ---- blocks ---- */

struct block *block_read(const struct image *image, const struct config *c, size_t index)
{
	struct block *b = xalloc(1, sizeof *b);

	b->config = c;
	b->index = index;
	for (int i = 0; i < 2; i++) {
		char *path = config_path(c, index, c->arch->norm[i]);

		b->norm[i] = norm_read(image, path, c);
		free(path);
	}
	for (int i = 0; i < SITES; i++)
		site_read(&b->site[i], image, c, index, (enum site_name)i);
	return b;
}

void block_free(struct block *b)
{
	for (int i = 0; i < 2; i++)
		norm_free(&b->norm[i]);
	for (int i = 0; i < SITES; i++)
		site_free(&b->site[i]);
	free(b);
}

void block_replace(struct block *b, const char *path, const struct linear *l)
{
	for (int k = 0; k < SITES; k++)
		for (size_t i = 0; i < b->site[k].layers; i++) {
			struct layer *old = &b->site[k].layer[i];

			if (strcmp(old->path, path))
				continue;
			if (old->linear.out != l->out || old->linear.in != l->in)
				die("%s: a layer of another shape cannot take its place", path);
			old->linear = *l;
			site_set(&b->site[k], i, l);
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

struct work work_make(const struct config *c, size_t tokens, size_t positions)
{
	size_t qkv = config_out(c, ROLE_QKV), q = c->heads * c->head_dim;
	struct work w = { .tokens = tokens };

	if (c->arch->position_kind == POSITION_ROPE) {
		double *frequency = xalloc(c->head_dim / 2, sizeof *frequency);

		config_rope(c, frequency);
		w.rope = rope_make(positions, c->head_dim / 2, frequency);
		free(frequency);
	}
	w.normed = xalloc(tokens, c->hidden * sizeof *w.normed);
	w.wide = xalloc(tokens, most(qkv, 2 * c->intermediate) * sizeof *w.wide);
	w.middle = xalloc(tokens, most(q, c->intermediate) * sizeof *w.middle);
	w.rounded = xalloc(tokens, most(c->hidden, most(q, c->intermediate)) * sizeof *w.rounded);
	w.rows = xalloc(tokens, sizeof *w.rows);
	return w;
}

void work_free(struct work *w)
{
	rope_free(&w->rope);
	free(w->normed);
	free(w->wide);
	free(w->middle);
	free(w->rounded);
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
		switch (c->act) {
		case ACT_SILU:		linalg_silu(n, y + i * n, x + i * stride); break;
		case ACT_GELU:		linalg_gelu(n, y + i * n, x + i * stride); break;
		case ACT_GELU_TANH:	linalg_gelu_tanh(n, y + i * n, x + i * stride); break;
		}
		if (c->arch->mlp_kind == MLP_GATED)
			linalg_times(n, y + i * n, x + i * stride + n);
	}
}

static void look(const struct observer *o, size_t block, enum site_name site, size_t sequences, size_t tokens, size_t in, const float *x)
{
	if (o && o->see)
		o->see(o->arg, block, site, sequences, tokens, in, x);
}

static void run_site(const struct block *b, enum site_name site, struct work *w, size_t sequences, size_t n, size_t stride,
	float *y, const float *x, bool add, const struct observer *observer)
{
	const struct site *s = &b->site[site];

	look(observer, b->index, site, sequences, n, s->in, x);
	site_apply(s, sequences * n, stride, (float (*)[stride])y, (const float (*)[s->in])x, w->rounded, add);
}

void block_forward(const struct block *b, struct work *w, size_t sequences, size_t n,
	float x[sequences * n][b->config->hidden], struct cache *cache, const struct observer *observer)
{
	const struct config *c = b->config;
	const struct attention a = { c->heads, c->kv_heads, c->head_dim, config_window(c, b->index) };
	size_t m = sequences * n, hidden = c->hidden;
	float (*normed)[hidden] = (float (*)[hidden])w->normed;

	norm_apply(&b->norm[0], m, normed, x);
	run_site(b, SITE_ATTENTION, w, sequences, n, b->site[SITE_ATTENTION].out, w->wide, w->normed, false, observer);
	place_rows(b, w, sequences, n, cache);
	attention(&a, sequences, n, cache ? cache->past : 0, w->rows);
	run_site(b, SITE_OUTPUT, w, sequences, n, hidden, x[0], w->middle, true, observer);

	norm_apply(&b->norm[1], m, normed, x);
	run_site(b, SITE_MLP, w, sequences, n, b->site[SITE_MLP].out, w->wide, w->normed, false, observer);
	activate(c, m, w->middle, w->wide);
	run_site(b, SITE_DOWN, w, sequences, n, hidden, x[0], w->middle, true, observer);
}

/* ---- head ---- */

struct head head_read(const struct image *image, const struct config *c, bool keep)
{
	struct head h = { .config = c };

	if (!image_has(image, c->arch->head))
		die("%s: %s: is missing%s", image_name(image), c->arch->head,
			c->tied ? "; a tied head is stored as a hard link to the embeddings, import the model anew" : "");
	h.norm = norm_read(image, c->arch->final_norm, c);
	h.layer = layer_read(image, c->arch->head, c->vocab, c->hidden);
	if (keep) {
		h.weight = xalloc(c->vocab * c->hidden, sizeof *h.weight);
		effective_weight(&h.layer.linear, 0, c->vocab, (float (*)[c->hidden])h.weight);
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

void head_input(const struct head *h, size_t sequences, size_t n, float y[sequences * n][h->norm.n],
	const float x[sequences * n][h->norm.n], const struct observer *observer)
{
	size_t m = sequences * n;

	norm_apply(&h->norm, m, y, x);
	look(observer, h->config->blocks, SITE_HEAD, sequences, n, h->norm.n, y[0]);
	if (h->layer.linear.act_mode != ACT_NONE)
		rounded_input(&h->layer.linear, m, y, (const float (*)[h->norm.n])y);
}

const float *head_weight(const struct head *h, size_t first, size_t n, float *own)
{
	const struct linear *l = &h->layer.linear;

	if (h->weight)
		return h->weight + first * l->in;
	if (l->weight && l->weight_type == HALF_NONE)
		return (const float *)l->weight + first * l->in;
	effective_weight(l, first, n, (float (*)[l->in])own);
	return own;
}

void head_logits(const struct head *h, size_t m, size_t first, size_t n, float y[m][n], const float x[m][h->norm.n],
	const float w[n][h->norm.n])
{
	const float *bias = h->layer.linear.bias;

	linalg_product(m, n, h->norm.n, n, y, x, w, bias ? bias + first : NULL, false);
}
