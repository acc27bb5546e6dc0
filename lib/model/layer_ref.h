/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer_ref.h -- the identity of a linear layer: stack, block, row of the architecture and expert
 *
 *	struct layer_ref layer;
 *
 *	if (layer_ref_find(c, "/model/layers/3/self_attn/q_proj", &layer))
 *		... layer.block is 3, layer_ref_in(c, &layer) its inputs, layer.path its group ...
 *
 * Only this module makes and parses paths of the tree, as groups of a file, as names in messages or as
 * texts for globs. Lists of layers (model/layer_list.h) have a layer_ref for each layer, so their users
 * need not parse paths.
 */
#ifndef MODEL_LAYER_REF_H
#define MODEL_LAYER_REF_H
#include <stdbool.h>
#include <stddef.h>
#include "model/config.h"

/* Rows of linear layers outside the blocks, after the rows of an architecture: embedding of tokens, head,
 * embedding of patches of images. */
enum { ROW_EMBEDDING = LINEARS, ROW_HEAD, ROW_PATCH };

struct layer_ref {
	const struct stack *stack;	/* NULL: without a configuration, only `path` is set */
	size_t block;			/* number in the stack; 0 outside the blocks */
	size_t row;			/* index into stack->arch->linear, or one of the three */
	size_t expert;			/* 0 if the layer exists once */
	const char *path;		/* of its group; valid as long as the list */
};

/* Finds the layer at the path; layer->path points to path. False if the configuration has no layer there. c
 * NULL: every path is a layer. */
bool layer_ref_find(const struct config *c, const char *path, struct layer_ref *layer);
/* The path of a layer from its other members; the caller frees it. */
char *layer_ref_path(const struct layer_ref *layer);

/* The row of the architecture; NULL outside the blocks. */
const struct linear_row *layer_ref_row(const struct layer_ref *layer);
/* The input of the layer; PROJECTION_NONE if it has none because ids are looked up in it. */
enum projection_name layer_ref_projection(const struct layer_ref *layer);
/* The number of its block in the model; outside the blocks, the number of blocks. */
size_t layer_ref_block(const struct config *c, const struct layer_ref *layer);
size_t layer_ref_in(const struct config *c, const struct layer_ref *layer);
/* Whether the layer reads only images: it belongs to an encoder or a projector. */
bool layer_ref_is_visual(const struct config *c, const struct layer_ref *layer);

/* The layers outside the blocks, with the paths of the architectures: head, embedding, embedding of
 * patches. Returns their number. */
enum { ENDS = 3 };
size_t layer_ref_ends(const struct config *c, struct layer_ref end[ENDS]);
struct layer_ref layer_ref_head(const struct config *c);

/*
 * The inputs of linear layers are numbered through a model. The inputs of a block are numbered by
 * projection, with two for each expert; the inputs of layers outside the blocks come last.
 *
 * config_inputs(): their number. config_input(): the number of one input. layer_ref_input(): the input of a
 * layer; SIZE_MAX: it has none.
 */
size_t config_inputs(const struct config *c);
size_t config_input(const struct config *c, size_t block, enum projection_name projection, size_t expert);
size_t layer_ref_input(const struct config *c, const struct layer_ref *layer);

/* The path of a name below a block, "/model/layers/3/self_attn/q_proj"; the caller frees it. */
char *stack_path(const struct stack *s, size_t block, const char *name);
/* The path of a name in which # is replaced by the expert's number: "experts/#/up_proj". */
char *stack_expert_path(const struct stack *s, size_t block, const char *name, size_t expert);
/* The paths of the block's attention, and of the block, with its number except for a projector; the caller
 * frees them. */
char *stack_attention(const struct stack *s, size_t block);
char *stack_block_path(const struct stack *s, size_t block);
/* The stack whose blocks contain the path; NULL: none. The block may exceed the number of blocks of the
 * config. rest NULL, or set to the path below the block. */
const struct stack *config_block(const struct config *c, const char *path, size_t *block, const char **rest);
/* The remainder of a path below a block after `name` ("" if equal), and the expert number; NULL if the path
 * does not begin with the name. */
const char *stack_path_rest(const char *name, const char *path, size_t *expert);
#endif
