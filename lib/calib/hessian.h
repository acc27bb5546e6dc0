/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian.h -- Hessians of layers: the members of a file of kind hessian, and the source of moments of a
 * method
 *
 * A layer has the members (docs/format.md)
 *	<layer>/hessian [in, in] = Σ x xᵀ over tokens, count, absmax = max |x|, mean_abs = mean |x|,
 *	fourth = Σ x⁴, and histogram, of all |x| (calib/histogram.h)
 * and, of two models (hessian-accum --pair),
 *	<layer>/cross [in, in] = Σ z xᵀ, where z is the input of the same token in the other model
 * If tokens of several modalities reach the layer, each member has a leading axis with one element for each
 * modality. Methods use the sum over all modalities.
 *
 * An expert that fewer tokens reached than it has inputs, c < n, also has a prior: the same members, over
 * tokens that need not have reached it. Methods then use
 *	S + (n - c)·S̄, a sum over n tokens, S̄ = <layer>/prior/hessian / <layer>/prior/count
 * and `cross` in the same way.
 *
 * Members that are missing or of a wrong shape, or that are not finite, are fatal errors, which name file and
 * path.
 */
#ifndef CALIB_HESSIAN_H
#define CALIB_HESSIAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"
#include "model/layer_ref.h"

struct hessian {
	size_t in;
	int64_t count;			/* tokens; 0 is valid for a layer with a prior */
	const float *sum;		/* [in][in] */
	const float *cross;		/* [in][in] row z, column x; NULL: absent, as for the next four */
	const float *absmax, *mean_abs;	/* [in] */
	const double *fourth;		/* [in] */
	const int64_t *histogram;	/* [HISTOGRAM_BINS] */
};

/* part_open() of a file of Hessians. Warns if it is one shard: sums of a part of the calibration. */
struct part *hessian_open(const char *name);
/* Whether the file has a Hessian of the layer. */
bool hessian_exists(const struct part *part, const char *layer);
/* The Hessian of the layer over all tokens: views of the part, or sums that the part owns. n: expected number
 * of inputs, 0: any. */
struct hessian hessian_find(const struct part *part, const char *layer, size_t n);
/* Number of modalities of a Hessian, 1 without a leading axis; and the Hessian of one modality (views). */
size_t hessian_modalities(const struct part *part, const char *layer);
struct hessian hessian_modality(const struct part *part, const char *layer, size_t n, size_t modality);
/* The path of a layer's prior, to be freed; and whether a group is a prior. */
char *hessian_prior(const char *layer);
bool hessian_is_prior(const char *group);
/* S + (n - c)·S̄ in new memory, with count = n and absmax the maximum of both. free(sum) frees sum, cross
 * and absmax. mean_abs, fourth and histogram are NULL. */
struct hessian hessian_mix(const struct hessian *h, const struct hessian *prior);
/* The Hessian that methods use: the layer's, or its mixture with the prior. free(*own), which is NULL or the
 * mixture. */
struct hessian hessian_mixed(const struct part *part, const char *layer, size_t n, float **own);
/* Fatal error unless the sum is symmetric up to the rounding of sums of products, finite, and not negative on
 * the diagonal. */
void hessian_check(const char *file, const char *layer, size_t n, const float sum[n * n]);
/* Fatal error unless the layer, and its prior, have finite cross moments. */
void hessian_check_cross(const struct part *part, const char *layer);
/* Writes Hessians of each modality, whose members must all be present, except `cross`. One modality has no
 * leading axis. */
void hessian_write(struct output *out, const char *layer, size_t modalities,
	const struct hessian h[modalities]);
/* The name of the first absent member other than `cross`, or NULL. */
const char *hessian_absent_member(const struct hessian *h);

/* Statistics of a layer's inputs for a method. */
struct second_moments {
	const float *hessian;		/* [in][in]; NULL: unknown */
	const float *cross;		/* [in][in] Σ z xᵀ; NULL: unknown */
	const float *absmax;		/* [in]; NULL: unknown */
	int64_t count;			/* tokens that reached the layer, if it has a Hessian */
	double prior;			/* share of the prior in the Hessian, 0 to 1 */
	const int32_t *order;		/* [in] position → column; NULL: storage order */
};

/*
 * A source of statistics: files (below), or a calibration in memory (calib/calibrate.h). find() with `needed`
 * is a fatal error if the Hessian is unknown. Views stay valid until drop(). peek() is called before the
 * first layer is read. It has the same fatal errors as find(), but does not mix in a prior, and does not run
 * a calibration.
 */
struct moments_source {
	struct second_moments (*find)(void *arg, const struct layer_ref *layer, size_t in, bool needed);
	struct second_moments (*peek)(void *arg, const struct layer_ref *layer, size_t in, bool needed);
	void (*drop)(void *arg);
	void *arg;
	const char *name, *order_name;	/* of the files, for messages */
};

struct moments_files {
	struct part *hessian, *order;	/* either may be NULL */
	size_t mixes;			/* number of mixtures since the last drop() */
	struct mix { const float *sum; struct hessian mixed; } *mix;	/* sum: in the file */
};
struct moments_source moments_of_files(struct moments_files *f);
#endif
