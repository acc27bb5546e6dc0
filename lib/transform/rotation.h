/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rotation.h -- orthogonal matrices that turn channels, x ← x Q, and which a model is turned by
 *
 *	Q = D diag(H, …, H)/√b		H a Hadamard matrix of order b (num/hadamard.h), D signs
 *
 * with signs for the residual stream only, or any orthogonal matrix that a file holds.
 */
#ifndef TRANSFORM_ROTATION_H
#define TRANSFORM_ROTATION_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"
#include "model/config.h"
#include "model/residual.h"
#include "num/hadamard.h"

#define ROTATION_MAX 1e-5	/* of a number of Q Qᵀ - I */

struct rotation {
	size_t n;			/* width; 0: none */
	struct hadamard h;
	void *memory;			/* of its matrices */
	double *sign;			/* [n], D; NULL: I */
	double *dense;			/* [n][n] in place of all this; NULL: there is none */
};

/* Each of m rows, piece by piece of r->n numbers; each of the columns of m numbers, likewise. */
void rotation_rows(const struct rotation *r, size_t m, size_t width, double x[m][width]);
void rotation_columns(const struct rotation *r, size_t m, size_t width, double x[m][width]);

/* The rotations of a model: of each stack's stream and of its heads' values, of what down projections of a
 * width are fed. */
enum { ROTATION_INNER = 3 * STACKS };	/* at most: of a block, of its experts, of the shared one */
struct rotations {
	struct rotation residual[STACKS], value[STACKS], inner[ROTATION_INNER];
	size_t keys;			/* order of the Hadamard that queries and keys pass; 0: none */
};

struct rotation_options {
	size_t seed, block;		/* block: order of the Hadamards, 0: as large as can be */
	bool offline;			/* down projections stay as they are */
	bool keys;			/* queries and keys pass a Hadamard in the forward pass */
};
/*
 * learned: a file of kind `rotation` that has /residual [hidden][hidden], and may have /value
 * [head_dim][head_dim], of the language model; or NULL. leave: streams that do not turn, nor what is within
 * the blocks that read them. Dies where a block has no matrix or does not divide a width (but a head's,
 * which then turns whole), and where a learned matrix is not orthogonal; warns where blocks are smaller than
 * the width and were not asked for.
 */
struct rotations rotations_make(const struct config *c, const struct rotation_options *o,
	const bool leave[STACKS], const struct part *learned);
/* What of them decides the inputs of layers, as a text: widths, blocks, the seed of signs; free() it. */
char *rotations_settings(const struct rotations *r, size_t seed);
void rotations_free(struct rotations *r);
/* The rotation of so many channels of a kind, in the stream of a stack or in blocks that read it; NULL:
 * none. */
const struct rotation *rotations_of(const struct rotations *r, enum channels kind, size_t stack,
	size_t width);
#endif
