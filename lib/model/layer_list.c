/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_list.c -- see layer_list.h */
#include "model/layer_list.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/layer.h"

struct list_walk {
	const struct part *part;
	const struct config *config;
	const struct selection *layers;
	struct layer_list list;
	bool *block;			/* [blocks]: blocks that the part has groups of */
};

/* Whether the layer is selected, if the file has it. Embedding, head and routers are selected only if a
 * GLOB matches. */
static bool selected(const struct config *c, const struct selection *layers, const struct layer_ref *layer)
{
	const struct linear_row *row = layer_ref_row(layer);

	return selection_has(layers, layer->path) &&
		(!c || (row && !role_is_kept(row->role)) || selection_names(layers, layer->path));
}

/* Visits the selected layers of a block; returns their number. */
static size_t each_of_block(const struct config *c, const struct stack *s, size_t block,
	const struct selection *layers, void (*visit)(void *arg, const struct layer_ref *layer, size_t in),
	void *arg)
{
	const struct linear_row *first = s->arch->linear;
	size_t n = 0;

	for (const struct linear_row *row = first; row->name; row++)
		for (size_t e = 0; stack_has(s, block, row) && e < stack_copies(s, row); e++) {
			struct layer_ref layer = { s, block, (size_t)(row - first), e, NULL };
			char *path = layer_ref_path(&layer);

			layer.path = path;
			if (selected(c, layers, &layer)) {
				visit(arg, &layer, stack_in(s, row->projection));
				n++;
			}
			free(path);
		}
	return n;
}

size_t layer_each(const struct config *c, const struct selection *layers,
	void (*visit)(void *arg, const struct layer_ref *layer, size_t in), void *arg)
{
	struct layer_ref end[ENDS];
	size_t n = 0;

	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			n += each_of_block(c, s, i, layers, visit, arg);
	for (size_t i = layer_ref_ends(c, end); i--;)
		if (selected(c, layers, &end[i])) {
			visit(arg, &end[i], layer_ref_in(c, &end[i]));
			n++;
		}
	return n;
}

const struct stack *layer_block(const struct part *part, const struct config *c, const char *group,
	size_t *block)
{
	const struct stack *s = config_block(c, group, block, NULL);

	if (s && *block >= s->blocks)
		die("%s: %s: is beyond the last block, expected %zu as in /config", part_name(part), group,
			s->blocks);
	return s;
}

struct blocks_check { const struct part *part; const struct config *config; };

static void check_block(void *arg, const char *group)
{
	const struct blocks_check *w = arg;
	size_t block;

	layer_block(w->part, w->config, group, &block);
}

void layer_blocks_check(const struct part *part, const struct config *c)
{
	struct blocks_check w = { part, c };

	part_groups(part, check_block, &w);
}

/* Adds the layer of a group. Groups not named by the architecture are not layers. */
static void visit(void *arg, const char *path)
{
	struct list_walk *w = arg;
	struct layer_ref layer;
	size_t block;
	const struct stack *s = w->config ? layer_block(w->part, w->config, path, &block) : NULL;

	if (s)
		w->block[s->first + block] = true;
	if (layer_ref_find(w->config, path, &layer) && selected(w->config, w->layers, &layer) &&
	    layer_exists(w->part, path) && !layer_is_branch(w->part, path))
		layer_list_add(&w->list, &layer);
}

/* Fatal error if a block of the part lacks the layer. */
static void check_layer(void *arg, const struct layer_ref *layer, size_t in)
{
	const struct list_walk *w = arg;

	(void)in;
	if (layer_ref_row(layer) && w->block[layer_ref_block(w->config, layer)] &&
	    !layer_exists(w->part, layer->path))
		die("%s: %s: has neither weight nor codes: not a linear layer", part_name(w->part),
			layer->path);
}

struct layer_list layer_list(const struct part *part, const struct config *c,
	const struct selection *layers)
{
	struct list_walk w = { .part = part, .config = c, .layers = layers,
		.block = xalloc(c ? c->blocks : 0, sizeof *w.block) };

	part_groups(part, visit, &w);
	if (c)
		layer_each(c, layers, check_layer, &w);
	free(w.block);
	return w.list;
}

void layer_list_add(struct layer_list *l, const struct layer_ref *layer)
{
	l->layer = xgrow(l->layer, l->n + 1, sizeof *l->layer);
	l->layer[l->n] = *layer;
	l->layer[l->n++].path = xformat("%s", layer->path);
}

void layer_list_free(struct layer_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free((char *)(uintptr_t)l->layer[i].path);
	free(l->layer);
	*l = (struct layer_list){ 0 };
}

bool layer_listed(const struct layer_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->layer[i].path, path))
			return true;
	return false;
}
