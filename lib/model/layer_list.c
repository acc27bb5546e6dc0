/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_list.c -- see layer_list.h */
#include "model/layer_list.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/layer.h"

struct walk {
	const struct part *part;
	const struct config *config;
	const struct selection *layers;
	struct layer_list list;
	bool *block;			/* [blocks]: those of which something stands in the part */
};

/* Whether the path is selected, if it has a linear layer: embedding, head and routers only if a GLOB matches
 * them. Other groups of a model are none, whatever stands in them. */
static bool selected(const struct config *c, const struct selection *layers, const char *path)
{
	size_t block, row;
	const struct stack *s = c ? config_find(c, path, &block, &row, NULL) : NULL;

	if (c && !s && !config_find_end(c, path, &(struct end_layer){ 0 }))
		return false;
	return selection_has(layers, path) && (!c ||
		(s && !role_is_kept(s->arch->linear[row].role)) || selection_names(layers, path));
}

/* The layers of a block that are selected; returns how many. */
static size_t each_of_block(const struct config *c, const struct stack *s, size_t block,
	const struct selection *layers, void (*visit)(void *arg, const char *path, size_t in), void *arg)
{
	size_t n = 0;

	for (const struct linear_row *row = s->arch->linear; row->name; row++)
		for (size_t e = 0; stack_has(s, block, row) && e < stack_copies(s, row); e++) {
			char *path = stack_expert_path(s, block, row->name, e);

			if (selected(c, layers, path)) {
				visit(arg, path, stack_in(s, row->projection));
				n++;
			}
			free(path);
		}
	return n;
}

size_t layer_each(const struct config *c, const struct selection *layers,
	void (*visit)(void *arg, const char *path, size_t in), void *arg)
{
	struct end_layer end[ENDS];
	size_t n = 0;

	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			n += each_of_block(c, s, i, layers, visit, arg);
	for (size_t i = config_ends(c, end); i--;)
		if (selected(c, layers, end[i].path)) {
			visit(arg, end[i].path, end[i].in);
			n++;
		}
	return n;
}

static void visit(void *arg, const char *path)
{
	struct walk *w = arg;
	size_t block;
	const struct stack *s = w->config ? config_block(w->config, path, &block, NULL) : NULL;

	if (s && block < s->blocks)
		w->block[s->first + block] = true;
	if (!selected(w->config, w->layers, path) || !layer_there(w->part, path) ||
			layer_is_branch(w->part, path))
		return;
	w->list.path = xgrow(w->list.path, w->list.n + 1, sizeof *w->list.path);
	w->list.path[w->list.n++] = xformat("%s", path);
}

/* Dies where a block of the part lacks the layer. */
static void check_layer(void *arg, const char *path, size_t in)
{
	const struct walk *w = arg;
	size_t block;
	const struct stack *s = config_block(w->config, path, &block, NULL);

	(void)in;
	if (s && w->block[s->first + block] && !layer_there(w->part, path))
		die("%s: %s: has neither weight nor codes: no linear layer", part_name(w->part), path);
}

struct layer_list layer_list(const struct part *part, const struct config *c,
	const struct selection *layers)
{
	struct walk w = { .part = part, .config = c, .layers = layers,
		.block = xalloc(c ? c->blocks : 0, sizeof *w.block) };

	part_groups(part, visit, &w);
	if (c)
		layer_each(c, layers, check_layer, &w);
	free(w.block);
	return w.list;
}

void layer_list_free(struct layer_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->path[i]);
	free(l->path);
	*l = (struct layer_list){ 0 };
}

bool layer_listed(const struct layer_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->path[i], path))
			return true;
	return false;
}
