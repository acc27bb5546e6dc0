/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hessian.c -- see hessian.h */
#include "calib/hessian.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "calib/histogram.h"
#include "model/layer.h"
#include "model/shard_file.h"
#include "num/half.h"

/* Largest error of an element relative to √(H_ii H_jj), which bounds the element ij of Σ x xᵀ. Sums of
 * products in float32 differ by far less. */
static const double ROUNDING = 1e-3;

/* Sets *asymmetric to the first row that differs from its column, and *large to the first with an element
 * beyond its bound, or to n. */
static void find_bad(size_t n, const float h[n][n], size_t *asymmetric, size_t *large)
{
	enum { TILE = 64 };
	size_t a = n, b = n;

	#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(min:a, b)
	for (size_t i0 = 0; i0 < n; i0 += TILE)
		for (size_t j0 = 0; j0 <= i0; j0 += TILE)
			for (size_t i = i0; i < n && i < i0 + TILE; i++)
				for (size_t j = j0; j < i && j < j0 + TILE; j++) {
					const double x = (double)h[i][j], difference = x - (double)h[j][i];
					const double p = (double)h[i][i], q = (double)h[j][j], max = p * q;
					/* squares below the least float lose digits; products do not */
					const double bound = (p + FLT_MIN) * (q + FLT_MIN);

					if (difference != 0 && i < a &&
						difference * difference > ROUNDING * ROUNDING * max)
						a = i;
					if (i < b && x * x > (1 + ROUNDING) * (1 + ROUNDING) * bound)
						b = i;
				}
	*asymmetric = a, *large = b;
}

struct part *hessian_open(const char *name)
{
	struct part *y = part_open(name, "hessian");

	shard_warn(y);
	return y;
}

bool hessian_exists(const struct part *part, const char *layer)
{
	return layer_has(part, layer, "hessian");
}

/* Members in addition to the sum, with in elements or the number of bins. */
static const struct extra {
	const char *name;
	enum tensor_type type;
	size_t elements;	/* 0: in */
	size_t view;		/* offset in struct hessian of the pointer, which is NULL if absent */
} extra[] = {
	{ "absmax", TENSOR_F32, 0, offsetof(struct hessian, absmax) },
	{ "mean_abs", TENSOR_F32, 0, offsetof(struct hessian, mean_abs) },
	{ "fourth", TENSOR_F64, 0, offsetof(struct hessian, fourth) },
	{ "histogram", TENSOR_I64, HISTOGRAM_BINS, offsetof(struct hessian, histogram) },
};
enum { EXTRAS = sizeof extra / sizeof *extra };

static double element(const struct tensor *t, size_t i)
{
	switch (t->type) {
	case TENSOR_F32:	return (double)((const float *)t->data)[i];
	case TENSOR_F64:	return ((const double *)t->data)[i];
	default:		return (double)((const int64_t *)t->data)[i];
	}
}

static void find_extra(struct hessian *h, const struct part *part, const char *layer,
	const struct extra *b, size_t modalities, size_t modality)
{
	const size_t n = b->elements ? b->elements : h->in, dim[] = { modalities, n };
	const bool several = modalities > 1;
	double sum = 0;
	struct tensor t;

	if (!layer_find(part, layer, b->name, b->type, several ? 2 : 1,
			several ? dim : &n, &t))
		return;
	t.data = (char *)t.data + modality * n * tensor_size(b->type);
	for (size_t i = 0; i < n; i++) {
		const double x = element(&t, i);

		sum += x;
		if (!(x >= 0) || isinf(x))
			die("%s: %s/%s: element %zu is %g, expected a magnitude", part_name(part), layer,
				b->name, i, x);
	}
	if (b->type == TENSOR_I64 && fabs(sum - (double)h->count * (double)h->in) > 1e-12 * sum)
		die("%s: %s/%s: has %g numbers, expected %zu for each of %ji tokens", part_name(part),
			layer, b->name, sum, h->in, (intmax_t)h->count);
	memcpy((char *)h + b->view, &t.data, sizeof t.data);
}

/* The dataset of Σ x xᵀ, of rank 2 or 3. */
static struct tensor find_sum(const struct part *part, const char *layer)
{
	struct tensor t;

	if (!layer_find(part, layer, "hessian", TENSOR_F32, -1, NULL, &t))
		die("%s: %s/hessian: is missing; the layer was not calibrated, or this is the Hessian of "
			"another model", part_name(part), layer);
	if (t.rank != 2 && (t.rank != 3 || !t.dim[0]))
		die("%s: %s/hessian: has %d dimensions, expected 2, or 3 with an axis of modalities",
			part_name(part), layer, t.rank);
	if (t.dim[t.rank - 2] != t.dim[t.rank - 1])
		die("%s: %s/hessian: has %zu rows and %zu columns, expected a square", part_name(part),
			layer, t.dim[t.rank - 2], t.dim[t.rank - 1]);
	return t;
}

