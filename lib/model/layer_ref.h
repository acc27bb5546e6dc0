/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer_ref.h -- which linear layer of a model: its stack, block, row of the architecture and expert
 *
 *	struct layer_ref layer;
 *
 *	if (layer_ref_find(c, "/model/layers/3/self_attn/q_proj", &layer))
 *		... layer.block is 3, layer_ref_in(c, &layer) its inputs, layer.path its group ...
 *
 * Paths of the tree are made and taken apart here alone, be they groups of a file, names in messages or texts
 * that globs are matched against. Lists of layers (model/layer_list.h) hold such names: their users need no
 * path to find out where a layer belongs.
 */
#ifndef MODEL_LAYER_REF_H
#define MODEL_LAYER_REF_H
#include <stdbool.h>
#include <stddef.h>
#include "model/config.h"

/* Rows of linear layers that are in no block, after those of an architecture: embedding of tokens, head,
 * embedding of patches of images. */
enum { ROW_EMBEDDING = LINEARS, ROW_HEAD, ROW_PATCH };

struct layer_ref {
	const struct stack *stack;	/* NULL: the file has no configuration, only `path` names the layer */
	size_t block;			/* of the stack; 0 where the layer is in none */
	size_t row;			/* of stack->arch->linear, or one of the three */
	size_t expert;			/* 0 where there is one of the kind */
	const char *path;		/* of its group; valid as long as the list that holds it */
};

/* The layer at the path, to which layer->path points; false: the configuration has none there. c NULL: every
 * path is one. */
bool layer_ref_find(const struct config *c, const char *path, struct layer_ref *layer);
/* Its path in new memory, by the other members; free() it. */
char *layer_ref_path(const struct layer_ref *layer);

/* The row of the architecture; NULL: it is in no block. */
const struct linear_row *layer_ref_row(const struct layer_ref *layer);
/* The input that it shares with its neighbours; PROJECTION_NONE: it has none, ids are looked up. */
enum projection_name layer_ref_projection(const struct layer_ref *layer);
/* The block of the model; of a layer in none the number of blocks. */
size_t layer_ref_block(const struct config *c, const struct layer_ref *layer);
size_t layer_ref_in(const struct config *c, const struct layer_ref *layer);
/* Whether it sees images alone: it belongs to an encoder or a projector. */
bool layer_ref_is_visual(const struct config *c, const struct layer_ref *layer);

/* Layers that are in no block, their paths those of the architectures: head, embedding, embedding of patches.
 * Returns how many there are. */
enum { ENDS = 3 };
size_t layer_ref_ends(const struct config *c, struct layer_ref end[ENDS]);
struct layer_ref layer_ref_head(const struct config *c);

/*
 * Inputs of linear layers are numbered through a model: those of a block by projection, of each expert its
 * own two, last those of layers in no block. How many there are, one of them, and that of a layer; SIZE_MAX:
 * it has none, or the file has no configuration.
 */
size_t config_inputs(const struct config *c);
size_t config_input(const struct config *c, size_t block, enum projection_name projection, size_t expert);
size_t layer_ref_input(const struct config *c, const struct layer_ref *layer);

/* "/model/layers/3/self_attn/q_proj" of a name below a block of the stack; free() it. */
char *stack_path(const struct stack *s, size_t block, const char *name);
/* The same of a name in which # stands for the expert's number: "experts/#/up_proj". */
char *stack_expert_path(const struct stack *s, size_t block, const char *name, size_t expert);
/* Of the block's attention, and of the block: by its number, a projector's without. free() them. */
char *stack_attention(const struct stack *s, size_t block);
char *stack_block_path(const struct stack *s, size_t block);
/* The stack in whose blocks the path stands, be the block beyond those of the config; NULL: none. rest: the
 * path below the block, or NULL. */
const struct stack *config_block(const struct config *c, const char *path, size_t *block, const char **rest);
/* The rest of a path below a block after such a name ("": nothing), and the number of the expert; NULL: the
 * path does not begin with the name. */
const char *stack_below(const char *name, const char *path, size_t *expert);
#endif
