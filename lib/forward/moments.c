/* SPDX-License-Identifier: GPL-3.0-or-later */
/* moments.c -- the Hessian of a linear layer; see moments.h */
#include "forward/moments.h"
#include "base/error.h"
#include "base/thread.h"
#include "num/bf16.h"
#include "num/half.h"
#include "num/linalg.h"
#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 512, FEW = 1 << 16 };	/* numbers, below which one thread is quicker */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct moments moments_make(size_t in)
{
	return (struct moments){ .in = in, .sum = xalloc(in * in, sizeof(double)),
		.absolute = xalloc(in, sizeof(double)), .absmax = xalloc(in, sizeof(float)) };
}

void moments_free(struct moments *h)
{
	free(h->sum);
	free(h->absolute);
	free(h->absmax);
	*h = (struct moments){ 0 };
}

static void add_magnitudes(struct moments *h, size_t rows, const void *x, enum half_type type)
{
	size_t n = h->in;

	#pragma omp parallel for num_threads(threads) schedule(static) if (rows * n > FEW)
	for (size_t j = 0; j < n; j += COLUMNS)
		for (size_t i = 0; i < rows; i++) {
			size_t columns = least(COLUMNS, n - j);
			const float *row = (const float *)x + i * n + j;
			float wide[COLUMNS];

			if (type == HALF_BF16) {
				half_widen(columns, wide, (const uint16_t *)x + i * n + j, type);
				row = wide;
			}
			linalg_magnitude(columns, &h->absolute[j], &h->absmax[j], row);
		}
	h->count += rows;
}

void moments_add(struct moments *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in])
{
	linalg_gram(windows, tokens, h->in, (double (*)[h->in])h->sum, x);
	add_magnitudes(h, windows * tokens, x, HALF_NONE);
}

void moments_add_bf16(struct moments *h, size_t windows, size_t tokens, const uint16_t x[windows][tokens][h->in])
{
	bf16_gram(windows, tokens, h->in, (double (*)[h->in])h->sum, x);
	add_magnitudes(h, windows * tokens, x, HALF_BF16);
}

void moments_add_file(struct moments *h, const struct image *image, const char *layer)
{
	size_t n = h->in, square[2] = { n, n };
	char *path[4] = { xformat("%s/hessian", layer), xformat("%s/count", layer), xformat("%s/absmax", layer),
		xformat("%s/mean_abs", layer) };
	const float *sum = image_tensor(image, path[0], TENSOR_F32, 2, square).data;
	struct tensor t = image_tensor(image, path[1], TENSOR_I64, -1, NULL);
	const float *absmax = image_tensor(image, path[2], TENSOR_F32, 1, &n).data;
	const float *mean = image_tensor(image, path[3], TENSOR_F32, 1, &n).data;
	int64_t count = tensor_count(&t) == 1 ? *(const int64_t *)t.data : 0;

	if (count < 1)
		die("%s: %s: must be one positive number", image_name(image), path[1]);
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i; j < n; j++)
			h->sum[i * n + j] += (double)sum[i * n + j];
		h->absolute[i] += (double)mean[i] * (double)count;
		h->absmax[i] = absmax[i] > h->absmax[i] ? absmax[i] : h->absmax[i];
	}
	if ((uint64_t)count > INT64_MAX - h->count)
		die("%s: %s: is %ji, too many together with the others", image_name(image), path[1], (intmax_t)count);
	h->count += (uint64_t)count;
	for (int i = 0; i < 4; i++)
		free(path[i]);
}

void moments_finish(const struct moments *h, const char *file, const char *layer, float hessian[h->in][h->in], float mean_abs[h->in])
{
	if (!h->count)
		die("%s: %s: has seen no tokens", file, layer);
	for (size_t i = 0; i < h->in; i++) {
		double square = h->sum[i * h->in + i];

		if (square < 0 || !isfinite((float)square))
			die("%s: %s: input %zu: the sum of its squares is %g: it overflows, or is none", file, layer, i, square);
		mean_abs[i] = (float)(h->absolute[i] / (double)h->count);
	}
	for (size_t i = 0; i < h->in; i++) {
		double not_finite = 0;

		for (size_t j = i; j < h->in; j++)
			not_finite += h->sum[i * h->in + j] - h->sum[i * h->in + j];
		if (not_finite != 0)
			die("%s: %s: row %zu holds what is not finite", file, layer, i);
	}
	linalg_mirror(h->in, hessian, (const double (*)[h->in])h->sum);
}

void moments_write(struct output *out, const char *file, const char *layer, const struct moments *h)
{
	size_t n = h->in;
	float *hessian = xalloc(n * n, sizeof *hessian), *mean = xalloc(n, sizeof *mean);
	int64_t count = (int64_t)h->count;
	struct tensor scalar = tensor_of(TENSOR_I64, &count, 0, NULL);
	char *path[4] = { xformat("%s/hessian", layer), xformat("%s/count", layer), xformat("%s/absmax", layer),
		xformat("%s/mean_abs", layer) };

	moments_finish(h, file, layer, (float (*)[n])hessian, mean);
	output_write(out, path[0], tensor_2d(TENSOR_F32, hessian, n, n));
	output_write(out, path[1], scalar);
	output_write(out, path[2], tensor_1d(TENSOR_F32, h->absmax, n));
	output_write(out, path[3], tensor_1d(TENSOR_F32, mean, n));
	for (int i = 0; i < 4; i++)
		free(path[i]);
	free(hessian);
	free(mean);
}
