/* SPDX-License-Identifier: GPL-3.0-or-later */
/* block.c -- a block of a transformer in memory; see block.h */
#include "forward/block.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device_open.h"
#include "forward/activation.h"
#include "forward/block_private.h"
#include "num/linalg.h"

enum { ROWS = 16, FEW = 1 << 16 };	/* FEW: numbers, up to which one thread is faster */

/* The norm `name` of the block; name NULL (the architecture has no such norm): an empty one. */
static struct norm block_norm(const struct part *part, const struct stack *s, size_t index,
	const char *name, size_t width, const struct device *d)
{
	char *path = name ? stack_path(s, index, name) : NULL;
	struct norm y = path ? norm_read(part, path, s, width) : (struct norm){ .n = 0 };

	norm_move(&y, d);
	free(path);
	return y;
}

/* Reads the attribute kv_hadamard of the attention group. */
static void read_hadamard(struct online *o, const struct part *part, const struct stack *s, size_t index)
{
	char *path = stack_attention(s, index);
	const double n = part_number(part, path, "kv_hadamard", 1);

	if (!(n >= 1 && n <= (double)s->head_dim) || (double)(size_t)n != n || s->head_dim % (size_t)n ||
	    hadamard_block((size_t)n) != (size_t)n)
		die("%s: %s: attribute kv_hadamard is %g; expected the order of a Hadamard matrix that "
			"divides the %zu channels of a head", part_name(part), path, n, s->head_dim);
	free(path);
	online_set(o, (size_t)n, n > 1 ? (size_t)n : 0);
}

static void fill(struct block *b, const struct part *part, const struct stack *s, size_t index)
{
	b->stack = s;
	b->index = index;
	for (int i = 0; i < NORM_POSITIONS; i++)
		b->norm[i] = block_norm(part, s, index, s->arch->norm[i], s->hidden,
			b->execution->device);
	for (int i = 0; i < 2; i++)
		b->head_norm[i] = block_norm(part, s, index, s->arch->head_norm[i], s->head_dim,
			b->execution->device);
	if (s->heads)
		read_hadamard(&b->hadamard, part, s, index);
	else
		online_set(&b->hadamard, 0, 0);
	for (int i = 0; i < PROJECTION_EXPERT_GATE_UP; i++)
		projection_read(&b->projection[i], part, b->config, b->execution, s, index,
			(enum projection_name)i, 0);
	experts_read(&b->experts, part, b->config, b->execution, s, index);
}

struct block *block_read(const struct part *part, const struct config *c, const struct execution *e,
	const struct stack *s, size_t index)
{
	struct block *b = xalloc(1, sizeof *b);

	b->config = c;
	b->execution = e;
	fill(b, part, s, index);
	return b;
}

static void free_norms(struct block *b)
{
	for (int i = 0; i < NORM_POSITIONS; i++)
		norm_free(&b->norm[i]);
	for (int i = 0; i < 2; i++)
		norm_free(&b->head_norm[i]);
}

void block_next(struct block *b, const struct part *part, const struct stack *s, size_t index)
{
	free_norms(b);
	for (int i = 0; i < PROJECTIONS; i++)
		projection_empty(&b->projection[i]);
	experts_empty(&b->experts);
	fill(b, part, s, index);
}

void block_free(struct block *b)
{
	free_norms(b);
	for (int i = 0; i < PROJECTIONS; i++)
		projection_free(&b->projection[i]);
	experts_free(&b->experts);
	online_free(&b->hadamard);
	free(b);
}

