/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian.h -- what a file of kind hessian holds for a layer
 *
 *	<layer>/hessian [in, in] = Σ x xᵀ over tokens, <layer>/count (SPEC section 4)
 */
#ifndef MODEL_HESSIAN_H
#define MODEL_HESSIAN_H
#include <stddef.h>
#include "io/image.h"

/* The Hessian of a layer with n inputs, [n][n]; dies, naming file and path, where there is none of this shape. */
const float *hessian_find(const struct image *hessian, const char *layer, size_t n);
/* The same; also dies where it is not symmetric. */
const float *hessian_read(const struct image *hessian, const char *layer, size_t n);
#endif
