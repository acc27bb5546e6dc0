/* SPDX-License-Identifier: GPL-3.0-or-later */
/* observer.h -- who sees what the linear layers of a model are fed */
#ifndef FORWARD_OBSERVER_H
#define FORWARD_OBSERVER_H
#include <stddef.h>
#include "forward/batch.h"
#include "model/config.h"

/*
 * Sees the input of a projection as its weights multiply it, x[batch->rows][in]: after an online
 * Hadamard, before any rounding of activations. For the head, block is the number
 * of blocks. see NULL: nobody looks, but windows go together as if; a pointer of NULL: they need not.
 *
 * Of a mixture of experts see() gets what all tokens give; expert() sees the inputs of an expert, x[rows][in]
 * of the tokens that reached it, in their order. Behind these, as many tokens as to_send() says, the first of
 * the batch, are sent through the expert whether they reached it or not, to no other end: sent() sees what
 * its down projection gets. Threads call these three for different experts at once.
 */
struct observer {
	void (*see)(void *arg, size_t block, enum projection_name projection, const struct batch *batch,
		size_t in, const float *x);
	void *arg;
	void (*expert)(void *arg, size_t block, enum projection_name projection, size_t expert, size_t rows,
		size_t in, const float *x);
	size_t (*to_send)(void *arg, size_t block, size_t expert);
	void (*sent)(void *arg, size_t block, size_t expert, size_t rows, size_t in, const float *x);
};

static inline void observe(const struct observer *o, size_t block, enum projection_name projection,
	const struct batch *batch, size_t in, const float *x)
{
	if (o && o->see)
		o->see(o->arg, block, projection, batch, in, x);
}
#endif
