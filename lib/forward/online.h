/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * online.h -- rotations in the forward pass: of inputs before a product, of outputs after it, of queries and
 * keys before attention
 */
#ifndef FORWARD_ONLINE_H
#define FORWARD_ONLINE_H
#include <stdbool.h>
#include <stddef.h>
#include "num/hadamard.h"
#include "quant/linear.h"

/* Zeroed at first. */
struct online {
	struct hadamard h;		/* n 0: none */
	void *memory;			/* of its matrices */
	const int8_t *signs;		/* [n] that numbers are multiplied by before it; NULL: none; a view */
};

/* Makes it a matrix of in / order blocks, or none for order 0; one that it is already is not built again.
 * Dies if there is no such matrix. */
void online_set(struct online *o, size_t in, size_t order);
/* The same with signs: a layer's rotation of n numbers, which must stay as long as it is used. */
void online_rotation(struct online *o, size_t n, const struct linear_rotation *r);
/* Whether it changes anything. */
bool online_rotates(const struct online *o);
/* Rotates rows of n numbers, which start every n; or passes them through the inverse. */
void online_apply(const struct online *o, size_t n, size_t m, float x[m][n]);
void online_undo(const struct online *o, size_t n, size_t m, float x[m][n]);
void online_free(struct online *o);
#endif
