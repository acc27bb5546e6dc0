/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * order.h -- orders of the layers of a Hessian file
 */
#ifndef TRANSFORM_REORDER_H
#define TRANSFORM_REORDER_H
#include <stddef.h>
#include "base/selection.h"
#include "io/image.h"
#include "quant/order.h"

/*
 * Writes <layer>/order for every layer of the part that has a hessian and is
 * selected; layers that share a Hessian share the order by hard link.
 * Dies on a diagonal that is not finite or negative. Returns how many layers.
 */
size_t order_part(struct output *out, const struct image *image, const struct selection *layers,
	enum order_kind kind, enum order_key key, size_t group);
#endif