void block_replace(struct block *b, const struct layer_ref *layer, const struct linear *l)
{
	const enum projection_name name = layer_ref_projection(layer);
	const struct linear *old;
	struct projection *p;
	size_t i = 0;

	if (!layer_ref_row(layer) || layer->stack != b->stack || layer->block != b->index)
		die("%s: no linear layer of block %zu", layer->path, b->stack->first + b->index);
	p = name < PROJECTION_EXPERT_GATE_UP ? &b->projection[name] :
		experts_projection(&b->experts, name, layer->expert);
	for (size_t row = layer->row; row && b->stack->arch->linear[row - 1].projection == name; row--)
		i++;	/* rows of a projection are neighbours */
	old = &p->layer[i].linear;
	if (old->out != l->out || old->in != l->in)
		die("%s: cannot be replaced by a layer of another shape", layer->path);
	projection_set(p, i, l);
}

/* Numbers of the members wide and middle. */
static size_t wide_size(const struct stack *s, size_t tokens, size_t piece)
{
	size_t gate_up = 0;

	for (int i = PROJECTION_GATE_UP; i < PROJECTIONS; i++)
		gate_up = max(gate_up, stack_width(s, (enum projection_name)i));
	return max(tokens * stack_out(s, ROLE_QKV), piece * gate_up);
}

static size_t middle_size(const struct stack *s, size_t tokens, size_t piece)
{
	return max(tokens * s->heads * s->head_dim, piece * max(s->intermediate, max(s->expert, s->shared)));
}

size_t work_size(const struct stack *s, size_t tokens, size_t piece)
{
	return (tokens * stack_in(s, PROJECTION_GATE_UP) + wide_size(s, tokens, piece) +
		middle_size(s, tokens, piece)) * sizeof(float);
}

struct work work_on(const struct device *d, const struct stack *s, size_t tokens, size_t piece,
	size_t positions)
{
	struct work w = { .stack = s, .tokens = tokens, .piece = piece, .device = d, .input.device = d };

	w.rotary = rotary_make(s, positions, d);
	w.normed = device_memory(d, tokens, stack_in(s, PROJECTION_GATE_UP) * sizeof *w.normed);
	w.wide = device_memory(d, wide_size(s, tokens, piece), sizeof *w.wide);
	w.middle = device_memory(d, middle_size(s, tokens, piece), sizeof *w.middle);
	if (s->parallel && s->arch->norm[BEFORE_MLP])
		w.second = device_memory(d, tokens, s->hidden * sizeof *w.second);
	if (s->arch->norm[AFTER_ATTENTION] || s->arch->norm[AFTER_MLP])
		w.branch = device_memory(d, tokens, s->hidden * sizeof *w.branch);
	if (d) {
		w.hidden = device_memory(d, tokens, s->hidden * sizeof *w.hidden);
		w.place = device_memory(d, tokens, (AXES + 1) * sizeof *w.place);
	}
	w.position = xalloc(tokens, sizeof *w.position);
	w.rows = xalloc(tokens, sizeof *w.rows);
	w.routing = routing_make(s, piece);
	return w;
}

struct work work_make(const struct stack *s, size_t tokens, size_t piece, size_t positions)
{
	return work_on(NULL, s, tokens, piece, positions);
}

void work_free(struct work *w)
{
	rotary_free(&w->rotary);
	device_free(w->device, w->normed);
	device_free(w->device, w->wide);
	device_free(w->device, w->middle);
	device_free(w->device, w->second);
	device_free(w->device, w->branch);
	device_free(w->device, w->hidden);
	device_free(w->device, w->place);
	online_release(&w->rotation, w->device);
	free(w->position);
	workspace_free(&w->input);
	free(w->rows);
	routing_free(&w->routing);
	*w = (struct work){ 0 };
}

/* Norms and rotates the queries and keys of a row: by position, and by a Hadamard matrix. */
static void place_row(const struct block *b, const struct work *w, const int32_t position[], size_t axes,
	float *row)
{
	const struct stack *s = b->stack;
	size_t d = s->head_dim, q = s->heads * d, kv = s->kv_heads * d;

	for (int i = 0; i < 2; i++) {
		const struct norm *norm = &b->head_norm[i];
		float *x = row + (i ? q : 0);

		if (norm->n)
			norm_apply(norm, (i ? kv : q) / norm->n, (float (*)[norm->n])x,
				(const float (*)[norm->n])x);
	}
	rotary_apply(&w->rotary, b->index, position, axes, row);
	if (b->hadamard.h.n)
		hadamard_product(&b->hadamard.h, false, (q + kv) / b->hadamard.h.n, b->hadamard.h.n,
			(float (*)[b->hadamard.h.n])row);
}

