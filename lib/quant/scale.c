/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * scale.c -- see scale.h
 *
 * The tensor's pair is searched over strips of STRIP rows; their losses are added
 * in order, so that the sum does not depend on threads.
 */
#include "quant/scale.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/thread.h"
#include "num/clones.h"

enum { CHUNK = 32 };

enum solver_status scale_ranges(const struct job *j, size_t *index)
{
	size_t bad = j->m;

	#pragma omp parallel for schedule(dynamic, STRIP) num_threads(threads) reduction(min:bad)
	for (size_t i = 0; i < j->m; i++) {
		const float *w = j->w + i * j->n;
		float low = 0, high = 0, nan = 0;

		for (size_t k = 0; k < j->n; k++)
			nan += w[k] - w[k];
		if (nan != 0 && i < bad)
			bad = i;
		for (size_t k = 0; k < j->live; k++) {
			float v = w[j->column[k]];

			low = v < low ? v : low;
			high = v > high ? v : high;
		}
		j->low[i] = low;
		j->high[i] = high;
	}
	*index = bad;
	return bad < j->m ? SOLVER_BAD_WEIGHT : SOLVER_DONE;
}

/* DPQ eq. 6 and section 2.2 */
static float fp8_scale(const struct solver *s, float top)
{
	double scale = (double)top / (s->z_top > 0 ? s->z_top : s->compute.top);
	float result;
	int e;

	if (s->pow2_scale && scale > 0)
		scale = frexp(scale, &e) == 0.5 ? scale : ldexp(1, e);
	result = (float)scale;
	if (result > 0)
		return result > s->min_scale8 ? result : s->min_scale8;
	return 1;
}

void scale_rows(const struct job *j)
{
	float all = 0;

	for (size_t i = 0; i < j->m; i++)
		all = fmaxf(all, fmaxf(-j->low[i], j->high[i]));
	for (size_t i = 0; i < j->m; i++) {
		float top = j->s->scale8_channel ? fmaxf(-j->low[i], j->high[i]) : all;

		j->scale8[i] = j->s->compute.kind ? fp8_scale(j->s, top) : 1;
	}
}

void scale_round_first(const struct solver *s, size_t n, float x[n])
{
	if (s->round_first && s->compute.kind)
		format_round(&s->compute, n, x, x, 1, 0);
}

/* Losses of all factors over a chunk of weights are added to loss. */
static void add_losses(const struct format *f, double loss[SEARCH_STEPS], const float x[CHUNK][LANES], double low,
	double high)
{
	float scale[LANES], unit[LANES];
	uint8_t zero[LANES];
	double part[LANES];

	format_fit(f, &scale[0], &zero[0], low, high);
	for (size_t l = 0; l < LANES; l++)
		unit[l] = fminf(1 / scale[0], FLT_MAX);
	for (size_t i = 0; i < SEARCH_STEPS; i++) {
		search_pair(f, i, &scale[0], &zero[0], low, high);
		for (size_t l = 0; l < LANES; l++) {
			scale[l] = scale[0];
			zero[l] = f->asymmetric ? zero[0] : 0;
		}
		search_loss(f, CHUNK, part, x, scale, zero, unit);
		for (size_t l = 0; l < LANES; l++)
			loss[i] += part[l];
	}
}

void scale_tensor(struct job *j)
{
	const struct solver *s = j->s;
	double low = 0, high = 0, least = INFINITY;
	size_t best = 0;

	for (size_t i = 0; i < j->m; i++) {
		low = fmin(low, j->low[i] / (double)j->scale8[i]);
		high = fmax(high, j->high[i] / (double)j->scale8[i]);
	}
	if (s->round_first && s->compute.kind) {
		float end[2] = { (float)low, (float)high };

		scale_round_first(s, 2, end);
		low = end[0];
		high = end[1];
	}
	if (s->search == SEARCH_MSE) {
		const size_t strips = ceil_div(j->m, STRIP);

		memset(j->strip_loss, 0, strips * SEARCH_STEPS * sizeof *j->strip_loss);
		#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
		for (size_t b = 0; b < strips; b++) {
			float x[CHUNK][LANES], *flat = x[0];
			size_t used = 0, end = (b + 1) * STRIP < j->m ? (b + 1) * STRIP : j->m;

			for (size_t i = b * STRIP; i < end; i++)
				for (size_t k = 0; k < j->live; k++) {
					flat[used++] = (float)(j->w[i * j->n + (size_t)j->column[k]]
						/ (double)j->scale8[i]);
					if (used < CHUNK * LANES && (i + 1 < end || k + 1 < j->live))
						continue;
					memset(flat + used, 0, (CHUNK * LANES - used) * sizeof *flat);
					scale_round_first(s, used, flat);
					add_losses(&s->storage, j->strip_loss + b * SEARCH_STEPS,
						(const float (*)[LANES])x, low, high);
					used = 0;
				}
		}
		for (size_t i = 0; i < SEARCH_STEPS; i++) {
			double loss = 0;

			for (size_t b = 0; b < strips; b++)
				loss += j->strip_loss[b * SEARCH_STEPS + i];
			if (loss < least) {
				least = loss;
				best = i;
			}
		}
	}
	j->tensor_zero = 0;
	search_pair(&s->storage, best, &j->tensor_scale, &j->tensor_zero, low, high);
}
