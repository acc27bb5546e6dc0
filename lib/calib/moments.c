/* SPDX-License-Identifier: GPL-3.0-or-later */
/* moments.c -- see moments.h */
#include "calib/moments.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "calib/histogram.h"
#include "device/device_open.h"
#include "num/bf16.h"
#include "num/half.h"
#include "num/linalg.h"

/* 96 divides most widths of small models; FEW: numbers, up to which one thread is faster */
enum { COLUMNS_AT_ONCE = 96, FEW = 1 << 16 };

struct moments moments_make(size_t in, bool products)
{
	return (struct moments){ .in = in, .sum = products ? xalloc(in * in, sizeof(double)) : NULL,
		.absolute = xalloc(in, sizeof(double)), .fourth = xalloc(in, sizeof(double)),
		.absmax = xalloc(in, sizeof(float)), .histogram = xalloc(HISTOGRAM_BINS, sizeof(int64_t)) };
}

void moments_pair(struct moments *h)
{
	h->cross = xalloc(h->in * h->in, sizeof *h->cross);
}

/* ---- sums on a device ---- */

static void free_on_device(struct moments *h)
{
	struct device_moments *r = h->on_device;

	if (!r)
		return;
	device_free(h->device, r->sum);
	device_free(h->device, r->absolute), device_free(h->device, r->fourth);
	device_free(h->device, r->absmax);
	device_free(h->device, r->histogram);
	free(r);
	h->on_device = NULL;
}

static void *zeros(const struct device *d, size_t bytes)
{
	void *x = device_memory(d, bytes, 1);

	d->clear(x, bytes);
	return x;
}

void moments_add_on_device(struct moments *h, const struct device *d, enum half_type type, size_t rows,
	const float *x)
{
	const size_t n = h->in;
	struct device_moments *r = h->on_device;

	moments_drop(h);
	if (!r) {
		h->device = d;
		h->on_device = r = xalloc(1, sizeof *r);
		*r = (struct device_moments){ .in = n, .bins = HISTOGRAM_BINS, .shift = HISTOGRAM_SHIFT,
			.first = HISTOGRAM_FIRST };
		r->sum = h->sum ? zeros(d, n * n * sizeof *r->sum) : NULL;
		r->absolute = zeros(d, n * sizeof *r->absolute);
		r->fourth = zeros(d, n * sizeof *r->fourth);
		r->absmax = zeros(d, n * sizeof *r->absmax);
		r->histogram = zeros(d, HISTOGRAM_BINS * sizeof *r->histogram);
	}
	d->moments(r, type == HALF_BF16 ? DEVICE_BF16 : DEVICE_F32, rows, x);
	h->count += rows;
}

/* Downloads n numbers of `size` bytes; free() them. */
static void *fetched(const struct device *d, const void *x, size_t n, size_t size)
{
	void *y = xalloc(n, size);

	d->download(y, x, n * size);
	return y;
}

/* y += n numbers of the device, which become 0 there. */
static void take(const struct device *d, size_t n, double *y, double *x)
{
	double *own = fetched(d, x, n, sizeof *own);

	for (size_t i = 0; i < n; i++)
		y[i] += own[i];
	d->clear(x, n * sizeof *x);
	free(own);
}

void moments_fetch(struct moments *h)
{
	const struct device_moments *r = h->on_device;
	const size_t n = h->in;
	float *absmax;
	int64_t *count;

	if (!r)
		return;
	take(h->device, n, h->absolute, r->absolute);
	take(h->device, n, h->fourth, r->fourth);
	absmax = fetched(h->device, r->absmax, n, sizeof *absmax);
	for (size_t i = 0; i < n; i++)
		h->absmax[i] = absmax[i] > h->absmax[i] ? absmax[i] : h->absmax[i];
	count = fetched(h->device, r->histogram, HISTOGRAM_BINS, sizeof *count);
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		h->histogram[b] += count[b];
	h->device->clear(r->histogram, HISTOGRAM_BINS * sizeof *count);
	free(absmax), free(count);
}

