/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hessian.c -- see hessian.h */
#include "model/hessian.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "model/layer.h"
#include "num/half.h"
#include "num/histogram.h"

/* Sums of products in float32 differ by the order of summation: far less than this share of √(H_ii H_jj),
 * which bounds every element of Σ x xᵀ. */
static const double ASYMMETRY = 1e-3;

/* The first row that differs from its column, or n. */
static size_t first_asymmetric(size_t n, const float h[n][n])
{
	enum { TILE = 64 };
	size_t bad = n;

	#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(min:bad)
	for (size_t i0 = 0; i0 < n; i0 += TILE)
		for (size_t j0 = 0; j0 <= i0; j0 += TILE)
			for (size_t i = i0; i < n && i < i0 + TILE; i++)
				for (size_t j = j0; j < i && j < j0 + TILE; j++) {
					const double difference = (double)h[i][j] - (double)h[j][i];
					const double most = (double)h[i][i] * (double)h[j][j];

					if (difference != 0 && i < bad &&
						difference * difference > ASYMMETRY * ASYMMETRY * most)
						bad = i;
				}
	return bad;
}

bool hessian_there(const struct image *image, const char *layer)
{
	return image_has(image, layer_member(layer, "hessian"));
}

/* What stands beside the sum, of [in] or as many elements as there are bins. */
static const struct beside {
	const char *name;
	enum tensor_type type;
	size_t elements;	/* 0: in */
	size_t view;		/* in struct hessian: NULL where it is not there */
} beside[] = {
	{ "absmax", TENSOR_F32, 0, offsetof(struct hessian, absmax) },
	{ "mean_abs", TENSOR_F32, 0, offsetof(struct hessian, mean_abs) },
	{ "fourth", TENSOR_F64, 0, offsetof(struct hessian, fourth) },
	{ "histogram", TENSOR_I64, HISTOGRAM_BINS, offsetof(struct hessian, histogram) },
};
enum { BESIDE = sizeof beside / sizeof *beside };

static double element(const struct tensor *t, size_t i)
{
	switch (t->type) {
	case TENSOR_F32:	return (double)((const float *)t->data)[i];
	case TENSOR_F64:	return ((const double *)t->data)[i];
	default:		return (double)((const int64_t *)t->data)[i];
	}
}

static void find_beside(struct hessian *h, const struct image *image, const char *layer,
	const struct beside *b)
{
	const size_t n = b->elements ? b->elements : h->in;
	double sum = 0;
	struct tensor t;

	if (!image_find(image, layer_member(layer, b->name), b->type, 1, &n, &t))
		return;
	for (size_t i = 0; i < n; i++) {
		const double x = element(&t, i);

		sum += x;
		if (!(x >= 0) || isinf(x))
			die("%s: %s/%s: element %zu is %g, expected a magnitude", image_name(image), layer,
				b->name, i, x);
	}
	if (b->type == TENSOR_I64 && fabs(sum - (double)h->count * (double)h->in) > 1e-12 * sum)
		die("%s: %s/%s: counts %g numbers, expected %zu for each of %ji tokens", image_name(image),
			layer, b->name, sum, h->in, (intmax_t)h->count);
	memcpy((char *)h + b->view, &t.data, sizeof t.data);
}

struct hessian hessian_find(const struct image *image, const char *layer, size_t n)
{
	struct hessian y = { .in = n };
	struct tensor h, count;
	char *prior;

	if (!image_find(image, layer_member(layer, "hessian"), TENSOR_F32, 2, (size_t[]){ n, n }, &h))
		die("%s: %s/hessian: is missing; the layer was not calibrated, or this is the Hessian of "
			"another model", image_name(image), layer);
	if (h.dim[0] != h.dim[1])
		die("%s: %s/hessian: has %zu rows and %zu columns, expected a square", image_name(image),
			layer, h.dim[0], h.dim[1]);
	y.in = h.dim[0];
	y.sum = h.data;
	if (!image_find(image, layer_member(layer, "count"), TENSOR_I64, -1, NULL, &count))
		die("%s: %s/count: is missing", image_name(image), layer);
	if (tensor_count(&count) != 1)
		die("%s: %s/count: must be one number", image_name(image), layer);
	y.count = *(const int64_t *)count.data;
	prior = hessian_prior(layer);
	if (y.count < 0 || (!y.count && !hessian_there(image, prior)))
		die("%s: %s/count: says that no token was seen", image_name(image), layer);
	free(prior);
	for (size_t i = 0; i < BESIDE; i++)
		find_beside(&y, image, layer, &beside[i]);
	return y;
}

void hessian_check(const char *file, const char *layer, size_t n, const float sum[n * n])
{
	size_t bad;

	for (size_t i = 0; i < n; i++)
		if (!(sum[i * n + i] >= 0 && isfinite(sum[i * n + i])))
			die("%s: %s/hessian: diagonal element %zu is %g, expected a sum of squares", file,
				layer, i, (double)sum[i * n + i]);
	if (!half_finite(n * n, sum, HALF_NONE))
		die("%s: %s/hessian: holds a number that is not finite", file, layer);
	bad = first_asymmetric(n, (const float (*)[n])sum);
	if (bad < n)
		die("%s: %s/hessian: is not symmetric: row and column %zu differ", file, layer, bad);
}

