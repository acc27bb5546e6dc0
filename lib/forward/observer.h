/* SPDX-License-Identifier: GPL-3.0-or-later */
/* observer.h -- callbacks on the inputs of linear layers */
#ifndef FORWARD_OBSERVER_H
#define FORWARD_OBSERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "forward/batch.h"
#include "model/config.h"

/*
 * on_input() receives the input x[rows][in] of a projection for rows first .. first + rows - 1 of a batch,
 * before any rounding of activations. An online Hadamard has rotated it, unless it is part of a rotation with
 * signs: that is the layer's own (transform/layer_rotation.h), and x is the input before it. If the model
 * runs on a device, x is a copy here or, with on_device, in the memory of the device; that of the head is
 * always here. forward_part() and forward_stage() pass whole batches. For the head, `block` is the number of
 * blocks. on_input NULL: no callback. In a mixture of experts, windows are then still grouped as for one,
 * since results depend on the groups.
 *
 * In a mixture of experts, on_input() receives the inputs of projections that all tokens pass.
 * on_expert_input() receives the inputs x[rows][in] of an expert, for the tokens that reached it, in order;
 * token[rows]: their numbers in the batch. Sets of extra tokens are also run
 * through the expert, whether they reached it or not: extra_tokens() returns the number of tokens of a set,
 * and sets *token to their numbers; NULL, as it is before the call: the first tokens. on_extra_input()
 * receives the inputs of the expert's projections for a set, and nothing else uses them. Threads call these
 * three functions for different experts at the same time.
 */
enum { EXTRA_SETS = 2 };
struct observer {
	void (*on_input)(void *arg, size_t block, enum projection_name projection, const struct batch *batch,
		size_t first, size_t rows, size_t in, const float *x);
	void *arg;
	bool on_device;			/* x may be in the memory of the device */
	void (*on_expert_input)(void *arg, size_t block, enum projection_name projection, size_t expert,
		size_t rows, size_t in, const int32_t token[], const float *x);
	size_t (*extra_tokens)(void *arg, size_t block, size_t expert, int set, const int32_t **token);
	void (*on_extra_input)(void *arg, size_t block, enum projection_name projection, size_t expert,
		int set, size_t rows, size_t in, const float *x);
};

static inline void observe(const struct observer *o, size_t block, enum projection_name projection,
	const struct batch *batch, size_t first, size_t rows, size_t in, const float *x)
{
	if (o && o->on_input)
		o->on_input(o->arg, block, projection, batch, first, rows, in, x);
}
#endif
