/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_list.h -- the linear layers of a model, by its configuration, and of a part of a file */
#ifndef MODEL_LAYER_LIST_H
#define MODEL_LAYER_LIST_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"
#include "io/part.h"
#include "model/layer_ref.h"

struct layer_list {
	size_t n;
	struct layer_ref *layer;	/* [n], with copies of their paths */
};

/*
 * Calls visit for every selected linear layer of a whole model of this config, with its number of inputs:
 * the layers of the architecture's row, and embedding and head if a GLOB of the selection matches them.
 * Returns their number. Paths of layers are valid during the visit.
 */
size_t layer_each(const struct config *c, const struct selection *layers,
	void (*visit)(void *arg, const struct layer_ref *layer, size_t in), void *arg);

/*
 * The selected linear layers of the part, in natural order; layer_list_free() them. With a config: the
 * layers of the architecture's row, and embedding or head only if a GLOB of the selection matches. Without
 * (NULL): every group with a two-dimensional `weight`, or `codes`, or `packed`. Fatal error if a block of
 * the part lacks one of its layers, or is beyond the last one.
 */
struct layer_list layer_list(const struct part *part, const struct config *c,
	const struct selection *layers);
/* config_block() with `rest` NULL, of a group of the part. Fatal error if the block is beyond the last. */
const struct stack *layer_block(const struct part *part, const struct config *c, const char *group,
	size_t *block);
/* Fatal error if the part has a block beyond the last one. */
void layer_blocks_check(const struct part *part, const struct config *c);
/* Appends the layer, with a copy of its path. */
void layer_list_add(struct layer_list *l, const struct layer_ref *layer);
void layer_list_free(struct layer_list *l);
bool layer_listed(const struct layer_list *l, const char *path);
#endif