void hessian_write(struct output *out, const char *layer, const struct hessian *h)
{
	output_write(out, layer_member(layer, "hessian"),
		tensor_2d(TENSOR_F32, (void *)(uintptr_t)h->sum, h->in, h->in));
	output_write(out, layer_member(layer, "count"),
		tensor_of(TENSOR_I64, (void *)(uintptr_t)&h->count, 0, NULL));
	for (const struct beside *b = beside; b < beside + BESIDE; b++) {
		void *data;

		memcpy(&data, (const char *)h + b->view, sizeof data);
		output_write(out, layer_member(layer, b->name),
			tensor_1d(b->type, data, b->elements ? b->elements : h->in));
	}
}

const char *hessian_lacks(const struct hessian *h)
{
	for (const struct beside *b = beside; b < beside + BESIDE; b++) {
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
	float *sum = xalloc(n + 1, n * sizeof *sum), *absmax = sum + n * n;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i * n; j < (i + 1) * n; j++)
			sum[j] = (float)((double)h->sum[j] + more * (double)prior->sum[j]);
		if (h->absmax && prior->absmax)
			absmax[i] = fmaxf(h->absmax[i], prior->absmax[i]);
	}
	return (struct hessian){ .in = n, .count = (int64_t)n, .sum = sum,
		.absmax = h->absmax && prior->absmax ? absmax : NULL };
}

struct hessian hessian_mixed(const struct image *image, const char *layer, size_t n, float **own)
{
	struct hessian h = hessian_find(image, layer, n);
	char *path = hessian_prior(layer);

	*own = NULL;
	if (h.count < (int64_t)h.in && hessian_there(image, path)) {
		const struct hessian prior = hessian_find(image, path, h.in);

		hessian_check(image_name(image), layer, h.in, h.sum);
		hessian_check(image_name(image), path, h.in, prior.sum);
		h = hessian_mix(&h, &prior);
		*own = (float *)(uintptr_t)h.sum;
	}
	free(path);
	return h;
}

/* Filters that leave a model's outputs as they are, and not what its layers are fed. */
static const char *const changers[] = { "ln2rms", "hadamard-rotate", "smooth-scale", "awq-scale" };

/* How many lines of a history, one a command, are of the tool. */
static size_t runs_of(const char *history, const char *tool)
{
	const size_t length = strlen(tool);
	size_t n = 0;

	for (const char *line = history; line && *line; line = strchr(line, '\n'), line += line != NULL)
		n += !strncmp(line, tool, length) && line[length] == ' ';
	return n;
}

void hessian_warn(const struct image *hessian, const struct image *model)
{
	char *h = image_text(hessian, "/", "history"), *m = image_text(model, "/", "history");

	for (size_t i = 0; h && m && i < sizeof changers / sizeof *changers; i++) {
		const size_t a = runs_of(h, changers[i]), b = runs_of(m, changers[i]);

		if (a != b) {
			warn("%s: is of the model %s %s, %s is %s: they have other inputs",
				image_name(hessian), a > b ? "behind" : "before", changers[i],
				image_name(model), a > b ? "not" : "behind it");
			break;
		}
	}
	free(h), free(m);
}

/* The same, once for all layers that share it. */
static struct hessian find_mixed(struct moments_files *f, const char *layer, size_t n, int64_t *count)
{
	const struct hessian h = hessian_find(f->hessian, layer, n);
	struct hessian mixed;
	float *own;

	*count = h.count;
	if (f->only_look)
		return h;
	for (size_t i = 0; i < f->mixes; i++)
		if (f->mix[i].sum == h.sum)
			return f->mix[i].mixed;
	mixed = hessian_mixed(f->hessian, layer, n, &own);
	if (own) {
		f->mix = xgrow(f->mix, f->mixes + 1, sizeof *f->mix);
		f->mix[f->mixes++] = (struct mix){ h.sum, mixed };
	}
	return mixed;
}

static struct second_moments in_files(void *arg, const char *layer, size_t n, bool needed)
{
	struct moments_files *f = arg;
	struct second_moments y = { 0 };
	struct tensor order;

	if (f->order && image_find(f->order, layer_member(layer, "order"), TENSOR_I32, 1, &n, &order))
		y.order = order.data;
	if (f->hessian && (needed || hessian_there(f->hessian, layer))) {
		const struct hessian h = find_mixed(f, layer, n, &y.count);

		y.hessian = h.sum;
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
		image_drop(f->hessian);
}

struct moments_source moments_of_files(struct moments_files *f)
{
	return (struct moments_source){ in_files, drop_files, f, f->hessian ? image_name(f->hessian) : NULL,
		f->order ? image_name(f->order) : NULL };
}
