/* SPDX-License-Identifier: GPL-3.0-or-later */
/* residual.c -- see residual.h */
#include "model/residual.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/layer_list.h"
#include "model/layer_ref.h"

/* The stack of the stream that the layers of s read. */
static const struct stack *stream_stack(const struct config *c, const struct stack *s)
{
	return s->arch->projector ? config_encoder(c) : s;
}

static struct stream stream_of(const struct config *c, const struct stack *s)
{
	const struct stack *owner = stream_stack(c, s), *projector = config_projector(c);
	const bool last = owner == config_last(c);
	const char *const *norm = owner->arch->norm;

	return (struct stream){ .index = (size_t)(owner - c->stack),
		.normed = (!owner->norms_last && (norm[BEFORE_ATTENTION] || norm[BEFORE_MLP])) ||
			(last ? stack_final_norm(owner) : projector->arch->norm[BEFORE_MLP]) };
}

/* Adds a norm, and takes ownership of the path; NULL: no norm. Returns its index. */
static int64_t add_norm(struct residual *r, const struct config *c, const struct stack *s, char *path,
	enum norm_use use)
{
	if (!path)
		return RESIDUAL_NONE;
	r->norm = xgrow(r->norm, r->norms + 1, sizeof *r->norm);
	r->norm[r->norms] = (struct residual_norm){ path, s, stream_of(c, s), use };
	return (int64_t)r->norms++;
}

/* Adds a layer, and takes ownership of l->path. */
static void add_residual(struct residual *r, struct residual_layer l)
{
	r->layer = xgrow(r->layer, r->layers + 1, sizeof *r->layer);
	r->layer[r->layers++] = l;
}

/* Adds a table with rows that are added to the stream, through a norm or directly. */
static void add_table(struct residual *r, const struct config *c, const struct stack *s, const char *path,
	size_t rows, int64_t norm)
{
	const struct stream stream = stream_of(c, s);

	add_residual(r, (struct residual_layer){ .path = xformat("%s", path), .stack = s, .out = rows,
		.in = s->hidden, .columns = CHANNELS_RESIDUAL, .reads = stream, .adds = stream,
		.table = true, .norm = norm, .role = ROLES, .source = RESIDUAL_NONE });
}

void residual_embedding(struct residual *r, const struct config *c)
{
	add_table(r, c, config_last(c), c->arch->embedding, c->vocab, RESIDUAL_NONE);
}

void residual_position(struct residual *r, const struct config *c)
{
	add_table(r, c, config_last(c), c->arch->position, 0, RESIDUAL_NONE);
}

void residual_images(struct residual *r, const struct config *c)
{
	const struct stack *s = config_encoder(c);
	const struct architecture *a = s->arch;
	const struct stream stream = stream_of(c, s);
	const int64_t norm = add_norm(r, c, s, a->embedding_norm ?
		xformat("%s", a->embedding_norm) : NULL, NORM_BRANCH);

	add_residual(r, (struct residual_layer){ .path = xformat("%s", a->embedding), .stack = s,
		.out = s->hidden, .in = vision_numbers(&c->vision), .columns = CHANNELS_OWN,
		.rows = CHANNELS_RESIDUAL, .reads = stream, .adds = stream, .norm = norm, .role = ROLES,
		.source = RESIDUAL_NONE });
	if (a->position)
		add_table(r, c, s, a->position, c->vision.rows, norm);
	if (a->class_token) {
		add_table(r, c, s, a->class_token, 1, norm);
		r->layer[r->layers - 1].vector = true;
	}
}

static enum channels columns_of(enum projection_name projection)
{
	switch (projection) {
	case PROJECTION_OUTPUT:		return CHANNELS_VALUE;
	case PROJECTION_DOWN:
	case PROJECTION_SHARED_DOWN:
	case PROJECTION_EXPERT_DOWN:	return CHANNELS_INNER;
	default:			return CHANNELS_RESIDUAL;
	}
}

static enum channels rows_of_role(enum role role)
{
	switch (role) {
	case ROLE_V:
	case ROLE_QKV:		return CHANNELS_VALUE;
	case ROLE_OUTPUT:
	case ROLE_DOWN:
	case ROLE_SHARED_DOWN:
	case ROLE_EXPERT_DOWN:	return CHANNELS_RESIDUAL;
	default:		return CHANNELS_OWN;
	}
}

/* Adds the norms of a block; norm: their indices by place. */
static void add_norms(struct residual *r, const struct config *c, const struct stack *s, size_t block,
	int64_t norm[NORM_POSITIONS])
{
	for (int i = 0; i < NORM_POSITIONS; i++) {
		const bool before = i == BEFORE_ATTENTION || i == BEFORE_MLP;
		const enum norm_use use = !before ? NORM_BRANCH : s->norms_last ? NORM_POST : NORM_PRE;
		const char *name = s->arch->norm[i];

		norm[i] = add_norm(r, c, s, name ? stack_path(s, block, name) : NULL, use);
	}
	if (norm[BEFORE_MLP] == RESIDUAL_NONE)
		norm[BEFORE_MLP] = norm[BEFORE_ATTENTION];
}