/* Fatal error if no token was counted, unless the layer has a prior. */
static void check_seen(const struct part *part, const char *layer, int64_t count)
{
	char *prior = hessian_prior(layer);

	if (count < 0 || (!count && !hessian_exists(part, prior)))
		die("%s: %s/count: is not positive, expected one token or more", part_name(part), layer);
	free(prior);
}

static int64_t count_of(const struct part *part, const char *layer, size_t modalities, size_t modality)
{
	struct tensor count;

	if (!layer_find(part, layer, "count", TENSOR_I64, -1, NULL, &count))
		die("%s: %s/count: is missing", part_name(part), layer);
	if (tensor_count(&count) != modalities)
		die("%s: %s/count: has the wrong size, expected one number%s", part_name(part), layer,
			modalities > 1 ? " for each modality" : "");
	return ((const int64_t *)count.data)[modality];
}

/* Σ z xᵀ of a modality, or NULL. h: Σ x xᵀ, which has the same shape. */
static const float *find_cross(const struct part *part, const char *layer, const struct tensor *h,
	size_t modality)
{
	struct tensor t;

	if (!layer_find(part, layer, "cross", TENSOR_F32, h->rank, h->dim, &t))
		return NULL;
	return (const float *)t.data + modality * h->dim[h->rank - 1] * h->dim[h->rank - 1];
}

size_t hessian_modalities(const struct part *part, const char *layer)
{
	const struct tensor t = find_sum(part, layer);

	return t.rank == 3 ? t.dim[0] : 1;
}

struct hessian hessian_modality(const struct part *part, const char *layer, size_t n, size_t modality)
{
	const struct tensor h = find_sum(part, layer);
	const size_t modalities = h.rank == 3 ? h.dim[0] : 1;
	struct hessian y = { .in = h.dim[h.rank - 1] };

	if (n && y.in != n)
		die("%s: %s/hessian: has shape [%zu, %zu], expected [%zu, %zu]", part_name(part), layer,
			y.in, y.in, n, n);
	y.sum = (const float *)h.data + modality * y.in * y.in;
	y.cross = find_cross(part, layer, &h, modality);
	y.count = count_of(part, layer, modalities, modality);
	if (y.count < 0)
		check_seen(part, layer, y.count);
	for (size_t i = 0; i < EXTRAS; i++)
		find_extra(&y, part, layer, &extra[i], modalities, modality);
	return y;
}

/* Adds the Hessian of another modality. y owns all members that are not NULL. */
static void add_modality(struct hessian *y, const struct hessian *h)
{
	const size_t n = y->in;
	float *sum = (float *)(uintptr_t)y->sum, *absmax = (float *)(uintptr_t)y->absmax;
	float *cross = (float *)(uintptr_t)y->cross;
	float *mean = (float *)(uintptr_t)y->mean_abs;
	double *fourth = (double *)(uintptr_t)y->fourth;
	int64_t *histogram = (int64_t *)(uintptr_t)y->histogram;
	const double all = (double)y->count + (double)h->count, part = all > 0 ? (double)h->count / all : 0;

	for (size_t i = 0; i < n * n; i++)
		sum[i] += h->sum[i];
	for (size_t i = 0; cross && i < n * n; i++)
		cross[i] += h->cross[i];
	for (size_t i = 0; i < n; i++) {
		if (absmax)
			absmax[i] = fmaxf(absmax[i], h->absmax[i]);
		if (mean)
			mean[i] = (float)((1 - part) * (double)mean[i] + part * (double)h->mean_abs[i]);
		if (fourth)
			fourth[i] += h->fourth[i];
	}
	for (size_t i = 0; histogram && i < HISTOGRAM_BINS; i++)
		histogram[i] += h->histogram[i];
	y->count += h->count;
}

/* The sums over all modalities. The part owns the memory. */
static struct hessian add_modalities(const struct part *part, const char *layer, size_t n,
	size_t modalities)
{
	struct hessian y = hessian_modality(part, layer, n, 0);
	float *sum = part_keep(part, xalloc(y.in * y.in, sizeof *sum));

	memcpy(sum, y.sum, y.in * y.in * sizeof *sum);
	y.sum = sum;
	if (y.cross) {
		float *cross = part_keep(part, xalloc(y.in * y.in, sizeof *cross));

		memcpy(cross, y.cross, y.in * y.in * sizeof *cross);
		y.cross = cross;
	}
	for (const struct extra *b = extra; b < extra + EXTRAS; b++) {
		const size_t bytes = (b->elements ? b->elements : y.in) * tensor_size(b->type);
		void *from, *own;

		memcpy(&from, (const char *)&y + b->view, sizeof from);
		if (!from)
			continue;
		own = part_keep(part, xalloc(bytes, 1));
		memcpy(own, from, bytes);
		memcpy((char *)&y + b->view, &own, sizeof own);
	}
	for (size_t m = 1; m < modalities; m++) {
		const struct hessian other = hessian_modality(part, layer, y.in, m);

		add_modality(&y, &other);
	}
	return y;
}

