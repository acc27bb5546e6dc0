/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * moments.h -- how the second moments of a layer's inputs are summed: one sum; sums.h has those of a layer
 *
 *	Σ x xᵀ over tokens, Σ |x|, Σ x⁴, max |x|, how many tokens, and how many |x| lie where
 *
 * Products in float a window, summed in double in the order of the windows,
 * rounded once to float.
 */
#ifndef CALIB_MOMENTS_H
#define CALIB_MOMENTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "calib/hessian.h"

struct moments {
	size_t in;
	uint64_t count;			/* tokens */
	double *sum;			/* [in][in], the upper triangle; NULL: all but this is wanted */
	double *absolute, *fourth;	/* [in] Σ |x|, Σ x⁴ */
	float *absmax;			/* [in] */
	int64_t *histogram;		/* [HISTOGRAM_BINS] (calib/histogram.h) */
	size_t splits;			/* columns that absmax and histogram leave out, */
	const int32_t *split;		/* [splits], ascending, borrowed */
	float *hessian, *mean_abs;	/* of moments_hessian(), until moments_drop() */
};
struct moments moments_make(size_t in, bool products);	/* false: without Σ x xᵀ */
void moments_free(struct moments *h);
void moments_add(struct moments *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in]);
void moments_add_bf16(struct moments *h, size_t windows, size_t tokens,
	const uint16_t x[windows][tokens][h->in]);
/* Adds what a file holds for the layer; its name is for messages. */
void moments_add_hessian(struct moments *h, const char *file, const char *layer, const struct hessian *other);
/* All of it rounded to float: views, until the sums change or are dropped. Dies, naming file and layer, if a
 * sum is not finite. */
struct hessian moments_hessian(struct moments *h, const char *file, const char *layer);
void moments_drop(struct moments *h);	/* frees what was rounded */
/* Adds other sums of the same inputs. */
void moments_join(struct moments *h, const struct moments *other);
#endif
