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
 * of blocks. A pointer of NULL: nobody looks.
 */
struct observer {
	void (*see)(void *arg, size_t block, enum projection_name projection, const struct batch *batch,
		size_t in, const float *x);
	void *arg;
};

static inline void observe(const struct observer *o, size_t block, enum projection_name projection,
	const struct batch *batch, size_t in, const float *x)
{
	if (o)
		o->see(o->arg, block, projection, batch, in, x);
}
#endif
