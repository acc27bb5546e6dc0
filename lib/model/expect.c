/* SPDX-License-Identifier: GPL-3.0-or-later */
/* expect.c -- a checkpoint held against its config; see expect.h */
#include "model/expect.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

/* A group of the tree, and the one of the source that has its tensors: another where layers are fused. */
struct group {
	const char *path, *from;
	const struct stack *stack;
	const struct linear_row *row;	/* NULL: no linear layer */
};

static _Noreturn void missing(const struct checkpoint *k, const char *group, const char *member)
{
	char *path = xformat("%s/%s", group, member);

	for (char *p = path; *p; p++)
		*p = *p == '/' ? '.' : *p;
	die("%s: %s: is missing, a %s needs it", k->source->path, path + 1, k->config->arch->name);
}

/* The member of a group, in the source [rows, columns], or [rows] where columns is 0. */
static void expect(struct checkpoint *k, const struct group *g, const char *member, size_t rows,
	size_t columns)
{
	struct source *s = k->source;
	char *path = xformat("%s/%s", g->path, member);
	struct entry *e = checkpoint_find(k, path);
	const char *file;
	struct tensor t;

	if (!e || (g->from != g->path && !e->row))
		missing(k, g->from, member);
	free(path);
	e->known = true;
	e->stack = g->stack;
	e->row = g->row;
	file = s->kind->file(s, e->name);
	t = s->kind->describe(s, e->name);
	if (t.type == TENSOR_ANY)
		t = s->kind->read(s, e->name);	/* says why it cannot be read */
	if (columns && (t.rank != 2 || t.dim[0] != rows || t.dim[1] != columns))
		die("%s: %s: its shape is not the [%zu, %zu] of config.json", file, e->name, rows, columns);
	if (!columns && (t.rank != 1 || t.dim[0] != rows))
		die("%s: %s: its shape is not the [%zu] of config.json", file, e->name, rows);
}

/* A bias that the class has, or has not. */
static void expect_bias(struct checkpoint *k, bool has, const struct group *g, size_t n)
{
	char *path = xformat("%s/bias", g->path);
	struct entry *e = checkpoint_find(k, path);

	if (has)
		expect(k, g, "bias", n, 0);
	else if (e)
		e->known = e->unused = true;
	free(path);
}

static void expect_layer(struct checkpoint *k, const struct stack *s, size_t block,
	const struct linear_row *row)
{
	size_t rows = stack_rows(s, row).rows, in = stack_in(s, row->projection);
	bool transposed = row->order == ROWS_TRANSPOSED;
	char *path = stack_path(s, block, row->name);
	char *from = row->fused ? stack_path(s, block, row->fused) : path;
	const struct group g = { path, from, s, row };

	expect(k, &g, "weight", transposed ? in : rows, transposed ? rows : in);
	expect_bias(k, s->bias[row->role], &g, rows);
	if (from != path)
		free(from);
	free(path);
}

static void expect_norm(struct checkpoint *k, const char *path, enum norm_kind kind, size_t n)
{
	const struct group g = { path, path, NULL, NULL };

	expect(k, &g, "weight", n, 0);
	expect_bias(k, kind == NORM_LAYER, &g, n);
}

static void expect_block(struct checkpoint *k, const struct stack *s, size_t block)
{
	const struct architecture *a = s->arch;

	for (int i = 0; i < NORM_PLACES; i++) {
		char *path = a->norm[i] ? stack_path(s, block, a->norm[i]) : NULL;

		if (path)
			expect_norm(k, path, a->norm_kind, s->hidden);
		free(path);
	}
	for (int i = 0; a->head_norm_kind != HEAD_NORM_NONE && i < 2; i++) {
		char *path = stack_path(s, block, a->head_norm[i]);
		size_t all = stack_out(s, i ? ROLE_K : ROLE_Q);

		expect_norm(k, path, a->norm_kind, a->head_norm_kind == HEAD_NORM_EACH ? s->head_dim : all);
		free(path);
	}
	for (const struct linear_row *row = a->linear; row->name; row++)
		expect_layer(k, s, block, row);
}

/* Biases that the class does not have, and what cannot be read, leave; other strangers are passed on. */
static void drop_strangers(struct checkpoint *k)
{
	const char *class = k->config->arch->name, *first = NULL, *last = "";
	char *why = xformat("a %s of this config.json has no such bias", class);
	const struct source *s = k->source;
	size_t kept = 0, unused = 0;

	for (size_t i = 0; i < k->entries; i++) {
		struct entry *e = k->entry + i;
		bool readable = e->known || s->kind->describe(s, e->name).type != TENSOR_ANY;

		if (!e->known)
			warn("%s: %s: a %s has no such tensor; it is %s", s->path, e->name, class,
				readable ? "passed on" : "left out: its type or rank cannot be read");
		if (e->unused && e->name != last) {	/* layers that one tensor holds are neighbours here */
			first = unused++ ? first : e->name;
			last = e->name;
		}
		if (readable && !e->unused)
			k->entry[kept++] = *e;
		else
			free(e->path);
	}
	k->entries = kept;
	checkpoint_leave_out(k, first, unused, why);
	free(why);
}

void expect_model(struct checkpoint *k)
{
	const struct config *c = k->config;
	const struct architecture *a = c->arch;
	const struct group embedding = { a->embedding, a->embedding, NULL, NULL };
	const struct group position = { a->position, a->position, NULL, NULL };
	const struct group head = { a->head, a->head, NULL, NULL };

	expect(k, &embedding, "weight", c->vocab, c->stack->hidden);
	if (a->position)
		expect(k, &position, "weight", c->positions, c->stack->hidden);
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++) {
		for (size_t i = 0; i < s->blocks; i++)
			expect_block(k, s, i);
		expect_norm(k, s->arch->final_norm, s->arch->norm_kind, s->hidden);
	}
	expect(k, &head, "weight", c->vocab, config_last(c)->hidden);
	expect_bias(k, false, &head, c->vocab);
	drop_strangers(k);
}
