/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * reorder.h -- orders of the layers of a Hessian file
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

/* The order of a layer's columns by its Hessian; free() it. file: for messages. group as of struct reorder.
 * Dies on a diagonal that is not finite or negative. */
int32_t *reorder_columns(const char *file, const char *layer, size_t n, const float hessian[n][n],
	enum order_kind kind, enum order_key key, long group);
/*
 * Writes <layer>/order for every layer of the part that has a hessian and is
 * selected; layers that share a Hessian share the order by hard link.
 */
void reorder_part(void *reorder, const struct filter *f);
#endif
