/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hessian.c -- see hessian.h */
#include "model/hessian.h"
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/thread.h"

/*
 * Sums of products in float32 differ by the order of summation: far less than this share of √(H_ii H_jj), which
 * bounds every element of a Σ x xᵀ.
 */
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
					double difference = (double)h[i][j] - (double)h[j][i];

					if (difference != 0 && difference * difference > ASYMMETRY * ASYMMETRY * (double)h[i][i] * (double)h[j][j] && i < bad)
						bad = i;
				}
	return bad;
}

/* The Hessian of a layer, in shape. */
const float *hessian_find(const struct image *hessian, const char *layer, size_t n)
{
	char *at = xformat("%s/hessian", layer), *count = xformat("%s/count", layer);
	struct tensor h;

	if (!image_find(hessian, at, TENSOR_F32, 2, (size_t[]){ n, n }, &h))
		die("%s: %s: is missing; the layer was not calibrated, or this is the Hessian of another model",
			image_name(hessian), at);
	if (*(const int64_t *)image_tensor(hessian, count, TENSOR_I64, 0, NULL).data <= 0)
		die("%s: %s: says that no token was seen", image_name(hessian), count);
	free(at), free(count);
	return h.data;
}

const float *hessian_read(const struct image *hessian, const char *layer, size_t n)
{
	const float *h = hessian_find(hessian, layer, n);
	size_t bad = first_asymmetric(n, (const float (*)[n])h);

	if (bad < n)
		die("%s: %s/hessian: is not symmetric: row and column %zu differ", image_name(hessian), layer, bad);
	return h;
}