/* The rows of a sequence, and the keys and values that they attend to. With a cache, appends its keys and
 * values. */
static struct attention_rows sequence_rows(const struct block *b, const struct work *w,
	const struct batch *batch,
	size_t n, struct cache *cache)
{
	const struct stack *s = b->stack;
	const struct sequence *q = &batch->sequence[n];
	const int32_t *index = batch->index;
	size_t width = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, stride = width + 2 * kv;
	float *row = w->wide + q->first * stride, *prefix = w->wide + q->prefix * stride + width;
	struct attention_rows y = { .n = q->length, .y = w->middle + q->first * width, .y_stride = width,
		.q = row, .q_stride = stride, .index = index ? index + q->first : NULL };

	if (cache) {
		y.keys[1] = cache_put(cache, b->index, n, q, stride, row + width);
		return y;
	}
	y.keys[0] = (struct attention_keys){ q->past, stride, prefix, prefix + kv,
		index ? index + q->prefix : NULL };
	y.keys[1] = (struct attention_keys){ q->length, stride, row + width, row + width + kv, y.index };
	return y;
}

static void attend(const struct block *b, struct work *w, const struct batch *batch, struct cache *cache)
{
	const struct stack *s = b->stack;
	const struct attention a = { s->heads, s->kv_heads, s->head_dim, s->attention_scale, s->attention_cap,
		stack_window(s, b->index) };
	const int32_t *position = batch_positions(batch, w->position);
	const struct cache_format *format = &b->execution->cache;
	size_t stride = stack_out(s, ROLE_QKV), d = s->head_dim;
	const size_t axes = batch->position && batch->axes ? batch->axes : 1;

	if (w->device) {
		block_device_attend(b, w, batch);
		return;
	}
	#pragma omp parallel for num_threads(threads) if (batch->rows * stride > FEW) schedule(static, ROWS)
	for (size_t t = 0; t < batch->rows; t++)
		place_row(b, w, position + t * axes, axes, w->wide + t * stride);
	if (format->format.kind && !s->arch->bidirectional)
		cache_round(format, d, batch->rows, stride, 2 * s->kv_heads * d, w->wide + s->heads * d);
	for (size_t n = 0; n < batch->sequences; n++)
		w->rows[n] = sequence_rows(b, w, batch, n, cache);
	attention(&a, batch->sequences, w->rows);
}

/* A run of a block, or of a stage of it, over the rows of a batch. */
struct block_pass {
	const struct block *b;
	struct work *w;
	const struct batch *batch;
	const struct observer *observer;
	enum projection_name to;		/* the pass ends at its input; PROJECTIONS: at the output */
};

/* Applies a projection. Returns false if the pass ends at its input. */
static bool project(const struct block_pass *p, enum projection_name name, size_t first, size_t m, float *y,
	const float *x, bool add)
{
	const struct projection *s = &p->b->projection[name];

	if (name == p->to) {
		projection_observe(s, p->batch, first, m, x, &p->w->input, p->observer);
		return false;
	}
	projection_apply(s, p->batch, first, m, s->out, (float (*)[s->out])y, (const float (*)[s->in])x,
		&p->w->input, p->to == PROJECTIONS ? p->observer : NULL, add);
	return true;
}

/* Norms the output of a residual branch and adds it to the stream. */
static void add_normed(const struct block_pass *p, const struct norm *norm, size_t m, float *x)
{
	size_t n = p->b->stack->hidden;

	norm_apply(norm, m, (float (*)[n])p->w->branch, (const float (*)[n])p->w->branch);
	if (p->w->device) {
		p->w->device->add(m, n, n, x, p->w->branch, false);
		return;
	}
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++)
		for (size_t j = i * n; j < (i + 1) * n; j++)
			x[j] += p->w->branch[j];
}

