/* SPDX-License-Identifier: GPL-3.0-or-later */
/* corrected.c -- see corrected.h */
#include "transform/corrected.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"

enum { FEW = 1 << 16 };		/* weights, up to which one thread is faster */

/* Corrects some rows. sum: Σ (w* - w)² and Σ w². */
static void correct_rows(const struct correction *c, double share, const struct linear *l, size_t row,
	float *w, double sum[2])
{
	const size_t n = l->in, rows = min(CORRECT_ROWS, l->out - row);
	float *old = xalloc(rows, n * sizeof *old);
	double *buffer = xalloc(correct_buffer(n, rows), 1);

	linear_weight(l, row, rows, (float (*)[n])old);
	memcpy(w, old, rows * n * sizeof *w);
	correct_apply(c, share, rows, (float (*)[n])w, buffer);
	for (size_t i = 0; i < rows * n; i++) {
		const double change = (double)w[i] - (double)old[i];

		sum[0] += change * change;
		sum[1] += (double)old[i] * (double)old[i];
	}
	free(old), free(buffer);
}

double corrected_weight(const struct correction *c, double share, const struct linear *l, float w[])
{
	const size_t tiles = ceil_div(l->out, CORRECT_ROWS);
	double (*of_tile)[2] = xalloc(tiles, sizeof *of_tile), sum[2] = { 0 };

	#pragma omp parallel for num_threads(threads) if (l->out * l->in > FEW) schedule(dynamic)
	for (size_t i = 0; i < tiles; i++)
		correct_rows(c, share, l, i * CORRECT_ROWS, w + i * CORRECT_ROWS * l->in, of_tile[i]);
	for (size_t i = 0; i < tiles; i++)
		sum[0] += of_tile[i][0], sum[1] += of_tile[i][1];
	free(of_tile);
	return sqrt(sum[0] / sum[1]);
}

float *corrected_layer(const struct correction *c, double share, const struct linear *l, struct linear *y)
{
	float *w = xalloc(l->out, l->in * sizeof *w);

	corrected_weight(c, share, l, w);
	*y = (struct linear){ .out = l->out, .in = l->in, .weight = w };
	return w;
}
