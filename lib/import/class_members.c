/* SPDX-License-Identifier: GPL-3.0-or-later */
/* class_members.c -- see class_members.h */
#include "import/class_members.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/layer_ref.h"

struct visitor {
	const struct config *config;
	void (*visit)(void *arg, const struct class_member *m);
	void *arg;
};

/* The weight, and a bias of n elements, wanted or not. */
static void visit_both(const struct visitor *v, struct class_member m, bool bias, size_t n)
{
	m.member = "weight";
	m.wanted = true;
	v->visit(v->arg, &m);
	v->visit(v->arg, &(struct class_member){ .group = m.group, .member = "bias", .from = m.from,
		.rows = n, .wanted = bias });
}

static void visit_layer(const struct visitor *v, const struct stack *s, size_t block,
	const struct linear_row *row, size_t expert)
{
	const size_t rows = stack_rows(s, row).rows, in = stack_in(s, row->projection);
	const bool transposed = row->order == ROWS_TRANSPOSED;
	char *path = stack_expert_path(s, block, row->name, expert);
	char *from = stack_expert_path(s, block, row->fused ? row->fused : row->name, expert);

	visit_both(v, (struct class_member){ .group = path, .from = from, .rows = transposed ? in : rows,
		.columns = transposed ? rows : in }, s->bias[row->role], rows);
	free(from);
	free(path);
}

/* The norm of that name below the block; NULL: no norm. */
static void visit_norm(const struct visitor *v, const struct stack *s, size_t block, const char *name,
	size_t n)
{
	char *path = name ? stack_path(s, block, name) : NULL;

	if (path)
		visit_both(v, (struct class_member){ .group = path, .rows = n },
			s->arch->norm_kind == NORM_LAYER, n);
	free(path);
}

static void visit_block(const struct visitor *v, const struct stack *s, size_t block)
{
	const struct architecture *a = s->arch;

	for (int i = 0; i < NORM_POSITIONS; i++)
		visit_norm(v, s, block, a->norm[i], s->hidden);
	for (int i = 0; i < 2; i++)
		visit_norm(v, s, block, a->head_norm[i], s->head_dim);
	for (const struct linear_row *row = a->linear; row->name; row++)
		for (size_t e = 0; stack_has(s, block, row) && e < stack_copies(s, row); e++)
			visit_layer(v, s, block, row, e);
}

/* The input of the vision encoder: the embedding of patches, positions, class token, norm. */
static void visit_images(const struct visitor *v)
{
	const struct vision *vision = &v->config->vision;
	const struct stack *s = config_encoder(v->config);
	const struct architecture *a = s->arch;

	visit_both(v, (struct class_member){ .group = a->embedding, .rows = s->hidden,
		.columns = vision_numbers(vision), .patches = true }, a->embedding_bias, s->hidden);
	if (a->position)
		visit_both(v, (struct class_member){ .group = a->position, .rows = vision->rows,
			.columns = s->hidden }, false, 0);
	if (a->class_token) {
		char *group = xformat("%s", a->class_token), *member = strrchr(group, '/');

		*member++ = 0;
		v->visit(v->arg, &(struct class_member){ .group = group, .member = member,
			.rows = s->hidden, .wanted = true });
		free(group);
	}
	if (a->embedding_norm)
		visit_both(v, (struct class_member){ .group = a->embedding_norm, .rows = s->hidden }, true,
			s->hidden);
}

void class_members(const struct config *c, void (*visit)(void *arg, const struct class_member *m), void *arg)
{
	const struct visitor v = { c, visit, arg };
	const struct architecture *a = c->arch;
	const struct stack *last = config_last(c);
	const size_t hidden = last->hidden;

	if (c->vision.class)
		visit_images(&v);
	visit_both(&v, (struct class_member){ .group = a->embedding, .rows = c->vocab, .columns = hidden },
		false, 0);
	if (a->position)
		visit_both(&v, (struct class_member){ .group = a->position,
			.rows = c->positions + a->position_offset, .columns = hidden }, false, 0);
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			visit_block(&v, s, i);
	if (stack_final_norm(last))
		visit_both(&v, (struct class_member){ .group = stack_final_norm(last), .rows = hidden },
			a->norm_kind == NORM_LAYER, hidden);
	visit_both(&v, (struct class_member){ .group = a->head, .rows = c->vocab, .columns = hidden },
		false, 0);
}