/* Adds the output of the last projection of a residual branch to the stream, normed if that norm exists. */
static bool add_branch(const struct block_pass *p, enum projection_name name, enum norm_position after,
	size_t first,
	size_t m, float *x)
{
	const struct norm *norm = &p->b->norm[after];

	if (!project(p, name, first, m, norm->n ? p->w->branch : x, p->w->middle, !norm->n))
		return false;
	if (norm->n)
		add_normed(p, norm, m, x);
	return true;
}

/* w->middle = the activation of m rows of w->wide. */
static void run_activation(const struct stack *s, struct work *w, size_t m)
{
	const size_t width = stack_width(s, PROJECTION_GATE_UP);

	if (w->device)
		w->device->activate(s->activation, m, s->intermediate, width, w->middle, w->wide);
	else
		mlp_activate(s->activation, m, s->intermediate, width, w->middle, w->wide);
}

/* An MLP that is a mixture: the router and the shared expert for all tokens, then the chosen experts. */
static void run_mixture(const struct block_pass *p, size_t first, size_t m, float *x, const float *input)
{
	const struct stack *s = p->b->stack;
	const struct norm *norm = &p->b->norm[AFTER_MLP];
	const size_t shared = 2 * s->shared, wide = stack_width(s, PROJECTION_ROUTER);
	struct work *w = p->w;
	float *y = norm->n ? w->branch : x, *out = routing_rows(&w->routing, m);

	if (norm->n)
		memset(y, 0, m * s->hidden * sizeof *y);
	if (!project(p, PROJECTION_ROUTER, first, m, w->wide, input, false))
		return;
	routing_choose(&w->routing, s, m, wide, w->wide + shared);
	if (shared && p->to != PROJECTION_EXPERT_GATE_UP && p->to != PROJECTION_EXPERT_DOWN) {
		mlp_activate(s->activation, m, s->shared, wide, w->middle, w->wide);
		if (!project(p, PROJECTION_SHARED_DOWN, first, m, out, w->middle, false))
			return;
		routing_add_shared(s, m, y, out, wide, w->wide + shared + s->experts);
	}
	experts_apply(&p->b->experts, &w->routing, p->batch, first, m, y, input, p->to, p->observer);
	if (norm->n && p->to == PROJECTIONS)
		add_normed(p, norm, m, x);
}

/* Whether the input of a residual branch is x itself, without a norm. */
static bool is_bare(const struct block *b, enum norm_position place)
{
	return b->stack->norms_last || !b->norm[place].n;
}

/* y = the norm at `place` of x. */
static void norm_rows(const struct block_pass *p, enum norm_position place, size_t m, float *y,
	const float *x)
{
	size_t n = p->b->stack->hidden;

	norm_apply(&p->b->norm[place], m, (float (*)[n])y, (const float (*)[n])x);
}

/* The MLP of rows first .. first + m - 1. input NULL: it is the norm of x. */
static void run_mlp(const struct block_pass *p, size_t first, size_t m, float *x, const float *input)
{
	const struct stack *s = p->b->stack;
	struct work *w = p->w;
	const bool last = s->norms_last;

	if (!input && !is_bare(p->b, BEFORE_MLP))
		norm_rows(p, BEFORE_MLP, m, w->normed, x);
	input = input && !last ? input : is_bare(p->b, BEFORE_MLP) ? x : w->normed;
	if (stack_sparse(s, p->b->index)) {
		run_mixture(p, first, m, x, input);
		return;
	}
	if (!project(p, PROJECTION_GATE_UP, first, m, w->wide, input, false))
		return;
	run_activation(s, w, m);
	if (add_branch(p, PROJECTION_DOWN, AFTER_MLP, first, m, x) && last)
		norm_rows(p, BEFORE_MLP, m, x, x);
}

