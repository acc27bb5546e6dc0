/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invariant_reference.h -- the logits of a model of any architecture, in plain float64 loops
 *
 *	struct model m;		its configuration, its layers and norms in double, its tokens (and an image)
 *	double *logits = run(&m);	[TOKENS][vocab]; free() it
 *
 * Tokens and heads are computed one after the other, without a cache and without rounding:
 *
 *	x_t = embedding of token t, plus that of its position if the architecture has one
 *	each block (run_block()), f the attention and then the MLP:
 *		x ← x + after(f(before(x)))	norms before and after; parallel: both f read one x
 *		x ← before(x + f(x))		if norms come last (norms_last)
 *	logits = W_head norm(x), capped: c tanh(logits/c)
 *
 *	a layer		W x + b, with x ← x H/√order first for an online Hadamard; run_layer()
 *	norms		(x - mean)/√(mean (x - mean)² + ε) α + β; RMS norms without mean and β; run_norm()
 *	positions	pairs (x_i, x_i+half) rotated by position · frequency_i (RoPE, Su et al., 2021);
 *			rotate()
 *	attention	Σ_k softmax_k(a q·k, capped) v_k over the rows k that a row attends to: rows up to
 *			itself, of a window, or all; one key head for several query heads; attend()
 *	MLP		W_down (act(W_gate x) · W_up x), or W_down act(W_up x); run_branch()
 *	experts		Σ share_e MLP_e(x) over the selected experts, with shares by the router's softmax;
 *			run_mixture()
 *	images		patches through the encoder's blocks and the projector, in place of the embeddings
 *			of all tokens except the first and the last; run_images()
 *
 * struct architecture and struct stack (model/architecture.h, model/stack.h) specify the members of a block.
 * tests/forward.c and tests/vision.c compare logits of the same models with transformers. From lib it also
 * uses the frequencies of positions and the rows of Hadamard matrices, but no other arithmetic.
 */
#ifndef TESTS_INVARIANT_REFERENCE_H
#define TESTS_INVARIANT_REFERENCE_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "model/architecture.h"
#include "model/config.h"
#include "model/layer_ref.h"
#include "model/residual.h"
#include "model/rope.h"
#include "model/stack.h"
#include "num/hadamard.h"
#include "transform/invariant.h"
#include "vision/vision.h"

enum { TOKENS = 9, ROWS = 17, WIDEST = 256 };	/* rows of texts, and max rows of images */

struct layer_of { double *w, *bias; size_t online; };

struct model {
	struct architecture arch;	/* a copy for the test */
	struct architecture encoder;	/* the same for its encoder */
	struct config config;
	const struct stack *now;	/* the stack whose blocks run */
	const size_t *order;		/* [TOKENS] the token at each position; NULL: in order */
	struct residual at;
	struct layer_of *layer;		/* [at.layers] */
	struct wide_norm *norm;		/* [at.norms] */
	struct wide_norm *head_norm;	/* [blocks][2] */
	double stream_mean;		/* the largest |mean| of the stream at the input of a norm */
	int32_t id[TOKENS];
	double *patch;			/* [ROWS][numbers] of an image */
};

static size_t find_layer(const struct model *m, const char *path)
{
	size_t i = 0;

	while (i < m->at.layers && strcmp(m->at.layer[i].path, path))
		i++;
	return i;
}

static size_t find(const struct model *m, size_t block, enum role role, size_t expert)
{
	const struct stack *s = m->now;

	for (const struct linear_row *row = s->arch->linear; row->name; row++)
		if (row->role == role && stack_has(s, block, row)) {
			char *path = stack_expert_path(s, block, row->name, expert);
			size_t i = find_layer(m, path);

			free(path);
			return i;
		}
	return m->at.layers;
}

/* y = x H/√order for each block of `order` numbers, from rows of the matrix H/√order. */
static void pass_online(size_t n, size_t order, double y[n], const double x[n])
{
	struct hadamard h;
	double *row = xalloc(order, sizeof *row);
	void *memory;

	assert_true(hadamard_choose(&h, order, order));
	hadamard_build(&h, memory = xalloc(hadamard_bytes(&h), 1));
	memset(y, 0, n * sizeof *y);
	for (size_t i = 0; i < order; i++) {
		memset(row, 0, order * sizeof *row);
		row[i] = 1;
		hadamard_product_double(&h, false, 1, order, (double (*)[order])row);
		for (size_t from = 0; from < n; from += order)
			for (size_t j = 0; j < order; j++)
				y[from + j] += x[from + i] * row[j];
	}
	free(memory), free(row);
}

