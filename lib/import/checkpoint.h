/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * checkpoint.h -- the tensors of a source and their paths in the tree of a model
 *
 * Dots of names become slashes. A layer of the checkpoint that holds several layers of the tree
 * (enum row_order) becomes one entry for each of these layers. A tied head is an entry with the
 * tensor of the embedding.
 *
 * Buffers that follow from the config are left out. With a warning, these are left out too: blocks
 * beyond those of the config, tensors of an encoder after the features in use, and biases that the
 * class has no parameter for, because readers of a tree would use them. Other tensors that the class
 * does not have are kept with a warning, if they can be read.
 */
#ifndef IMPORT_CHECKPOINT_H
#define IMPORT_CHECKPOINT_H
#include <stdbool.h>
#include <stddef.h>
#include "import/source.h"
#include "model/config.h"

struct entry {
	char *path;		/* in the tree */
	const struct source_tensor *source;
	const struct stack *stack;	/* for a weight or bias of a linear layer: the stack of its block, */
	const struct linear_row *row;	/* and its rows in the source; NULL: another tensor */
	const char *tied_to;	/* path of the embedding's weight, or NULL */
	size_t part;		/* of the stream */
	bool patches;		/* the weight of patches, in the source [out, channels, height, width] */
	bool known, unused;	/* a tensor of the class; a tensor to leave out */
};

struct checkpoint {
	struct source *source;
	const struct config *config;
	struct entry *entry;	/* by part, then by path */
	size_t entries, parts;
};

/* It is a fatal error if two tensors have one path, or if one is missing or has another shape than the config
 * specifies. */
struct checkpoint checkpoint_open(struct source *source, const struct config *config);
void checkpoint_close(struct checkpoint *k);
#endif