/* at: the index of the block's first layer of each role. */
static int64_t source_of(const struct stack *s, enum role role, const int64_t at[ROLES])
{
	switch (role) {
	case ROLE_OUTPUT:
		return at[ROLE_V] == RESIDUAL_NONE ? at[ROLE_QKV] : at[ROLE_V];
	case ROLE_DOWN:
		return at[ROLE_GATE] == RESIDUAL_NONE && s->activation != ACTIVATION_RELU ? RESIDUAL_NONE :
			at[ROLE_UP];
	case ROLE_SHARED_DOWN:	return at[ROLE_SHARED_UP];
	case ROLE_EXPERT_DOWN:	return at[ROLE_EXPERT_UP];
	default:		return RESIDUAL_NONE;
	}
}

size_t residual_channel(const struct residual_layer *l, size_t j)
{
	return j / (l->shared * l->width) * l->width + j % l->width;
}

void residual_block(struct residual *r, const struct config *c, const struct stack *s, size_t block)
{
	const struct stream reads = stream_of(c, s);
	const struct stream adds = s->arch->projector ? stream_of(c, config_last(c)) : reads;
	int64_t norm[NORM_POSITIONS], at[ROLES];

	add_norms(r, c, s, block, norm);
	for (int i = 0; i < ROLES; i++)
		at[i] = RESIDUAL_NONE;
	for (const struct linear_row *row = s->arch->linear; row->name; row++) {
		const enum channels columns = columns_of(row->projection), rows = rows_of_role(row->role);
		const bool attention = row->projection < PROJECTION_GATE_UP;
		struct residual_layer l = { .stack = s, .out = stack_out(s, row->role),
			.in = stack_in(s, row->projection), .columns = columns, .rows = rows,
			.reads = reads, .adds = adds, .norm = RESIDUAL_NONE, .role = row->role,
			.source = source_of(s, row->role, at),
			.shared = 1, .width = stack_in(s, row->projection) };

		if (!stack_has(s, block, row))
			continue;
		if (row->role == ROLE_OUTPUT && s->kv_heads)
			l.shared = s->heads / s->kv_heads, l.width = s->head_dim;
		if (rows == CHANNELS_VALUE)
			l.first = l.out - stack_out(s, ROLE_V);
		if (rows == CHANNELS_RESIDUAL && columns != CHANNELS_RESIDUAL)
			l.norm = norm[attention ? AFTER_ATTENTION : AFTER_MLP];
		else if (!s->norms_last)
			l.norm = norm[attention ? BEFORE_ATTENTION : BEFORE_MLP];
		at[row->role] = (int64_t)r->layers;
		for (size_t e = 0; e < stack_copies(s, row); e++) {
			l.path = stack_expert_path(s, block, row->name, e);
			add_residual(r, l);
			l.source += l.source != RESIDUAL_NONE;
		}
	}
}

void residual_end(struct residual *r, const struct config *c)
{
	const struct stack *s = config_last(c);
	const struct stream stream = stream_of(c, s);
	const char *norm = stack_final_norm(s);

	add_residual(r, (struct residual_layer){ .path = xformat("%s", c->arch->head), .stack = s,
		.out = c->vocab, .in = s->hidden, .columns = CHANNELS_RESIDUAL, .reads = stream,
		.adds = stream, .role = ROLES, .source = RESIDUAL_NONE,
		.norm = add_norm(r, c, s, norm ? xformat("%s", norm) : NULL, NORM_PRE) });
}

/* The contents of a part: a part of a file can read the rest of the file, too. */
struct residual_found {
	const struct part *part;
	const struct config *config;
	bool images, embedding, position, end;
	bool *block;			/* [blocks] */
};

static void look_for_group(void *arg, const char *path)
{
	struct residual_found *y = arg;
	const struct config *c = y->config;
	const struct architecture *a = c->arch;
	size_t block;
	const struct stack *s = layer_block(y->part, c, path, &block), *encoder = config_encoder(c);

	y->images |= encoder && !strcmp(path, encoder->arch->embedding);
	y->embedding |= !strcmp(path, a->embedding);
	y->position |= a->position && !strcmp(path, a->position);
	y->end |= !strcmp(path, config_end(c)) || !strcmp(path, a->head);
	if (s)
		y->block[s->first + block] = true;
}

struct residual residual_of(const struct part *part, const struct config *c)
{
	struct residual_found found = { .part = part, .config = c, .block = xalloc(c->blocks,
		sizeof *found.block) };
	struct residual r = { 0 };

	part_groups(part, look_for_group, &found);
	if (found.images)
		residual_images(&r, c);
	if (found.embedding)
		residual_embedding(&r, c);
	if (found.position)
		residual_position(&r, c);
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			if (found.block[s->first + i])
				residual_block(&r, c, s, i);
	if (found.end)
		residual_end(&r, c);
	free(found.block);
	return r;
}

void residual_free(struct residual *r)
{
	for (size_t i = 0; i < r->norms; i++)
		free(r->norm[i].path);
	for (size_t i = 0; i < r->layers; i++)
		free(r->layer[i].path);
	free(r->norm), free(r->layer);
	*r = (struct residual){ 0 };
}
