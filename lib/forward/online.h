/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * online.h -- a Hadamard matrix that inputs pass before a product, or queries and keys before attention
 */
#ifndef FORWARD_ONLINE_H
#define FORWARD_ONLINE_H
#include <stddef.h>
#include "num/hadamard.h"

/* Zeroed at first. */
struct online {
	struct hadamard h;		/* n 0: none */
	void *memory;			/* of its matrices */
};

/* Makes it a matrix of in / order blocks, or none for order 0; one that it is already is not built again.
 * Dies if there is no such matrix. */
void online_set(struct online *o, size_t in, size_t order);
void online_free(struct online *o);
#endif
