/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stats.c -- see stats.h
 *
 * Moments m₂, m₃, m₄ are about the mean of each row, and are then moved to the mean μ of all. With d =
 * mean_i - μ,
 *	Σ (w - μ)² = m₂ + n d²,  Σ (w - μ)⁴ = m₄ + 4 d m₃ + 6 d² m₂ + n d⁴.
 */
#include "quant/stats.h"
#include <math.h>
#include <omp.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/quadratic.h"

/* Rows that are decoded together. Only the products with H depend on it, by rounding. */
enum { TILE = 64 };

struct moments { double mean, m2, m3, m4, max; };
struct distances { double e2, w2, max, ehe, whw; };

/* The workspace has one of these structures for each row, then three tiles for each thread. */
_Static_assert(sizeof(struct moments) == sizeof(struct distances), "rows of one size");

static size_t rows_bytes(size_t m)
{
	return (m * sizeof(struct moments) + 63) & ~(size_t)63;
}

static size_t tile_floats(size_t n)
{
	return (TILE * n + 15) & ~(size_t)15;
}

size_t stats_workspace(size_t m, size_t n)
{
	const size_t tiles = 3 * (size_t)threads_for(ceil_div(m, TILE));

	return rows_bytes(m) + tiles * tile_floats(n) * sizeof(float);
}

/* One of the calling thread's three tiles. */
static float *tile_of(void *work, size_t m, size_t n, size_t which)
{
	void *tiles = (char *)work + rows_bytes(m);

	return (float *)tiles + ((size_t)omp_get_thread_num() * 3 + which) * tile_floats(n);
}

static struct moments moments_of(size_t n, const float w[n])
{
	double sum = 0, mean, m2 = 0, m3 = 0, m4 = 0;
	float max = 0;

	#pragma omp simd reduction(+:sum) reduction(max:max)
	for (size_t i = 0; i < n; i++) {
		float a = fabsf(w[i]);

		sum += (double)w[i];
		max = a > max ? a : max;
	}
	mean = sum / (double)n;
	#pragma omp simd reduction(+:m2, m3, m4)
	for (size_t i = 0; i < n; i++) {
		double d = (double)w[i] - mean, q = d * d;

		m2 += q;
		m3 += q * d;
		m4 += q * q;
	}
	return (struct moments){ mean, m2, m3, m4, (double)max };
}

void stats_weight(const struct linear *l, struct weight_stats *s, void *work)
{
	const size_t m = l->out, n = l->in;
	const double count = (double)m * (double)n;
	struct moments *row = work;
	double mean = 0, m2 = 0, m4 = 0;
	size_t live = 0;

	#pragma omp parallel for num_threads(threads_for(ceil_div(m, TILE))) schedule(dynamic)
	for (size_t t = 0; t < m; t += TILE) {
		float (*w)[n] = (float (*)[n])tile_of(work, m, n, 0);
		size_t rows = min(TILE, m - t);

		linear_weight(l, t, rows, w);
		for (size_t i = 0; i < rows; i++)
			row[t + i] = moments_of(n, w[i]);
	}
	*s = (struct weight_stats){ .sigma_min = INFINITY };
	for (size_t i = 0; i < m; i++) {
		mean += row[i].mean;
		s->absmax = fmax(s->absmax, row[i].max);
	}
	mean /= (double)m;
	for (size_t i = 0; i < m; i++) {
		double d = row[i].mean - mean, sigma = sqrt(row[i].m2 / (double)n) / row[i].max;

		m2 += row[i].m2 + (double)n * d * d;
		m4 += row[i].m4 + 4 * d * row[i].m3 + 6 * d * d * row[i].m2 + (double)n * d * d * d * d;
		if (!(row[i].max > 0))
			continue;
		live++;
		s->sigma += sigma;
		s->sigma_min = fmin(s->sigma_min, sigma);
		s->sigma_max = fmax(s->sigma_max, sigma);
	}
	s->deviation = sqrt(m2 / count);
	s->kurtosis = m2 > 0 ? m4 * count / (m2 * m2) : NAN;
	s->incoherence = live ? s->absmax * sqrt(count / (m2 + count * mean * mean)) : NAN;
	s->sigma /= (double)live;
	if (!live)
		s->sigma = s->sigma_min = s->sigma_max = NAN;
}

/* e becomes w - v. */
static struct distances distances_of(size_t n, float e[n], const float w[n], const float v[n])
{
	double e2 = 0, w2 = 0, max = 0;

	#pragma omp simd reduction(+:e2, w2) reduction(max:max)
	for (size_t i = 0; i < n; i++) {
		double d = (double)w[i] - (double)v[i], a = fabs(d);

		e2 += d * d;
		w2 += (double)w[i] * (double)w[i];
		max = a > max ? a : max;
		e[i] = (float)d;
	}
	return (struct distances){ .e2 = e2, .w2 = w2, .max = max };
}

static void compare_tile(const struct linear *w, const struct linear *v, const float *h, size_t first,
	size_t rows, struct distances row[rows], float a[rows][w->in], float b[rows][w->in],
	float c[rows][w->in])
{
	const size_t n = w->in;
	const struct quadratic q = { n, n, h, .block = n };
	double whw[TILE], ehe[TILE];

	linear_whole(w, first, rows, a);
	linear_whole(v, first, rows, b);
	for (size_t i = 0; i < rows; i++)
		row[i] = distances_of(n, b[i], a[i], b[i]);
	if (!h)
		return;
	quadratic_rows(&q, rows, a[0], c[0], whw);
	quadratic_rows(&q, rows, b[0], c[0], ehe);
	for (size_t i = 0; i < rows; i++)
		row[i].whw = whw[i], row[i].ehe = ehe[i];
}

bool stats_difference(const struct linear *w, const struct linear *v, const float *h,
	struct weight_difference *d, void *work)
{
	const size_t m = w->out, n = w->in;
	struct distances *row = work, sum = { 0 };

	#pragma omp parallel for num_threads(threads_for(ceil_div(m, TILE))) schedule(dynamic)
	for (size_t t = 0; t < m; t += TILE)
		compare_tile(w, v, h, t, min(TILE, m - t), row + t, (float (*)[n])tile_of(work, m, n, 0),
			(float (*)[n])tile_of(work, m, n, 1), (float (*)[n])tile_of(work, m, n, 2));
	for (size_t i = 0; i < m; i++) {
		sum.e2 += row[i].e2;
		sum.w2 += row[i].w2;
		sum.ehe += row[i].ehe;
		sum.whw += row[i].whw;
		sum.max = fmax(sum.max, row[i].max);
	}
	d->mse = sum.e2 / ((double)m * (double)n);
	d->error = sum.e2 / sum.w2;
	d->sqnr = -10 * log10(d->error);
	d->largest = sum.max;
	d->output = h && sum.whw > 0 ? sum.ehe / sum.whw : NAN;
	return isfinite(sum.ehe + sum.whw);
}
