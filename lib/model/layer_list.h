/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_list.h -- which linear layers a model has, by its configuration, and which a part of a file has */
#ifndef MODEL_LAYER_LIST_H
#define MODEL_LAYER_LIST_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"
#include "io/part.h"
#include "model/layer_ref.h"

struct layer_list {
	size_t n;
	struct layer_ref *layer;	/* [n], their paths in memory of the list */
};

/*
 * Every linear layer that is selected in a whole model of this config, and how many inputs it has: those of
 * the architecture's row, and embedding and head if a GLOB of the selection matches them. Returns how many.
 * Paths of layers are valid during their visit.
 */
size_t layer_each(const struct config *c, const struct selection *layers,
	void (*visit)(void *arg, const struct layer_ref *layer, size_t in), void *arg);

/*
 * The linear layers of the part that are selected, in natural order. With
 * a config: those of the architecture's row, and an embedding or a head only
 * if a GLOB of the selection matches it. Without (NULL): every group that has a
 * two-dimensional `weight`, or `codes`, or `packed`. Dies where a block of the part lacks one of its layers.
 */
struct layer_list layer_list(const struct part *part, const struct config *c,
	const struct selection *layers);
/* Appends the layer, with a copy of its path. */
void layer_list_add(struct layer_list *l, const struct layer_ref *layer);
void layer_list_free(struct layer_list *l);
bool layer_listed(const struct layer_list *l, const char *path);
#endif
