/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * moments.h -- sums over the inputs of a layer (calib/sums.h has the sums of all modalities of a layer)
 *
 *	Σ x xᵀ over tokens, Σ |x|, Σ x⁴, max |x|, number of tokens, histogram of |x|
 *	Σ z xᵀ with inputs z of the same tokens in another model, after moments_pair()
 *
 * Products of a window are in float. They are summed in double in the order of the windows, and rounded once
 * to float.
 *
 * Calling sequence: moments_make(); moments_add() or its variants; moments_hessian(); moments_free().
 */
#ifndef CALIB_MOMENTS_H
#define CALIB_MOMENTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "calib/hessian.h"
#include "device/device.h"
#include "num/half.h"

struct moments {
	size_t in;
	uint64_t count;			/* tokens */
	double *sum;			/* [in][in], the upper triangle; NULL: not summed */
	double *absolute, *fourth;	/* [in] Σ |x|, Σ x⁴ */
	double *cross;			/* [in][in] Σ z xᵀ; NULL: not summed */
	bool differ;			/* a z that was added differs from its x */
	float *absmax;			/* [in] */
	int64_t *histogram;		/* [HISTOGRAM_BINS] (calib/histogram.h) */
	size_t splits;			/* columns that maximum and histogram leave out */
	const int32_t *split;		/* [splits], ascending, not owned */
	float *hessian, *mean_abs, *crossed;	/* of moments_hessian(), until moments_drop() */
	struct device_moments *on_device;	/* sums on a device, or NULL */
	const struct device *device;
};
struct moments moments_make(size_t in, bool products);	/* false: without Σ x xᵀ */
/* Also sums Σ z xᵀ. Not on a device. */
void moments_pair(struct moments *h);
void moments_free(struct moments *h);
/* Adds rows in the memory of a device, x or x rounded to the type, as one window. The sums stay there. */
void moments_add_on_device(struct moments *h, const struct device *d, enum half_type type, size_t rows,
	const float *x);
/* Adds the sums on the device to those here, except Σ x xᵀ, which stays there for moments_hessian(). Call it
 * before other members are read. */
void moments_fetch(struct moments *h);
void moments_add(struct moments *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in]);
void moments_add_bf16(struct moments *h, size_t windows, size_t tokens,
	const uint16_t x[windows][tokens][h->in]);
/* Adds to Σ z xᵀ; the other sums have the same rows x already. If all z are equal to x in every bit, the
 * result has Σ x xᵀ for Σ z xᵀ. */
void moments_add_cross(struct moments *h, size_t windows, size_t tokens,
	const float z[windows][tokens][h->in], const float x[windows][tokens][h->in]);
/* Adds the Hessian of a layer from a file. file, layer: for messages. An absent member is a fatal error. */
void moments_add_hessian(struct moments *h, const char *file, const char *layer, const struct hessian *other);
/* The sums rounded to float: views, until the sums change or are dropped. A sum that is not finite is a fatal
 * error, which names file and layer. */
struct hessian moments_hessian(struct moments *h, const char *file, const char *layer);
void moments_drop(struct moments *h);	/* frees the rounded sums */
/* Adds other sums of the same inputs. */
void moments_join(struct moments *h, const struct moments *other);
#endif
