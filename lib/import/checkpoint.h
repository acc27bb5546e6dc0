/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * checkpoint.h -- the tensors of a source, and where each goes in the tree of a model
 *
 * Names change dots into slashes. A layer of the checkpoint that holds several layers of
 * the tree (enum row_order) becomes an entry for each of these. A tied head is an entry
 * with the tensor of the embedding. Left out are buffers that follow from the config, and,
 * with a warning, blocks beyond those of the config, what of an encoder comes after the
 * features that are used, and biases that the class has no parameter for: readers of a tree
 * would use them. Other tensors that the class does not know stay, with a warning, if they
 * can be read.
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
	const struct stack *stack;	/* of a linear layer's weight and bias: its block's, */
	const struct linear_row *row;	/* and how the source has its rows; NULL: another tensor */
	const char *tied_to;	/* path of the embedding's weight, or NULL */
	size_t part;		/* of the stream */
	bool patches;		/* the weight of patches, [out, channels, height, width] there */
	bool known, unused;	/* a tensor of the class; one to be left out */
};

struct checkpoint {
	struct source *source;
	const struct config *config;
	struct entry *entry;	/* by part, then by path */
	size_t entries, parts;
};

/* Dies where two tensors have one place, one is missing, or has another shape than the config says. */
struct checkpoint checkpoint_open(struct source *source, const struct config *config);
void checkpoint_close(struct checkpoint *k);
#endif
