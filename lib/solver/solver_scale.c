/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_scale.c -- FP8 scales s₈ of rows, divisor of scales, scale and zero of a whole tensor; see
 * solver_private.h
 *
 *	s₈ = max|W|/z_max, of a row or of all rows; with pow2_scale rounded up to a power of two.
 *
 * Scale and zero of a tensor are searched over chunks of ROWS_AT_ONCE rows. The losses of
 * chunks are added in order, so that the sum does not depend on threads.
 *
 * Source: DPQ eq. 6 and section 2.2.
 */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "solver/solver_private.h"
#include "num/clones.h"

enum { VECTORS = 32 };

/* Range of the live columns of a row and 0. Returns 0, or NaN if a weight is not finite. */
CLONES(static, float, row_range, (size_t n, size_t live, float *low, float *high, const float w[n],
	const int32_t column[n]), (n, live, low, high, w, column))
{
	float min = 0, max = 0, nan = 0;

	#pragma omp simd reduction(+:nan)
	for (size_t k = 0; k < n; k++)
		nan += w[k] - w[k];
	if (live == n)
		#pragma omp simd reduction(min:min) reduction(max:max)
		for (size_t k = 0; k < n; k++) {
			min = w[k] < min ? w[k] : min;
			max = w[k] > max ? w[k] : max;
		}
	for (size_t k = 0; live < n && k < live; k++) {
		float v = w[column[k]];

		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	*low = min;
	*high = max;
	return nan;
}

enum status scale_ranges(struct rows *l, const struct workspace *workspace, size_t *index)
{
	const struct job *j = l->job;
	const size_t n = j->n, m = l->m;
	size_t bad = m;

	#pragma omp taskloop grainsize(1) shared(bad)
	for (size_t b = 0; b < m; b += PANEL_ROWS)
		for (size_t i = b; i < b + PANEL_ROWS && i < m; i += ROWS_AT_ONCE) {
			const size_t rows = min(m - i, ROWS_AT_ONCE);
			const float *w = job_weights(l, &workspace[omp_get_thread_num()], i, rows);

			for (size_t r = 0; r < rows; r++)
				if (row_range(n, j->live, &l->low[i + r], &l->high[i + r], w + r * n,
						j->column) != 0)
					#pragma omp critical (scale_ranges)
					bad = i + r < bad ? i + r : bad;
		}
	*index = bad;
	return bad < m ? STATUS_BAD_WEIGHT : STATUS_DONE;
}

static float fp8_scale(const struct solver *s, float max)
{
	double scale = (double)max / (s->z_max > 0 ? s->z_max : s->compute.max);
	float result;
	int e;

	if (s->pow2_scale && scale > 0)
		scale = frexp(scale, &e) == 0.5 ? scale : ldexp(1, e);
	result = (float)scale;
	if (result > 0)
		return result > s->min_scale8 ? result : s->min_scale8;
	return 1;
}

/* Range of the whole tensor, in FP8 units. */
static void tensor_range(const struct rows *l, double *low, double *high)
{
	const struct solver *s = l->job->s;
	float end[2];

	*low = *high = 0;
	for (size_t i = 0; i < l->m; i++) {
		*low = fmin(*low, l->low[i] / (double)l->scale8[i]);
		*high = fmax(*high, l->high[i] / (double)l->scale8[i]);
	}
	if (!s->round_first || !s->compute.kind)
		return;
	end[0] = (float)*low, end[1] = (float)*high;
	scale_round_first(s, 2, end);
	*low = end[0], *high = end[1];
}

void scale_rows(struct rows *l)
{
	const struct solver *s = l->job->s;
	double low, high;
	float all = 0;

	for (size_t i = 0; i < l->m; i++)
		all = fmaxf(all, fmaxf(-l->low[i], l->high[i]));
	for (size_t i = 0; i < l->m; i++) {
		float max = s->scale8_channel ? fmaxf(-l->low[i], l->high[i]) : all;

		l->scale8[i] = s->compute.kind ? fp8_scale(s, max) : 1;
	}
	tensor_range(l, &low, &high);
	l->storage = s->storage;
	format_tensor(&l->storage, low, high);
}

void scale_round_first(const struct solver *s, size_t n, float x[n])
{
	if (s->round_first && s->compute.kind)
		format_round(&s->compute, n, x, x, 1, 0);
}

/* Adds the losses of all factors over VECTORS · LANES weights. */
static void add_losses(const struct format *f, double loss[SEARCH_STEPS], const float x[VECTORS][LANES],
	double low, double high)
{
	float scale[LANES], unit[LANES];
	uint8_t zero[LANES];
	double part[LANES];

	format_fit(f, &scale[0], &zero[0], low, high);
	for (size_t l = 0; l < LANES; l++)
		unit[l] = fminf(16 / f->max / scale[0], FLT_MAX);
	for (size_t i = 0; i < search_steps(f); i++) {
		search_pair(f, i, &scale[0], &zero[0], low, high);
		for (size_t l = 0; l < LANES; l++) {
			scale[l] = scale[0];
			zero[l] = f->asymmetric ? zero[0] : 0;
		}
		search_loss(f, VECTORS, part, x, scale, zero, unit, NULL);
		for (size_t l = 0; l < LANES; l++)
			loss[i] += part[l];
	}
}

/* Losses of all factors over rows [i, i + rows). */
static void piece_losses(const struct rows *l, double loss[SEARCH_STEPS], size_t i, size_t rows,
	const float *w, double low, double high)
{
	const struct job *j = l->job;
	float x[VECTORS][LANES], *flat = x[0];
	size_t used = 0;

	memset(loss, 0, SEARCH_STEPS * sizeof *loss);
	for (size_t r = 0; r < rows; r++)
		for (size_t k = 0; k < j->live; k++) {
			flat[used++] = (float)(w[r * j->n + (size_t)j->column[k]] / (double)l->scale8[i + r]);
			if (used < VECTORS * LANES && (r + 1 < rows || k + 1 < j->live))
				continue;
			memset(flat + used, 0, (VECTORS * LANES - used) * sizeof *flat);
			scale_round_first(j->s, used, flat);
			add_losses(&l->storage, loss, (const float (*)[LANES])x, low, high);
			used = 0;
		}
}

void scale_tensor(struct rows *l, const struct workspace *workspace)
{
	const struct solver *s = l->job->s;
	const size_t pieces = ceil_div(l->m, ROWS_AT_ONCE);
	double low, high, lowest = INFINITY;
	size_t best = 0;

	tensor_range(l, &low, &high);
	if (s->search != SEARCH_MINMAX) {
		#pragma omp taskloop grainsize(1)
		for (size_t b = 0; b < pieces; b++) {
			const size_t i = b * ROWS_AT_ONCE, rows = min(l->m - i, ROWS_AT_ONCE);

			piece_losses(l, l->piece_loss + b * SEARCH_STEPS, i, rows,
				job_weights(l, &workspace[omp_get_thread_num()], i, rows), low, high);
		}
		for (size_t i = 0; i < search_steps(&l->storage); i++) {
			double loss = 0;

			for (size_t b = 0; b < pieces; b++)
				loss += l->piece_loss[b * SEARCH_STEPS + i];
			if (loss < lowest) {
				lowest = loss;
				best = i;
			}
		}
	}
	l->tensor_zero = 0;
	search_pair(&l->storage, best, &l->tensor_scale, &l->tensor_zero, low, high);
}
