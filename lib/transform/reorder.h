/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * reorder.h -- column orders from the Hessians of a file
 */
#ifndef TRANSFORM_REORDER_H
#define TRANSFORM_REORDER_H
#include <stddef.h>
#include "base/selection.h"
#include "model/filter.h"
#include "solver/order.h"

struct reorder {
	const struct selection *layers;
	enum order_kind kind;
	enum order_key key;
	long group;			/* columns; 0: channel, -1: tensor */
	size_t done;			/* layers so far */
};

/* The order of a layer's columns by its Hessian; free() it. file: for messages. group: as in struct reorder.
 * A diagonal element that is negative or not finite is a fatal error. */
int32_t *reorder_columns(const char *file, const char *layer, size_t n, const float hessian[n][n],
	enum order_kind kind, enum order_key key, long group);
/*
 * part() of a filter: writes <layer>/order for every selected layer of the part that has a hessian. Layers
 * that share a Hessian share the order, by a hard link.
 */
void reorder_part(void *reorder, const struct filter *f);
#endif