/* y = x Wᵀ + b; false: the block has no such layer. */
static bool run_layer(const struct model *m, size_t i, double *y, const double *x)
{
	const struct residual_layer *l = &m->at.layer[i];
	double rotated[WIDEST];

	if (i == m->at.layers)
		return false;
	if (m->layer[i].online) {
		pass_online(l->in, m->layer[i].online, rotated, x);
		x = rotated;
	}
	for (size_t o = 0; o < l->out; o++) {
		y[o] = m->layer[i].bias ? m->layer[i].bias[o] : 0;
		for (size_t j = 0; j < l->in; j++)
			y[o] += m->layer[i].w[o * l->in + j] * x[j];
	}
	return true;
}

static bool run_role(const struct model *m, size_t block, enum role role, size_t expert, double *y,
	const double *x)
{
	return run_layer(m, find(m, block, role, expert), y, x);
}

static void run_norm(const struct wide_norm *n, double eps, size_t times, double *x)
{
	for (; times--; x += n->n) {
		double mean = 0, square = 0;

		for (size_t i = 0; i < n->n && n->kind == NORM_LAYER; i++)
			mean += x[i] / (double)n->n;
		for (size_t i = 0; i < n->n; i++)
			square += (x[i] - mean) * (x[i] - mean) / (double)n->n;
		for (size_t i = 0; i < n->n; i++)
			x[i] = (x[i] - mean) / sqrt(square + eps) * n->gain[i] + (n->shift ? n->shift[i] : 0);
	}
}

/* Applies the norm of this name, if present, to the stream or to the output of a branch. */
static bool run_norm_at(struct model *m, const char *path, double *x)
{
	const struct stack *s = m->now;

	for (size_t i = 0; i < m->at.norms; i++) {
		double mean = 0;

		if (strcmp(m->at.norm[i].path, path))
			continue;
		for (size_t j = 0; j < s->hidden; j++)
			mean += x[j] / (double)s->hidden;
		if (m->at.norm[i].use == NORM_PRE)
			m->stream_mean = fmax(m->stream_mean, fabs(mean));
		run_norm(&m->norm[i], s->eps, 1, x);
		return true;
	}
	return false;
}

static bool run_place(struct model *m, size_t block, enum norm_position place, double *x)
{
	char *path = m->now->arch->norm[place] ? stack_path(m->now, block, m->now->arch->norm[place]) : NULL;
	const bool there = path && run_norm_at(m, path, x);

	free(path);
	return there;
}

static void rotate(const struct stack *s, size_t block, size_t position, size_t heads, double *x)
{
	double frequency[WIDEST];
	const size_t half = s->rotary / 2;
	const double scale = rope_frequencies(&s->rope[stack_rope(s, block)], s->rotary, TOKENS, frequency);

	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < half; i++) {
			double angle = (double)position * frequency[i], *a = x + h * s->head_dim + i;
			const double was = *a, other = a[half];

			a[0] = scale * (was * cos(angle) - other * sin(angle));
			a[half] = scale * (other * cos(angle) + was * sin(angle));
		}
}

/* The position of a row before reordering, counted as in texts. */
static size_t index_of(const struct model *m, size_t row)
{
	return m->order && m->now == config_last(&m->config) ? m->order[row] : row;
}

/* Queries, keys and values of a token, concatenated. */
static void run_qkv(const struct model *m, size_t block, size_t t, double *y, const double *x)
{
	const struct stack *s = m->now;
	const size_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;

	if (!run_role(m, block, ROLE_QKV, 0, y, x)) {
		run_role(m, block, ROLE_Q, 0, y, x);
		run_role(m, block, ROLE_K, 0, y + q, x);
		run_role(m, block, ROLE_V, 0, y + q + kv, x);
	}
	for (int i = 0; i < 2 && m->now->arch->head_norm[0]; i++) {
		const struct wide_norm *n = &m->head_norm[2 * block + (size_t)i];

		run_norm(n, s->eps, (i ? kv : q) / n->n, y + (i ? q : 0));
	}
	if (s->rotary)
		rotate(s, block, index_of(m, t), s->heads + s->kv_heads, y);
}

/* Whether row p attends to row t. */
static bool sees(const struct model *m, size_t block, size_t p, size_t t)
{
	const size_t window = stack_window(m->now, block), q = index_of(m, p), k = index_of(m, t);

	return m->now->arch->bidirectional || (k <= q && (!window || q - k < window));
}

