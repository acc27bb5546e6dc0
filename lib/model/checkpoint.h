/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * checkpoint.h -- the tensors of a source, and where each goes in the tree of a model
 *
 * Names change dots into slashes. A layer of the checkpoint that holds several layers of
 * the tree (enum row_order) becomes an entry for each of these. A tied head is an entry
 * with the tensor of the embedding. Buffers that follow from the config, and blocks
 * beyond those of the config, have none.
 */
#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H
#include <stdbool.h>
#include <stddef.h>
#include "model/config.h"
#include "model/source.h"

struct entry {
	char *path;		/* in the tree */
	const char *name;	/* in the source */
	const struct stack *stack;	/* of a linear layer's weight and bias: its block's, */
	const struct linear_row *row;	/* and how the source has its rows; NULL: another tensor */
	const char *tied_to;	/* path of the embedding's weight, or NULL */
	size_t pattern, number;	/* of the layout, from 1 (0: the root); what '#' stands for */
	size_t part;		/* of the stream */
	bool known, unused;	/* a tensor of the class; one to be left out */
};

struct checkpoint {
	struct source *source;
	const struct config *config;
	struct entry *entry;	/* by path until checkpoint_parts() */
	size_t entries;
};

/* Dies where two tensors have one place, or one has none. */
struct checkpoint checkpoint_open(struct source *source, const struct config *config);
void checkpoint_close(struct checkpoint *k);

struct entry *checkpoint_find(const struct checkpoint *k, const char *path);	/* NULL if there is none */
/* Sorts the entries by their part of the stream; returns how many parts there are. */
size_t checkpoint_parts(struct checkpoint *k);
/* A warning that n tensors, of which this is the first, are left out; none if n is 0. */
void checkpoint_leave_out(const struct checkpoint *k, const char *first, size_t n, const char *why);
#endif
