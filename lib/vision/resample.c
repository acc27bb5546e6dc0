/* SPDX-License-Identifier: GPL-3.0-or-later */
/* resample.c -- see resample.h */
#include "vision/resample.h"
#include <math.h>
#include "base/size.h"

enum { BITS = 22 };	/* fraction bits; with 8 bits of a sample, one bit and the sign are left */

static double triangle(double x)
{
	x = fabs(x);
	return x < 1 ? 1 - x : 0;
}

static double keys(double x)
{
	const double a = -0.5;

	x = fabs(x);
	if (x < 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
	return x == 0 ? 1 : sin(x * M_PI) / (x * M_PI);
}

static double lanczos(double x)
{
	return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

/* Of two samples at the same distance, only the earlier one counts. */
static double box(double x)
{
	return x > -0.5 && x <= 0.5;
}

static double hamming(double x)
{
	return fabs(x) < 1 ? sinc(x) * (0.54 + 0.46 * cos(x * M_PI)) : 0;
}

static const struct filter {
	double (*f)(double x);		/* NULL: one sample, unchanged */
	double support;
} filters[RESAMPLES] = {
	[RESAMPLE_NEAREST] = { NULL, 0 },
	[RESAMPLE_LANCZOS] = { lanczos, 3 },
	[RESAMPLE_BILINEAR] = { triangle, 1 },
	[RESAMPLE_BICUBIC] = { keys, 2 },
	[RESAMPLE_BOX] = { box, 0.5 },
	[RESAMPLE_HAMMING] = { hamming, 1 },
};

/* The samples of one result: the first, and their number. */
struct reach { size_t first, n; };

/* The weights of one direction. */
struct taps {
	size_t max;			/* most samples of a result */
	struct reach *reach;		/* [results] */
	int32_t *weight;		/* [results][max] */
};

static double widening(size_t n, size_t m)
{
	return n > m ? (double)n / (double)m : 1;
}

static size_t max_taps(enum resample kind, size_t n, size_t m)
{
	return 2 * (size_t)ceil(filters[kind].support * widening(n, m)) + 1;
}

static size_t taps_bytes(enum resample kind, size_t n, size_t m)
{
	const size_t weights = m * max_taps(kind, n, m) * sizeof(int32_t);

	return m * sizeof(struct reach) + ceil_div(weights, sizeof(struct reach)) * sizeof(struct reach);
}

size_t resample_workspace(enum resample kind, size_t h, size_t w, size_t height, size_t width)
{
	const size_t shares = max(max_taps(kind, w, width), max_taps(kind, h, height));

	return shares * sizeof(double) + taps_bytes(kind, w, width) + taps_bytes(kind, h, height) +
		3 * h * width;
}

static void find_taps(enum resample kind, size_t n, size_t m, const struct taps *t, double *share)
{
	const struct filter *filter = &filters[kind];
	const double step = (double)n / (double)m, wide = widening(n, m), support = filter->support * wide;
	const double inverse = 1 / wide;

	for (size_t x = 0; x < m; x++) {
		const double c = ((double)x + 0.5) * step, low = c - support + 0.5;
		struct reach *r = &t->reach[x];
		double sum = 0;

		r->first = low < 0 ? 0 : (size_t)low;
		r->n = min((size_t)(c + support + 0.5), n) - r->first;
		for (size_t k = 0; k < r->n; k++)
			sum += share[k] = filter->f(((double)(k + r->first) - c + 0.5) * inverse);
		for (size_t k = 0; k < r->n; k++) {
			const double v = share[k] / sum;

			t->weight[x * t->max + k] =
				(int32_t)((v < 0 ? -0.5 : 0.5) + v * (1 << BITS));
		}
	}
}

/* The steps are summed up: the rounding errors decide if c is the border of two samples. */
static void find_nearest(size_t n, size_t m, const struct taps *t)
{
	const double step = (double)n / (double)m;
	double c = step * 0.5;

	for (size_t x = 0; x < m; x++, c += step) {
		t->reach[x] = (struct reach){ min((size_t)c, n - 1), 1 };
		t->weight[x * t->max] = 1 << BITS;
	}
}

/* Takes the memory of one direction from the workspace. */
static struct taps taps_of(enum resample kind, size_t n, size_t m, char **room, double *share)
{
	struct taps t = { max_taps(kind, n, m), (void *)*room, (void *)(*room + m * sizeof *t.reach) };

	*room += taps_bytes(kind, n, m);
	if (filters[kind].f)
		find_taps(kind, n, m, &t, share);
	else
		find_nearest(n, m, &t);
	return t;
}

static uint8_t rounded(int32_t sum)
{
	sum = (sum + (1 << (BITS - 1))) >> BITS;
	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void across(size_t width, uint8_t out[width][3], const struct taps *t, const uint8_t (*in)[3])
{
	for (size_t x = 0; x < width; x++) {
		const struct reach r = t->reach[x];
		const int32_t *weight = t->weight + x * t->max;
		int32_t sum[3] = { 0 };

		for (size_t k = 0; k < r.n; k++)
			for (size_t c = 0; c < 3; c++)
				sum[c] += weight[k] * in[r.first + k][c];
		for (size_t c = 0; c < 3; c++)
			out[x][c] = rounded(sum[c]);
	}
}

/* Computes a row of the result, a few bytes at a time. */
static void down(size_t bytes, uint8_t out[bytes], struct reach r, const int32_t weight[r.n],
	const uint8_t (*in)[bytes])
{
	enum { AT_ONCE = 512 };
	int32_t sum[AT_ONCE];

	for (size_t i = 0; i < bytes; i += AT_ONCE) {
		const size_t n = min(AT_ONCE, bytes - i);

		for (size_t j = 0; j < n; j++)
			sum[j] = 0;
		for (size_t k = 0; k < r.n; k++)
			for (size_t j = 0; j < n; j++)
				sum[j] += weight[k] * in[r.first + k][i + j];
		for (size_t j = 0; j < n; j++)
			out[i + j] = rounded(sum[j]);
	}
}

void resample(enum resample kind, size_t height, size_t width, uint8_t out[height][width][3], size_t h,
	size_t w, const uint8_t in[h][w][3], void *workspace)
{
	double *share = workspace;
	char *room = (char *)(share + max(max_taps(kind, w, width), max_taps(kind, h, height)));
	const struct taps x = taps_of(kind, w, width, &room, share);
	const struct taps y = taps_of(kind, h, height, &room, share);
	uint8_t (*between)[3 * width] = (void *)room;

	for (size_t i = 0; i < h; i++)
		across(width, (void *)between[i], &x, in[i]);
	for (size_t i = 0; i < height; i++)
		down(3 * width, (void *)out[i], y.reach[i], y.weight + i * y.max,
			(const uint8_t (*)[3 * width])between);
}
