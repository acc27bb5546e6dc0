/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rotation.h -- rotations of channels by orthogonal matrices, x ← x Q, and the rotations of a model
 *
 *	Q = D diag(H, …, H)/√b		H a Hadamard matrix of order b (num/hadamard.h), D signs
 *
 * D = I except for residual streams. Or Q is any orthogonal matrix from a file.
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
	double *dense;			/* [n][n] Q, instead of the members above; NULL: not used */
};

/* rotation_rows(): rotates each of m rows in pieces of r->n numbers. rotation_columns(): rotates each column
 * of m numbers in pieces of r->n numbers. */
void rotation_rows(const struct rotation *r, size_t m, size_t width, double x[m][width]);
void rotation_columns(const struct rotation *r, size_t m, size_t width, double x[m][width]);

/* The rotations of a model: of the stream of each stack, of the values of its heads, and of the inputs of
 * down projections, by width. */
enum { ROTATION_INNER = 3 * STACKS };	/* at most: of the MLP, of experts, of the shared expert */
struct rotations {
	struct rotation residual[STACKS], value[STACKS], inner[ROTATION_INNER];
	size_t keys;			/* order of the Hadamard that queries and keys pass; 0: none */
};

struct rotation_options {
	size_t seed, block;		/* block: order of the Hadamards, 0: as large as possible */
	bool offline;			/* inputs of down projections are not rotated */
	bool keys;			/* queries and keys pass a Hadamard in the forward pass */
};
/*
 * Makes the rotations of a model. learned: NULL, or a file of kind `rotation` with /residual [hidden][hidden]
 * and optionally /value [head_dim][head_dim] of the language model. unchanged: streams that are not rotated,
 * nor the insides of their blocks.
 *
 * Fatal errors: no matrix of the order o->block is known; the order does not divide a width (if it does not
 * divide the width of a head, values are rotated by whole heads); a learned matrix is not orthogonal. Warns
 * if blocks are smaller than the width although o->block is 0.
 */
struct rotations rotations_make(const struct config *c, const struct rotation_options *o,
	const bool unchanged[STACKS], const struct part *learned);
/* The settings that determine the inputs of layers, as text: widths, blocks, the seed of signs; free() it. */
char *rotations_settings(const struct rotations *r, size_t seed);
void rotations_free(struct rotations *r);
/* The rotation of `width` channels of a kind, in the stream of a stack or in its blocks; NULL: none. */
const struct rotation *rotations_of(const struct rotations *r, enum channels kind, size_t stack,
	size_t width);
#endif
