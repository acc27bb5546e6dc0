/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian.h -- the second moments of a layer's inputs: what a file of kind hessian holds, and how a method
 * asks for them
 *
 *	<layer>/hessian [in, in] = Σ x xᵀ over tokens, count, absmax = max |x|, mean_abs = mean |x|,
 *	fourth = Σ x⁴, and histogram, of all |x| (calib/histogram.h)
 *
 * (docs/format.md). Where tokens of several modalities reach a layer, each of these has a leading axis, an
 * element for each, and methods work on the sums over all. An expert that fewer tokens reached than it has
 * inputs, c < n, has a prior beside them, the same of tokens whether they reach it or not; methods work on
 *	S + (n - c)·S̄, a sum over n tokens, S̄ = <layer>/prior/hessian / <layer>/prior/count
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
	int64_t count;			/* tokens; 0: none, but the layer has a prior */
	const float *sum;		/* [in][in] */
	const float *absmax, *mean_abs;	/* [in]; NULL where they are not there, and so are the next two */
	const double *fourth;		/* [in] */
	const int64_t *histogram;	/* [HISTOGRAM_BINS] */
};

/* Whether the file holds one for the layer. */
bool hessian_there(const struct part *part, const char *layer);
/* The layer's, of all its tokens: views of the part, or sums that are kept as long as it; n: its inputs, 0:
 * any. Dies, naming file and path, if one does not fit. */
struct hessian hessian_find(const struct part *part, const char *layer, size_t n);
/* How many modalities the layer's has, 1 without a leading axis; and that of one of them, views. */
size_t hessian_modalities(const struct part *part, const char *layer);
struct hessian hessian_modality(const struct part *part, const char *layer, size_t n, size_t modality);
/* The path of a layer's prior; free() it. Whether a group is one. */
char *hessian_prior(const char *layer);
bool hessian_is_prior(const char *group);
/* S + (n - c)·S̄ in new memory behind .sum, with absmax the larger of both behind it, both to be freed by
 * free(sum); count: the n tokens that it is a sum over; mean_abs, fourth and histogram are NULL. */
struct hessian hessian_mix(const struct hessian *h, const struct hessian *prior);
/* What methods work on: the layer's as it is, or with its prior mixed in: then *own is memory to free(). */
struct hessian hessian_mixed(const struct part *part, const char *layer, size_t n, float **own);
/* Dies, naming file and layer, unless the sum is symmetric up to the rounding of sums of products, and its
 * diagonal finite and not negative. */
void hessian_check(const char *file, const char *layer, size_t n, const float sum[n * n]);
/* Wants all of each; of one modality without a leading axis. */
void hessian_write(struct output *out, const char *layer, size_t modalities,
	const struct hessian h[modalities]);
/* The name of the first that is absent of what stands beside the sum, or NULL. */
const char *hessian_lacks(const struct hessian *h);

/* What a method knows of a layer's inputs. */
struct second_moments {
	const float *hessian;		/* [in][in]; NULL: not known */
	const float *absmax;		/* [in], likewise */
	int64_t count;			/* tokens that reached the layer, where there is a Hessian */
	double prior;			/* the part of the Hessian that is its prior's, 0 to 1 */
	const int32_t *order;		/* [in] position → column; NULL: columns as they stand */
};

/*
 * Where that comes from: files (below), or a calibration in memory (calib/calibrate.h). If the Hessian is
 * needed, find() dies unless it is known. Views stay valid until drop(). peek() is called before the first
 * layer is read: it dies as find() would, but mixes no prior in, and knows nothing of a calibration to come.
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
	size_t mixes;			/* found since the last drop(), */
	struct mix { const float *sum; struct hessian mixed; } *mix;	/* of the sums in the file */
};
struct moments_source moments_of_files(struct moments_files *f);
#endif