/* Σ x xᵀ of a device, as the whole matrix. */
static float *fetched_hessian(const struct moments *h)
{
	const size_t n = h->in;
	float *whole = device_memory(h->device, n * n, sizeof *whole), *y;

	h->device->symmetric(n, whole, h->on_device->sum);
	y = fetched(h->device, whole, n * n, sizeof *y);
	device_free(h->device, whole);
	return y;
}

void moments_free(struct moments *h)
{
	free_on_device(h);
	free(h->sum), free(h->cross);
	free(h->absolute), free(h->fourth);
	free(h->absmax);
	free(h->histogram);
	moments_drop(h);
	*h = (struct moments){ 0 };
}

/* Counts columns [first, first + columns) of a row, without split columns. */
static void count_columns(const struct moments *h, int64_t count[HISTOGRAM_BINS], size_t first,
	size_t columns, const float row[columns])
{
	size_t done = 0;

	for (size_t k = 0; k < h->splits; k++) {
		const size_t at = (size_t)h->split[k];

		if (at < first || at >= first + columns)
			continue;
		histogram_add(at - first - done, count, row + done);
		done = at - first + 1;
	}
	histogram_add(columns - done, count, row + done);
}

/* Adds the magnitudes of columns [first, first + columns) of all rows. */
static void add_columns(struct moments *h, size_t rows, const void *x, enum half_type type, size_t first,
	size_t columns)
{
	int64_t *count = xalloc(HISTOGRAM_BINS, sizeof *count);
	float wide[COLUMNS_AT_ONCE];

	for (size_t i = 0; i < rows; i++) {
		const size_t at = i * h->in + first;
		const float *row = (const float *)x + at;

		if (type == HALF_BF16) {
			half_widen(columns, wide, (const uint16_t *)x + at, type);
			row = wide;
		}
		linalg_magnitude(columns, &h->absolute[first], &h->fourth[first], &h->absmax[first], row);
		count_columns(h, count, first, columns, row);
	}
	#pragma omp critical
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		h->histogram[b] += count[b];
	free(count);
}

static void add_magnitudes(struct moments *h, size_t rows, const void *x, enum half_type type)
{
	const size_t n = h->in;

	#pragma omp parallel for num_threads(threads) schedule(dynamic) if (rows * n > FEW)
	for (size_t j = 0; j < n; j += COLUMNS_AT_ONCE)
		add_columns(h, rows, x, type, j, min(COLUMNS_AT_ONCE, n - j));
	h->count += rows;
}

void moments_add(struct moments *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in])
{
	moments_drop(h);
	if (h->sum)
		linalg_gram(windows, tokens, h->in, (double (*)[h->in])h->sum, x);
	add_magnitudes(h, windows * tokens, x, HALF_NONE);
}

void moments_add_bf16(struct moments *h, size_t windows, size_t tokens,
	const uint16_t x[windows][tokens][h->in])
{
	void *workspace = h->sum ? xalloc(bf16_gram_workspace(tokens, h->in), 1) : NULL;

	moments_drop(h);
	if (h->sum)
		bf16_gram(windows, tokens, h->in, (double (*)[h->in])h->sum, x, workspace);
	free(workspace);
	add_magnitudes(h, windows * tokens, x, HALF_BF16);
}

void moments_add_cross(struct moments *h, size_t windows, size_t tokens,
	const float z[windows][tokens][h->in], const float x[windows][tokens][h->in])
{
	moments_drop(h);
	h->differ = h->differ || memcmp(z, x, windows * tokens * sizeof **x);
	linalg_cross(windows, tokens, h->in, (double (*)[h->in])h->cross, z, x);
}