static void attend(const struct model *m, size_t block, size_t p, size_t rows, double *y, const double *qkv,
	size_t width)
{
	const struct stack *s = m->now;
	const size_t d = s->head_dim, q = s->heads * d, kv = s->kv_heads * d;

	memset(y, 0, q * sizeof *y);
	for (size_t h = 0; h < s->heads; h++) {
		const size_t at = q + h / (s->heads / s->kv_heads) * d;
		double weight[ROWS], sum = 0;

		for (size_t t = 0; t < rows; t++) {
			double z = 0;

			for (size_t i = 0; i < d; i++)
				z += qkv[p * width + h * d + i] * qkv[t * width + at + i];
			z *= s->attention_scale;
			z = s->attention_cap > 0 ? s->attention_cap * tanh(z / s->attention_cap) : z;
			sum += weight[t] = sees(m, block, p, t) ? exp(z) : 0;
		}
		for (size_t t = 0; t < rows; t++)
			for (size_t i = 0; i < d; i++)
				y[h * d + i] += weight[t] / sum * qkv[t * width + at + kv + i];
	}
}

static double activate(enum activation a, double x)
{
	switch (a) {
	case ACTIVATION_SILU:	return x / (1 + exp(-x));
	case ACTIVATION_GELU:	return 0.5 * x * (1 + erf(x / sqrt(2)));
	case ACTIVATION_RELU:	return x > 0 ? x : 0;
	default:	return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
	}
}

/* y += share · down(act(gate) · up) */
static void run_branch(const struct model *m, size_t block, const enum role role[3], size_t expert,
	double share, double *y, const double *x)
{
	const struct stack *s = m->now;
	const size_t last = find(m, block, role[2], expert), n = m->at.layer[last].in;
	double gate[WIDEST], up[WIDEST], down[WIDEST];
	const bool gated = run_role(m, block, role[0], expert, gate, x);

	if (!run_role(m, block, role[1], expert, up, x)) {	/* a projector of one layer */
		run_layer(m, last, y, x);
		return;
	}
	for (size_t i = 0; i < n; i++)
		up[i] = gated ? activate(s->activation, gate[i]) * up[i] : activate(s->activation, up[i]);
	run_layer(m, last, down, up);
	for (size_t i = 0; i < m->at.layer[last].out; i++)
		y[i] += share * down[i];
}

static void run_mixture(const struct model *m, size_t block, double *y, const double *x)
{
	static const enum role of_expert[] = { ROLE_EXPERT_GATE, ROLE_EXPERT_UP, ROLE_EXPERT_DOWN };
	static const enum role of_shared[] = { ROLE_SHARED_GATE, ROLE_SHARED_UP, ROLE_SHARED_DOWN };
	const struct stack *s = m->now;
	double logit[WIDEST], sum = 0, among = 0, all;
	size_t rank[WIDEST] = { 0 };

	run_role(m, block, ROLE_ROUTER, 0, logit, x);
	for (size_t e = 0; e < s->experts; e++) {
		for (size_t o = 0; o < s->experts; o++)
			rank[e] += logit[o] > logit[e];
		sum += exp(logit[e]);
		among += rank[e] < s->chosen ? exp(logit[e]) : 0;
	}
	for (size_t e = 0; e < s->experts; e++)
		if (rank[e] < s->chosen)
			run_branch(m, block, of_expert, e, exp(logit[e]) / (s->normalized ? among : sum), y,
				x);
	if (run_role(m, block, ROLE_SHARED_SWITCH, 0, &all, x))
		run_branch(m, block, of_shared, 0, 1 / (1 + exp(-all)), y, x);
}

static void run_mlp(const struct model *m, size_t block, double *y, const double *x)
{
	static const enum role dense[] = { ROLE_GATE, ROLE_UP, ROLE_DOWN };

	memset(y, 0, m->now->hidden * sizeof *y);
	if (stack_sparse(m->now, block))
		run_mixture(m, block, y, x);
	else
		run_branch(m, block, dense, 0, 1, y, x);
}

static void add(size_t n, double *x, const double *y)
{
	for (size_t i = 0; i < n; i++)
		x[i] += y[i];
}

static void run_block(struct model *m, size_t block, size_t rows, double *x)
{
	const struct stack *s = m->now;
	const size_t n = s->hidden, width = stack_out(s, ROLE_QKV);
	double *qkv = xalloc(rows * width, sizeof *qkv);

	for (size_t t = 0; t < rows; t++) {
		double input[WIDEST];

		memcpy(input, x + t * n, n * sizeof *x);
		if (!s->norms_last)
			run_place(m, block, BEFORE_ATTENTION, input);
		run_qkv(m, block, t, qkv + t * width, input);
	}
	for (size_t t = 0; t < rows; t++) {
		double attended[WIDEST], attention[WIDEST], input[WIDEST], mlp[WIDEST], *at = x + t * n;

		attend(m, block, t, rows, attended, qkv, width);
		run_role(m, block, ROLE_OUTPUT, 0, attention, attended);
		run_place(m, block, AFTER_ATTENTION, attention);
		if (!s->parallel)
			add(n, at, attention);
		if (s->norms_last)
			run_place(m, block, BEFORE_ATTENTION, at);
		memcpy(input, at, n * sizeof *x);
		if (!s->norms_last && !run_place(m, block, BEFORE_MLP, input))
			run_place(m, block, BEFORE_ATTENTION, input);
		run_mlp(m, block, mlp, input);
		run_place(m, block, AFTER_MLP, mlp);
		if (s->parallel)
			add(n, at, attention);
		add(n, at, mlp);
		if (s->norms_last)
			run_place(m, block, BEFORE_MLP, at);
	}
	free(qkv);
}

