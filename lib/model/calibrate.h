/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrate.h -- Hessians of linear layers from what a model feeds them
 *
 *	hessian = Σ x xᵀ over tokens, a plain sum, with its count
 *
 * Products in float a window, summed in double in the order of the windows,
 * rounded once to float (SPEC section 4). Layers that see the same input share
 * one Hessian, stored once by a hard link.
 */
#ifndef MODEL_CALIBRATE_H
#define MODEL_CALIBRATE_H
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"
#include "model/block.h"
#include "model/config.h"
#include "model/layer.h"

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
/* hessian = the symmetric sum in float, absmax, mean_abs: [in][in], [in], [in]. Dies, naming `layer`, if not finite. */
void hessian_finish(const struct hessian *h, const char *layer, float hessian[h->in][h->in], float mean_abs[h->in]);
void hessian_write(struct output *out, const char *layer, const struct hessian *h);

/* The Hessians of one part of a model: of every layer that --layers selects. */
struct calibration {
	const struct config *config;
	struct layer_list list;
	struct hessian *site;		/* [blocks · SITES + 1], the last one the head's; in = 0: not wanted */
};
struct calibration calibrate_begin(const struct image *image, const struct config *c);
struct observer calibrate_observer(struct calibration *k);
/* The layer's Hessian, or NULL. */
const struct hessian *calibrate_find(const struct calibration *k, const char *layer);
void calibrate_write(struct calibration *k, struct output *out);
void calibrate_end(struct calibration *k);

/*
 * From a part of kind activations, <layer>/input [tokens, in], as windows of
 * ctx tokens (the last may be shorter), of which every `shards`-th from the
 * shard-th on is taken (counted from 1). limit: first rows only; 0: all.
 */
void calibrate_activations(struct output *out, const struct image *image, size_t ctx, size_t limit, size_t shard, size_t shards);
/* From the same part of n files of kind hessian: summed in the order given. */
void calibrate_sum(struct output *out, size_t n, struct image *const image[n]);
#endif