void moments_add_hessian(struct moments *h, const char *file, const char *layer, const struct hessian *other)
{
	const size_t n = h->in;
	const double count = (double)other->count;

	if (hessian_absent_member(other))
		die("%s: %s/%s: is missing, expected a file of hessian-accum", file, layer,
			hessian_absent_member(other));
	if (h->cross && !other->cross)
		die("%s: %s/cross: is missing, and another of the files has it (--pair)", file, layer);
	if (!h->cross && other->cross)
		die("%s: %s/cross: is in this file, and not in all others (--pair)", file, layer);
	moments_drop(h);
	h->differ |= h->cross && memcmp(other->cross, other->sum, n * n * sizeof *other->sum);
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i; j < n; j++)
			h->sum[i * n + j] += (double)other->sum[i * n + j];
		for (size_t j = 0; h->cross && j < n; j++)
			h->cross[i * n + j] += (double)other->cross[i * n + j];
		h->absolute[i] += (double)other->mean_abs[i] * count;
		h->fourth[i] += other->fourth[i];
		h->absmax[i] = other->absmax[i] > h->absmax[i] ? other->absmax[i] : h->absmax[i];
	}
	if ((uint64_t)other->count > INT64_MAX / n - h->count)	/* the histogram has n counts per token */
		die("%s: %s/count: is %ji, the sum of all counts overflows", file, layer,
			(intmax_t)other->count);
	h->count += (uint64_t)other->count;
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		h->histogram[b] = (int64_t)((uint64_t)h->histogram[b] + (uint64_t)other->histogram[b]);
}

static void check_finite(size_t n, const float h[n][n], const char *file, const char *layer)
{
	size_t bad = n;

	for (size_t i = 0; i < n; i++)
		if (h[i][i] < 0 || !isfinite(h[i][i]))
			die("%s: %s: input %zu: the sum of squares is %g: "
				"numbers overflow, or the sum is damaged", file, layer, i, (double)h[i][i]);
	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(static) reduction(min : bad)
	for (size_t i = 0; i < n; i++) {
		float not_finite = 0;

		for (size_t j = i; j < n; j++)
			not_finite += h[i][j] - h[i][j];
		bad = not_finite != 0 && i < bad ? i : bad;
	}
	if (bad < n)
		die("%s: %s: row %zu of the sum of x x^T is not finite", file, layer, bad);
}

/* Σ z xᵀ rounded to float. */
static float *rounded_cross(const struct moments *h, const char *file, const char *layer)
{
	const size_t n = h->in;
	float *y = xalloc(n * n, sizeof *y);

	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(static)
	for (size_t i = 0; i < n * n; i++)
		y[i] = (float)h->cross[i];
	if (!half_finite(n * n, y, HALF_NONE))
		die("%s: %s: the cross moments are not finite", file, layer);
	return y;
}

struct hessian moments_hessian(struct moments *h, const char *file, const char *layer)
{
	const size_t n = h->in;

	moments_fetch(h);
	if (!h->hessian) {
		h->mean_abs = xalloc(n, sizeof *h->mean_abs);
		if (h->on_device) {
			h->hessian = fetched_hessian(h);
		} else {
			h->hessian = xalloc(n * n, sizeof *h->hessian);
			linalg_mirror(n, (float (*)[n])h->hessian, (const double (*)[n])h->sum);
		}
		check_finite(n, (const float (*)[n])h->hessian, file, layer);
		h->crossed = h->cross && h->differ ? rounded_cross(h, file, layer) : NULL;
		for (size_t i = 0; i < n; i++)
			h->mean_abs[i] = h->count ? (float)(h->absolute[i] / (double)h->count) : 0;
	}
	return (struct hessian){ n, (int64_t)h->count, h->hessian,
		h->cross && !h->differ ? h->hessian : h->crossed,
		h->absmax, h->mean_abs, h->fourth, h->histogram };
}

void moments_drop(struct moments *h)
{
	free(h->hessian);
	free(h->mean_abs), free(h->crossed);
	h->hessian = h->mean_abs = h->crossed = NULL;
}

void moments_join(struct moments *h, const struct moments *other)
{
	const size_t n = h->in;

	assert(!h->on_device && !other->on_device);	/* such sums have one modality and no prior */
	moments_drop(h);
	h->differ |= other->differ;
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i; h->sum && j < n; j++)
			h->sum[i * n + j] += other->sum[i * n + j];
		for (size_t j = 0; h->cross && j < n; j++)
			h->cross[i * n + j] += other->cross[i * n + j];
		h->absolute[i] += other->absolute[i];
		h->fourth[i] += other->fourth[i];
		h->absmax[i] = other->absmax[i] > h->absmax[i] ? other->absmax[i] : h->absmax[i];
	}
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		h->histogram[b] += other->histogram[b];
	h->count += other->count;
}
