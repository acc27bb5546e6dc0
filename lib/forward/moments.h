/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * moments.h -- the Hessian of a linear layer
 *
 *	hessian = Σ x xᵀ over tokens, a plain sum, with its count
 *
 * Products in float a window, summed in double in the order of the windows,
 * rounded once to float (SPEC section 4).
 */
#ifndef FORWARD_MOMENTS_H
#define FORWARD_MOMENTS_H
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"

struct moments {
	size_t in;
	uint64_t count;			/* tokens */
	double *sum;			/* [in][in], the upper triangle */
	double *absolute;		/* [in] Σ |x| */
	float *absmax;			/* [in] */
};
struct moments moments_make(size_t in);
void moments_free(struct moments *h);
void moments_add(struct moments *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in]);
void moments_add_bf16(struct moments *h, size_t windows, size_t tokens, const uint16_t x[windows][tokens][h->in]);
/* Adds what a file of kind hessian holds for the layer. */
void moments_add_file(struct moments *h, const struct image *image, const char *layer);
/* hessian = the symmetric sum in float, absmax, mean_abs: [in][in], [in], [in]. Dies, naming file and layer, if not finite. */
void moments_finish(const struct moments *h, const char *file, const char *layer, float hessian[h->in][h->in], float mean_abs[h->in]);
/* file: what it was made from, for messages. */
void moments_write(struct output *out, const char *file, const char *layer, const struct moments *h);
#endif