/* The residual branch of attention for all rows; norms of the block's input are done. */
static void run_attention(const struct block_pass *p, float *x, struct cache *cache)
{
	const bool last = p->b->stack->norms_last;
	const size_t m = p->batch->rows;

	if (!project(p, PROJECTION_QKV, 0, m, p->w->wide, is_bare(p->b, BEFORE_ATTENTION) ? x : p->w->normed,
		false))
		return;
	attend(p->b, p->w, p->batch, cache);
	if (add_branch(p, PROJECTION_OUTPUT, AFTER_ATTENTION, 0, m, x) && last)
		norm_rows(p, BEFORE_ATTENTION, m, x, x);
}

static void run_pass(const struct block_pass *p, float *x, struct cache *cache, enum projection_name from)
{
	const struct stack *s = p->b->stack;
	struct work *w = p->w;
	size_t m = p->batch->rows, hidden = s->hidden;
	/* input of the MLP, if it does not depend on attention */
	const float *input = !s->parallel ? NULL : w->second ? w->second : w->normed;
	const bool mlp = p->to > PROJECTION_OUTPUT, whole = p->to == PROJECTIONS;

	assert(!cache || !p->batch->index);
	if (from == PROJECTION_QKV && !is_bare(p->b, BEFORE_ATTENTION))
		norm_rows(p, BEFORE_ATTENTION, m, w->normed, x);
	if (w->second && mlp)
		norm_rows(p, BEFORE_MLP, m, w->second, x);
	if (from == PROJECTION_QKV && (!input || !mlp || whole))
		run_attention(p, x, cache);
	for (size_t i = 0, rows; mlp && i < m; i += rows) {
		rows = min(w->piece, m - i);
		run_mlp(p, i, rows, x + i * hidden, input ? input + i * hidden : NULL);
	}
}

void block_forward(const struct block *b, struct work *w, const struct batch *batch,
	float x[batch->rows][b->stack->hidden], struct cache *cache, const struct observer *observer)
{
	run_pass(&(struct block_pass){ b, w, batch, observer, PROJECTIONS }, x[0], cache, PROJECTION_QKV);
}

void block_stage(const struct block *b, struct work *w, const struct batch *batch,
	float x[batch->rows][b->stack->hidden], struct stage stage, const struct observer *observer)
{
	run_pass(&(struct block_pass){ b, w, batch, observer, stage.to }, x[0], NULL, stage.from);
}

void block_project(const struct block *b, struct work *w, const struct batch *batch, float y[],
	const float x[], struct stage stage, const struct observer *observer)
{
	const struct stack *s = b->stack;
	const struct norm *norm = &b->norm[BEFORE_MLP];
	const struct block_pass p = { b, w, batch, observer, stage.to };
	const size_t in = stack_in(s, PROJECTION_GATE_UP), out = stack_out(s, ROLE_DOWN);
	const bool single = !stack_width(s, PROJECTION_DOWN);	/* one layer, which writes y */

	for (size_t i = 0, m; i < batch->rows; i += m) {
		const float *input = x + i * in;

		m = min(w->piece, batch->rows - i);
		if (norm->n) {
			norm_apply(norm, m * in / norm->n, (float (*)[norm->n])w->normed,
				(const float (*)[norm->n])input);
			input = w->normed;
		}
		if (!project(&p, PROJECTION_GATE_UP, i, m, single ? y + i * out : w->wide, input, false))
			return;
		if (single)
			continue;
		run_activation(s, w, m);
		if (!project(&p, PROJECTION_DOWN, i, m, y + i * out, w->middle, false))
			return;
	}
}

enum projection_name block_resume(const struct stack *s, struct stage done)
{
	return !s->parallel && done.to > PROJECTION_OUTPUT ? PROJECTION_GATE_UP : PROJECTION_QKV;
}