struct hessian hessian_find(const struct part *part, const char *layer, size_t n)
{
	const size_t modalities = hessian_modalities(part, layer);
	struct hessian y;

	if (modalities == 1)
		check_seen(part, layer, count_of(part, layer, 1, 0));
	y = modalities > 1 ? add_modalities(part, layer, n, modalities) :
		hessian_modality(part, layer, n, 0);
	check_seen(part, layer, y.count);
	return y;
}

void hessian_check(const char *file, const char *layer, size_t n, const float sum[n * n])
{
	size_t asymmetric, large;

	for (size_t i = 0; i < n; i++)
		if (!(sum[i * n + i] >= 0 && isfinite(sum[i * n + i])))
			die("%s: %s/hessian: diagonal element %zu is %g, expected a sum of squares", file,
				layer, i, (double)sum[i * n + i]);
	if (!half_finite(n * n, sum, HALF_NONE))
		die("%s: %s/hessian: holds a number that is not finite", file, layer);
	find_bad(n, (const float (*)[n])sum, &asymmetric, &large);
	if (asymmetric < n)
		die("%s: %s/hessian: is not symmetric: row and column %zu differ", file, layer, asymmetric);
	if (large < n)
		die("%s: %s/hessian: is not a sum of products: an element of row %zu exceeds √(H_ii H_jj)",
			file, layer, large);
}

void hessian_check_cross(const struct part *part, const char *layer)
{
	char *path = hessian_prior(layer);
	const char *const groups[] = { layer, hessian_exists(part, path) ? path : NULL };

	for (size_t i = 0; i < 2 && groups[i]; i++) {
		const struct hessian h = hessian_find(part, groups[i], 0);

		if (!h.cross)
			die("%s: %s/cross: is missing, expected a file of hessian-accum --pair",
				part_name(part), groups[i]);
		if (!half_finite(h.in * h.in, h.cross, HALF_NONE))
			die("%s: %s/cross: holds a number that is not finite", part_name(part), groups[i]);
	}
	free(path);
}

/* Writes a member from the data of each modality; with one modality, without a leading axis and a copy. */
static void write_member(struct output *out, const char *layer, const char *name, enum tensor_type type,
	size_t modalities, int rank, const size_t dim[], const void *const data[])
{
	struct tensor t = tensor_of(type, (void *)(uintptr_t)data[0], rank - 1, dim + 1);
	const size_t bytes = tensor_count(&t) * tensor_size(type);

	if (modalities == 1) {
		layer_put(out, layer, name, t);
		return;
	}
	t = tensor_of(type, xalloc(modalities, bytes), rank, dim);
	for (size_t m = 0; m < modalities; m++)
		memcpy((char *)t.data + m * bytes, data[m], bytes);
	layer_put(out, layer, name, t);
	free(t.data);
}

void hessian_write(struct output *out, const char *layer, size_t modalities,
	const struct hessian h[modalities])
{
	const size_t n = h->in, square[] = { modalities, n, n };
	const void **data = xalloc(modalities, sizeof *data);

	for (size_t m = 0; m < modalities; m++)
		data[m] = h[m].sum;
	write_member(out, layer, "hessian", TENSOR_F32, modalities, 3, square, data);
	for (size_t m = 0; m < modalities; m++)
		data[m] = h[m].cross;
	if (h->cross)
		write_member(out, layer, "cross", TENSOR_F32, modalities, 3, square, data);
	for (size_t m = 0; m < modalities; m++)
		data[m] = &h[m].count;
	write_member(out, layer, "count", TENSOR_I64, modalities, 1, square, data);
	for (const struct extra *b = extra; b < extra + EXTRAS; b++) {
		const size_t dim[] = { modalities, b->elements ? b->elements : n };

		for (size_t m = 0; m < modalities; m++)
			memcpy(&data[m], (const char *)&h[m] + b->view, sizeof data[m]);
		write_member(out, layer, b->name, b->type, modalities, 2, dim, data);
	}
	free(data);
}

