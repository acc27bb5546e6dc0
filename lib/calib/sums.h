/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sums.h -- the sums over the inputs of a layer, by modality and with a prior
 *
 * Tokens of text and of images are summed apart, until somebody asks for the sum over all. An expert that
 * fewer tokens reached than it has inputs, c < n, also has a prior: the same sums of tokens whether they
 * reached it or not. Methods work on S + (n - c)·S̄ (calib/hessian.h).
 *
 *	struct sums s = sums_make(in, modalities, true);
 *
 *	sums_add(&s, HALF_NONE, &batch, x);		for each batch
 *	sums_write(&s, out, file, layer);		or sums_mixed(), sums_percentile()
 *	sums_free(&s);
 *
 * file, layer: names for messages. Functions that look at sums die, naming them, if no token was seen, or a
 * sum is not finite.
 */
#ifndef CALIB_SUMS_H
#define CALIB_SUMS_H
#include <stdbool.h>
#include <stddef.h>
#include "calib/hessian.h"
#include "calib/moments.h"
#include "forward/batch.h"
#include "num/half.h"

struct sums {
	size_t in;			/* 0: nothing is summed */
	size_t modalities;		/* 1: tokens are not told apart */
	struct moments *moments;	/* [modalities] */
	struct sums *prior;		/* not told apart, borrowed; NULL: the layer is no expert */
	bool partial;			/* other files have the rest: it is no error if no token was seen */
	struct hessian mixed;		/* of sums_mixed(), until sums_drop() */
	char *written;			/* the group of the output that has them, or NULL */
};

struct sums sums_make(size_t in, size_t modalities, bool products);	/* false: without Σ x xᵀ */
void sums_free(struct sums *s);
/* Adds a batch, rounded to the type before it is summed. Nothing where in is 0. */
void sums_add(struct sums *s, enum half_type type, const struct batch *batch, const float *x);
/* Adds rows that are one sequence. */
void sums_add_rows(struct sums *s, enum half_type type, size_t rows, const float *x);
/* Adds what a Hessian file has for the group, of as many modalities. Dies if it does not fit. */
void sums_add_hessian(struct sums *s, const struct part *part, const char *group);

/* The prior, where it is needed, or NULL. */
struct sums *sums_prior(const struct sums *s);
/* The sum over all modalities, which are not told apart any more. */
struct moments *sums_total(struct sums *s);
/* What methods work on, with the prior mixed in where it is needed: views, until sums_drop(). */
struct hessian sums_mixed(struct sums *s, const char *file, const char *layer);
/* The percentile p of |x| of the inputs of a modality (calib/histogram.h), or of all (ALL_MODALITIES), the
 * prior weighted as in sums_mixed(), at most max |x|. Of all: as sums_total(). For sums without products. */
enum { ALL_MODALITIES = 256 };
float sums_percentile(struct sums *s, size_t modality, double p, const char *file, const char *layer);
/* Writes the sums of each modality below the layer, or a link to the group that has them, and drops what was
 * rounded. */
void sums_write(struct sums *s, struct output *out, const char *file, const char *layer);
void sums_drop(struct sums *s);		/* frees what was rounded */
#endif
