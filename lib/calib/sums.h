/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sums.h -- sums over the inputs of a layer, for each modality, and with a prior
 *
 * Text tokens and visual tokens are summed separately, until the sum over all is requested. An expert that
 * fewer tokens reached than it has inputs, c < n, also has a prior: the same sums over tokens that need not
 * have reached it. Methods use S + (n - c)·S̄ (calib/hessian.h).
 *
 *	struct sums s = sums_make(in, modalities, true);
 *
 *	sums_add(&s, HALF_NONE, &batch, x, &rounded);	for each batch
 *	sums_write(&s, out, file, layer);		or sums_mixed(), sums_percentile()
 *	sums_free(&s);
 *
 * file, layer: names for messages. Functions that read sums end with a fatal error if no token was added, or
 * if a sum is not finite.
 */
#ifndef CALIB_SUMS_H
#define CALIB_SUMS_H
#include <stdbool.h>
#include <stddef.h>
#include "calib/hessian.h"
#include "calib/moments.h"
#include "device/device.h"
#include "forward/batch.h"
#include "forward/projection.h"
#include "num/half.h"

struct sums {
	size_t in;			/* 0: nothing is summed */
	size_t modalities;		/* 1: not divided by modality */
	struct moments *moments;	/* [modalities] */
	struct sums *prior;		/* of 1 modality, not owned; NULL: the layer is no expert */
	const struct device *device;	/* where the rows are that sums_add() receives; NULL: here */
	bool partial;			/* other files have the rest: zero tokens are no error */
	struct hessian mixed;		/* of sums_mixed(), until sums_drop() */
	char *written;			/* group of the output with these sums, or NULL */
};

struct sums sums_make(size_t in, size_t modalities, bool products);	/* false: without Σ x xᵀ */
/* Also sums Σ z xᵀ (calib/moments.h). Not on a device. */
void sums_pair(struct sums *s);
void sums_free(struct sums *s);
/* Rounds a batch to the type and adds it. No effect if `in` is 0. rounded: memory for the rounded rows. */
void sums_add(struct sums *s, enum half_type type, const struct batch *batch, const float *x,
	struct workspace *rounded);
/* Adds rows that are one sequence. */
void sums_add_rows(struct sums *s, enum half_type type, size_t rows, const float *x);
/* Rounds both rows z and x of a batch, and adds them to Σ z xᵀ. */
void sums_add_cross(struct sums *s, enum half_type type, const struct batch *batch, const float *z,
	const float *x);
/* Adds the Hessian of a group of a file. It must have the same shape and the same number of modalities. */
void sums_add_hessian(struct sums *s, const struct part *part, const char *group);

/* The prior, if it is needed; NULL: no prior, or enough tokens. */
struct sums *sums_prior(const struct sums *s);
/* Joins all modalities into one and returns its sums. */
struct moments *sums_total(struct sums *s);
/* The Hessian that methods use, mixed with the prior if that is needed: views, until sums_drop(). Joins
 * modalities. */
struct hessian sums_mixed(struct sums *s, const char *file, const char *layer);
/* The percentile p of |x| of the inputs of a modality (calib/histogram.h), at most max |x|. A prior is
 * weighted as in sums_mixed(). ALL_MODALITIES: joins modalities as sums_total() does. Sums need no products.
 */
enum { ALL_MODALITIES = 256 };
float sums_percentile(struct sums *s, size_t modality, double p, const char *file, const char *layer);
/* Writes the sums of each modality to the group `layer`, or a link to the group that has them. Drops rounded
 * sums. */
void sums_write(struct sums *s, struct output *out, const char *file, const char *layer);
void sums_drop(struct sums *s);		/* frees rounded sums */
#endif