const char *hessian_absent_member(const struct hessian *h)
{
	for (const struct extra *b = extra; b < extra + EXTRAS; b++) {
		const void *data;

		memcpy(&data, (const char *)h + b->view, sizeof data);
		if (!data)
			return b->name;
	}
	return NULL;
}

static const char PRIOR[] = "/prior";

char *hessian_prior(const char *layer)
{
	return xformat("%s%s", layer, PRIOR);
}

bool hessian_is_prior(const char *group)
{
	const size_t n = strlen(group), end = strlen(PRIOR);

	return n > end && !strcmp(group + n - end, PRIOR);
}

struct hessian hessian_mix(const struct hessian *h, const struct hessian *prior)
{
	const size_t n = h->in;
	const double more = ((double)n - (double)h->count) / (double)prior->count;
	const bool crossed = h->cross && prior->cross;
	float *sum = xalloc((crossed ? 2 : 1) * n + 1, n * sizeof *sum), *absmax = sum + n * n;
	float *cross = crossed ? absmax + n : NULL;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i * n; j < (i + 1) * n; j++)
			sum[j] = (float)((double)h->sum[j] + more * (double)prior->sum[j]);
		for (size_t j = i * n; cross && j < (i + 1) * n; j++)
			cross[j] = (float)((double)h->cross[j] + more * (double)prior->cross[j]);
		if (h->absmax && prior->absmax)
			absmax[i] = fmaxf(h->absmax[i], prior->absmax[i]);
	}
	return (struct hessian){ .in = n, .count = (int64_t)n, .sum = sum, .cross = cross,
		.absmax = h->absmax && prior->absmax ? absmax : NULL };
}

struct hessian hessian_mixed(const struct part *part, const char *layer, size_t n, float **own)
{
	struct hessian h = hessian_find(part, layer, n);
	char *path = hessian_prior(layer);

	*own = NULL;
	if (h.count < (int64_t)h.in && hessian_exists(part, path)) {
		const struct hessian prior = hessian_find(part, path, h.in);

		hessian_check(part_name(part), layer, h.in, h.sum);
		hessian_check(part_name(part), path, h.in, prior.sum);
		h = hessian_mix(&h, &prior);
		*own = (float *)(uintptr_t)h.sum;
	}
	free(path);
	return h;
}

static struct second_moments peek_in_files(void *arg, const struct layer_ref *layer, size_t n, bool needed)
{
	const struct moments_files *f = arg;
	struct second_moments y = { 0 };
	struct tensor order;

	if (f->order && layer_find(f->order, layer->path, "order", TENSOR_I32, 1, &n, &order))
		y.order = order.data;
	if (f->hessian && (needed || hessian_exists(f->hessian, layer->path))) {
		const struct hessian h = hessian_find(f->hessian, layer->path, n);

		y.hessian = h.sum;
		y.cross = h.cross;
		y.absmax = h.absmax;
		y.count = h.count;
	}
	return y;
}

/* hessian_mixed(), computed once for all layers that share the sum. */
static struct hessian mixed_in_files(struct moments_files *f, const char *layer, size_t n, const float *sum)
{
	struct hessian y;
	float *own;

	for (size_t i = 0; i < f->mixes; i++)
		if (f->mix[i].sum == sum)
			return f->mix[i].mixed;
	y = hessian_mixed(f->hessian, layer, n, &own);
	if (own) {
		f->mix = xgrow(f->mix, f->mixes + 1, sizeof *f->mix);
		f->mix[f->mixes++] = (struct mix){ sum, y };
	}
	return y;
}

static struct second_moments in_files(void *arg, const struct layer_ref *layer, size_t n, bool needed)
{
	struct second_moments y = peek_in_files(arg, layer, n, needed);

	if (y.hessian) {
		const struct hessian h = mixed_in_files(arg, layer->path, n, y.hessian);

		y.hessian = h.sum;
		y.cross = h.cross;
		y.absmax = h.absmax;
		y.prior = h.count > y.count ? 1 - (double)y.count / (double)h.count : 0;
	}
	return y;
}

static void drop_files(void *arg)
{
	struct moments_files *f = arg;

	for (size_t i = 0; i < f->mixes; i++)
		free((void *)(uintptr_t)f->mix[i].mixed.sum);
	free(f->mix);
	f->mix = NULL;
	f->mixes = 0;
	if (f->hessian)
		part_drop(f->hessian);
}

struct moments_source moments_of_files(struct moments_files *f)
{
	return (struct moments_source){ .find = in_files, .peek = peek_in_files, .drop = drop_files, .arg = f,
		.name = f->hessian ? part_name(f->hessian) : NULL,
		.order_name = f->order ? part_name(f->order) : NULL };
}