/* The encoder's rows of the image, x [ROWS][hidden]; returns their number. */
static size_t run_encoder(struct model *m, double *x)
{
	const struct config *c = &m->config;
	const struct architecture *a = m->now->arch;
	const size_t n = m->now->hidden, class = !!a->class_token, rows = class + ROWS - 1;
	const double *const position = a->position ? m->layer[find_layer(m, a->position)].w : NULL;

	if (class)
		memcpy(x, m->layer[find_layer(m, a->class_token)].w, n * sizeof *x);
	for (size_t t = class; t < rows; t++)
		run_layer(m, find_layer(m, a->embedding), x + t * n,
			m->patch + t * vision_numbers(&c->vision));
	for (size_t t = 0; t < rows; t++) {
		if (position)
			add(n, x + t * n, position + t * n);
		if (a->embedding_norm)
			run_norm_at(m, a->embedding_norm, x + t * n);
	}
	for (size_t i = 0; i < m->now->blocks; i++)
		run_block(m, i, rows, x);
	return rows;
}

/* Embeddings of the image for all tokens except the first and the last, as many as there are, x
 * [TOKENS][hidden]. */
static void run_images(struct model *m, double *x)
{
	static const enum role mlp[] = { ROLE_GATE, ROLE_UP, ROLE_DOWN };
	const struct vision *v = &m->config.vision;
	const struct stack *const encoder = config_encoder(&m->config), *const last = config_last(&m->config);
	const struct stack *const projector = config_projector(&m->config);
	const size_t n = encoder->hidden, each = projector->merged ? projector->merged : 1;
	double features[ROWS * WIDEST], made[WIDEST];
	size_t rows;

	m->now = encoder;
	rows = run_encoder(m, features);
	m->now = projector;
	for (size_t t = v->skipped; t < rows; t++)
		run_place(m, 0, BEFORE_MLP, features + t * n);
	for (size_t t = 0; t < TOKENS - 2 && v->skipped + (t + 1) * each <= rows; t++) {
		memset(made, 0, sizeof made);
		run_branch(m, 0, mlp, 0, 1, made, features + (v->skipped + t * each) * n);
		memcpy(x + (t + 1) * last->hidden, made, last->hidden * sizeof *x);
	}
	m->now = last;
}

/* Moves rows from the order of the text to the order in which they run. */
static void reorder(const struct model *m, size_t n, double *x)
{
	double *y = memcpy(xalloc(TOKENS * n, sizeof *y), x, TOKENS * n * sizeof *y);

	for (size_t t = 0; m->order && t < TOKENS; t++)
		memcpy(x + t * n, y + m->order[t] * n, n * sizeof *y);
	free(y);
}

/* [TOKENS][vocab]; free() it. */
static double *run(struct model *m)
{
	const struct config *c = &m->config;
	const struct stack *const s = config_last(c);
	const size_t n = s->hidden, table = find_layer(m, c->arch->embedding);
	const size_t place = c->arch->position ? find_layer(m, c->arch->position) : 0;
	double *x = xalloc(TOKENS * n, sizeof *x), *y = xalloc(TOKENS * c->vocab, sizeof *y);

	m->stream_mean = 0;
	for (size_t t = 0; t < TOKENS; t++) {
		for (size_t i = 0; i < n; i++)
			x[t * n + i] = c->embedding_scale * m->layer[table].w[(size_t)m->id[t] * n + i];
		if (c->arch->position)
			add(n, x + t * n, m->layer[place].w + (t + c->arch->position_offset) * n);
	}
	m->now = s;
	if (c->vision.class)
		run_images(m, x);
	reorder(m, n, x);
	for (size_t i = 0; i < s->blocks; i++)
		run_block(m, i, TOKENS, x);
	for (size_t t = 0; t < TOKENS; t++) {
		if (stack_final_norm(s))
			run_norm_at(m, stack_final_norm(s), x + t * n);
		run_layer(m, find_layer(m, c->arch->head), y + t * c->vocab, x + t * n);
		for (size_t i = t * c->vocab; c->logit_cap > 0 && i < (t + 1) * c->vocab; i++)
			y[i] = c->logit_cap * tanh(y[i] / c->logit_cap);
	}
	free(x);
	return y;
}
#endif
