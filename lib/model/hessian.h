/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian.h -- the Hessian of a linear layer
 *
 *	hessian = Σ x xᵀ over tokens, a plain sum, with its count
 *
 * Products in float a window, summed in double in the order of the windows,
 * rounded once to float (SPEC section 4).
 */
#ifndef MODEL_HESSIAN_H
#define MODEL_HESSIAN_H
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"

struct hessian {
	size_t in;
	uint64_t count;			/* tokens */
	double *sum;			/* [in][in], the upper triangle */
	double *absolute;		/* [in] Σ |x| */
	float *absmax;			/* [in] */
};
struct hessian hessian_make(size_t in);
void hessian_free(struct hessian *h);
void hessian_add(struct hessian *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in]);
void hessian_add_bf16(struct hessian *h, size_t windows, size_t tokens, const uint16_t x[windows][tokens][h->in]);
/* Adds what a file of kind hessian holds for the layer. */
void hessian_add_file(struct hessian *h, const struct image *image, const char *layer);
/* hessian = the symmetric sum in float, absmax, mean_abs: [in][in], [in], [in]. Dies, naming file and layer, if not finite. */
void hessian_finish(const struct hessian *h, const char *file, const char *layer, float hessian[h->in][h->in], float mean_abs[h->in]);
/* file: what it was made from, for messages. */
void hessian_write(struct output *out, const char *file, const char *layer, const struct hessian *h);
#endif
