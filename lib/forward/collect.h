/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * collect.h -- collects the inputs of the projections of a block over a group of chunks, for an observer
 *
 * An observer receives windows in their order (forward/observer.h). Threads that take chunks of windows
 * through a block at the same time finish them in any order. So the observer of a chunk copies inputs to the
 * rows of the chunk. Afterwards the observer of the group receives the inputs of all chunks, by projection.
 *
 * Calling sequence: collection_begin() for a group; collection_of_chunk() for each chunk, by any thread;
 * collection_show(). free(memory.memory) at the end.
 */
#ifndef FORWARD_COLLECT_H
#define FORWARD_COLLECT_H
#include <stddef.h>
#include "forward/block.h"
#include "forward/observer.h"

struct collection {
	const struct block *block;
	float *input[PROJECTIONS];	/* [rows of the group][in] */
	bool seen[PROJECTIONS];		/* whether a chunk had such an input */
	struct workspace memory;	/* of all inputs, kept for the next group */
};
struct collection_chunk { struct collection *group; size_t first; };

/* Bytes of the inputs of one token that stages up to projection `to` collect. */
size_t collection_size(const struct block *b, enum projection_name to);
/* Begins a group of so many rows. */
void collection_begin(struct collection *g, const struct block *b, enum projection_name to, size_t rows);
/* The observer of a chunk, which begins at row `first` of the group. The result keeps `chunk`. */
struct observer collection_of_chunk(struct collection_chunk *chunk, struct collection *g, size_t first);
/* Calls the observer with the inputs of each projection. batch: all rows of the group. */
void collection_show(const struct collection *g, const struct batch *batch, const struct observer *observer);
#endif
