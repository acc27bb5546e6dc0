/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_ref.c -- see layer_ref.h */
#include "model/layer_ref.h"
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"

char *stack_block_path(const struct stack *s, size_t block)
{
	const char *blocks = s->arch->blocks;

	return s->arch->projector ? xformat("%s", blocks) : xformat("%s/%zu", blocks, block);
}

char *stack_path(const struct stack *s, size_t block, const char *name)
{
	char *above = stack_block_path(s, block), *path = xformat("%s/%s", above, name);

	free(above);
	return path;
}

char *stack_attention(const struct stack *s, size_t block)
{
	char *path = stack_path(s, block, s->arch->linear->name);

	*strrchr(path, '/') = 0;
	return path;
}

char *stack_expert_path(const struct stack *s, size_t block, const char *name, size_t expert)
{
	const char *number = strchr(name, '#');
	char *own, *path;

	if (!number)
		return stack_path(s, block, name);
	own = xformat("%.*s%zu%s", (int)(number - name), name, expert, number + 1);
	path = stack_path(s, block, own);
	free(own);
	return path;
}

const struct stack *config_block(const struct config *c, const char *path, size_t *block, const char **rest)
{
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++) {
		const size_t n = strlen(s->arch->blocks);
		char *end;

		if (strncmp(path, s->arch->blocks, n) || (path[n] != '/' && path[n]))
			continue;
		if (s->arch->projector) {
			*block = 0;
			if (rest)
				*rest = path[n] ? path + n + 1 : path + n;
			return s;
		}
		if (!path[n] || path[n + 1] < '0' || path[n + 1] > '9')
			continue;
		*block = strtoul(path + n + 1, &end, 10);
		if (rest)
			*rest = *end == '/' ? end + 1 : end;
		return !*end || *end == '/' ? s : NULL;
	}
	return NULL;
}

const char *stack_path_rest(const char *name, const char *path, size_t *expert)
{
	const size_t n = strcspn(name, "#");
	char *end = (char *)(uintptr_t)path;

	*expert = 0;
	if (name[n]) {
		if (strncmp(name, path, n) || path[n] < '0' || path[n] > '9' ||
		    (path[n] == '0' && isdigit((unsigned char)path[n + 1])))
			return NULL;
		*expert = strtoul(path + n, &end, 10);
		name += n + 1;
	}
	if (strncmp(end, name, strlen(name)))
		return NULL;
	end += strlen(name);
	return *end == '/' || !*end ? end : NULL;
}

/* Finds the layer with path `rest` below the block. */
static bool find_row(const struct stack *s, size_t block, const char *rest, struct layer_ref *layer)
{
	for (size_t row = 0; block < s->blocks && s->arch->linear[row].name; row++) {
		const struct linear_row *l = &s->arch->linear[row];
		size_t expert;
		const char *below = stack_path_rest(l->name, rest, &expert);

		if (!below || *below)
			continue;
		if (expert >= stack_copies(s, l) || !stack_has(s, block, l))
			return false;
		*layer = (struct layer_ref){ s, block, row, expert, layer->path };
		return true;
	}
	return false;
}

static bool find_end(const struct config *c, struct layer_ref *layer)
{
	struct layer_ref end[ENDS];

	for (size_t i = 0, n = layer_ref_ends(c, end); i < n; i++)
		if (!strcmp(layer->path, end[i].path)) {
			end[i].path = layer->path;
			*layer = end[i];
			return true;
		}
	return false;
}

bool layer_ref_find(const struct config *c, const char *path, struct layer_ref *layer)
{
	const char *rest;
	size_t block;
	const struct stack *s = c ? config_block(c, path, &block, &rest) : NULL;

	*layer = (struct layer_ref){ .path = path };
	return !c || (s && find_row(s, block, rest, layer)) || find_end(c, layer);
}

char *layer_ref_path(const struct layer_ref *layer)
{
	const struct linear_row *row = layer_ref_row(layer);
	const struct architecture *a = layer->stack->arch;

	if (row)
		return stack_expert_path(layer->stack, layer->block, row->name, layer->expert);
	return xformat("%s", layer->row == ROW_HEAD ? a->head : a->embedding);
}

const struct linear_row *layer_ref_row(const struct layer_ref *layer)
{
	return layer->stack && layer->row < ROW_EMBEDDING ? &layer->stack->arch->linear[layer->row] : NULL;
}

enum projection_name layer_ref_projection(const struct layer_ref *layer)
{
	const struct linear_row *row = layer_ref_row(layer);

	if (row)
		return row->projection;
	return layer->row == ROW_HEAD ? PROJECTION_HEAD :
		layer->row == ROW_PATCH ? PROJECTION_PATCH : PROJECTION_NONE;
}

size_t layer_ref_block(const struct config *c, const struct layer_ref *layer)
{
	return layer_ref_row(layer) ? layer->stack->first + layer->block : c->blocks;
}

size_t layer_ref_in(const struct config *c, const struct layer_ref *layer)
{
	const enum projection_name p = layer_ref_projection(layer);

	if (layer_ref_row(layer))
		return stack_in(layer->stack, p);
	return p == PROJECTION_PATCH ? vision_numbers(&c->vision) : config_last(c)->hidden;
}

bool layer_ref_is_visual(const struct config *c, const struct layer_ref *layer)
{
	return layer->stack && layer->stack != config_last(c);
}

size_t layer_ref_ends(const struct config *c, struct layer_ref end[ENDS])
{
	const struct stack *last = config_last(c), *encoder = config_encoder(c);
	size_t n = 0;

	end[n++] = layer_ref_head(c);
	end[n++] = (struct layer_ref){ last, 0, ROW_EMBEDDING, 0, last->arch->embedding };
	if (encoder)
		end[n++] = (struct layer_ref){ encoder, 0, ROW_PATCH, 0, encoder->arch->embedding };
	return n;
}

struct layer_ref layer_ref_head(const struct config *c)
{
	const struct stack *last = config_last(c);

	return (struct layer_ref){ last, 0, ROW_HEAD, 0, last->arch->head };
}

/* Inputs of a block; the inputs of the second expert follow those of the first. */
static size_t inputs_of_block(const struct config *c)
{
	size_t n = PROJECTIONS;

	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		n = s->experts > 1 ? max(n, PROJECTIONS + 2 * (s->experts - 1)) : n;
	return n;
}

size_t config_inputs(const struct config *c)
{
	return c->blocks * inputs_of_block(c) + 1 + PROJECTION_PATCH - PROJECTION_HEAD;
}

size_t config_input(const struct config *c, size_t block, enum projection_name projection, size_t expert)
{
	const size_t in_block = projection >= PROJECTION_HEAD ? (size_t)(projection - PROJECTION_HEAD) :
		(size_t)projection + 2 * expert;

	return block * inputs_of_block(c) + in_block;
}

size_t layer_ref_input(const struct config *c, const struct layer_ref *layer)
{
	const enum projection_name p = layer_ref_projection(layer);

	return p == PROJECTION_NONE ? SIZE_MAX :
		config_input(c, layer_ref_block(c, layer), p, layer->expert);
}
