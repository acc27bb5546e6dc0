/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * checkpoint_expect.c -- whether all tensors of a class are there, in their shapes; see
 * checkpoint_private.h
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/checkpoint_private.h"
#include "model/layer.h"
#include "model/layer_ref.h"

static _Noreturn void missing(const struct checkpoint *k, const char *group, const char *member)
{
	char *path = xformat("%s/%s", group, member);

	for (char *p = path; *p; p++)
		*p = *p == '/' ? '.' : *p;
	die("%s: %s: is missing, a %s needs it", k->source->path, path + 1, config_class(k->config));
}

/* Of patches: [rows, channels, (frames,) patch, patch]. */
static bool is_convolution(const struct tensor *t, const struct vision *v, size_t rows)
{
	const size_t dim[] = { rows, CHANNELS, v->frames, v->patch, v->patch };
	const size_t skip = t->rank == 4 && v->frames == 1;
	const size_t rank = (size_t)t->rank;
	bool same = rank + skip == 5;

	for (size_t i = 0; same && i < rank; i++)
		same = t->dim[i] == dim[i + (i > 1 ? skip : 0)];
	return same;
}

/*
 * The member of a group, in the source [rows, columns], or [rows] where columns is 0. from: NULL, or the
 * group of the source that has the rows of this linear layer.
 */
static void expect(const struct checkpoint *k, const char *group, const char *from, const char *member,
	size_t rows, size_t columns)
{
	struct entry *e = checkpoint_member(k, group, member);
	const struct source_tensor *t;

	if (!e || (from && !e->row))
		missing(k, from ? from : group, member);
	e->known = true;
	t = e->source;
	if (t->shape.type == TENSOR_ANY)
		k->source->kind->read(k->source, t->name);	/* says why it cannot be read */
	if (e->patches && is_convolution(&t->shape, &k->config->vision, rows))
		return;
	if (t->packed && e->row && e->row->order == ROWS_TRANSPOSED) {	/* there, not here */
		size_t swap = rows;

		rows = columns;
		columns = swap;
	}
	if (columns && (t->shape.rank != 2 || t->shape.dim[0] != rows || t->shape.dim[1] != columns))
		die("%s: %s: its shape is not the [%zu, %zu] of config.json", t->file, t->name, rows,
			columns);
	if (!columns && (t->shape.rank != 1 || t->shape.dim[0] != rows))
		die("%s: %s: its shape is not the [%zu] of config.json", t->file, t->name, rows);
}

/* The weight, likewise, and a bias of n if the class has one. */
static void expect_both(const struct checkpoint *k, const char *group, const char *from, size_t rows,
	size_t columns, bool bias, size_t n)
{
	struct entry *e = checkpoint_member(k, group, "bias");

	expect(k, group, from, "weight", rows, columns);
	if (bias)
		expect(k, group, from, "bias", n, 0);
	else if (e)
		e->known = e->unused = true;
}

static void expect_layer(const struct checkpoint *k, const struct stack *s, size_t block,
	const struct linear_row *row, size_t expert)
{
	size_t rows = stack_rows(s, row).rows, in = stack_in(s, row->projection);
	bool transposed = row->order == ROWS_TRANSPOSED;
	char *path = stack_expert_path(s, block, row->name, expert);
	char *from = stack_expert_path(s, block, row->fused ? row->fused : row->name, expert);

	expect_both(k, path, from, transposed ? in : rows, transposed ? rows : in, s->bias[row->role], rows);
	free(from);
	free(path);
}

/* The norm of that name below the block; NULL: there is none. */
static void expect_norm(const struct checkpoint *k, const struct stack *s, size_t block, const char *name,
	size_t n)
{
	char *path = name ? stack_path(s, block, name) : NULL;

	if (path)
		expect_both(k, path, NULL, n, 0, s->arch->norm_kind == NORM_LAYER, n);
	free(path);
}

static void expect_block(const struct checkpoint *k, const struct stack *s, size_t block)
{
	const struct architecture *a = s->arch;
	const bool each = a->head_norm_kind == HEAD_NORM_EACH;

	for (int i = 0; i < NORM_PLACES; i++)
		expect_norm(k, s, block, a->norm[i], s->hidden);
	for (int i = 0; i < 2; i++)
		expect_norm(k, s, block, a->head_norm[i],
			each ? s->head_dim : stack_out(s, i ? ROLE_K : ROLE_Q));
	for (const struct linear_row *row = a->linear; row->name; row++)
		for (size_t e = 0; stack_has(s, block, row) && e < stack_copies(s, row); e++)
			expect_layer(k, s, block, row, e);
}

/* What makes rows of images for an encoder. */
static void expect_images(const struct checkpoint *k)
{
	const struct vision *v = &k->config->vision;
	const struct stack *s = config_encoder(k->config);
	const struct architecture *a = s->arch;
	struct entry *e = checkpoint_member(k, a->embedding, "weight");

	if (e)
		e->patches = true;
	expect_both(k, a->embedding, NULL, s->hidden, vision_numbers(v), a->embedding_bias, s->hidden);
	if (a->position)
		expect_both(k, a->position, NULL, v->rows, s->hidden, false, 0);
	if (a->class_token) {
		char *group = xformat("%s", a->class_token), *member = strrchr(group, '/');

		*member++ = 0;
		expect(k, group, NULL, member, s->hidden, 0);
		free(group);
	}
	if (a->embedding_norm)
		expect_both(k, a->embedding_norm, NULL, s->hidden, 0, true, s->hidden);
}

void checkpoint_expect(const struct checkpoint *k)
{
	const struct config *c = k->config;
	const struct architecture *a = c->arch;
	const struct stack *last = config_last(c);
	const size_t hidden = last->hidden;

	if (c->vision.class)
		expect_images(k);
	expect_both(k, a->embedding, NULL, c->vocab, hidden, false, 0);
	if (a->position)
		expect_both(k, a->position, NULL, c->positions + a->position_offset, hidden, false, 0);
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			expect_block(k, s, i);
	if (stack_final_norm(last))
		expect_both(k, stack_final_norm(last), NULL, hidden, 0, a->norm_kind == NORM_LAYER, hidden);
	expect_both(k, a->head, NULL, c->vocab, hidden, false, 0);
}
