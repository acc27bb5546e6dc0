/* SPDX-License-Identifier: GPL-3.0-or-later */
/* feedback.c -- see feedback.h */
#include "branch/feedback.h"
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/cut.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"
#include "num/quadratic.h"
#include "quant/round.h"

/* Rows of a product; columns of a product with H for the loss; parts of the rows with separate sums. Results
 * depend on all three. */
enum { ROWS = 64, COLUMNS = 256, PARTS = 16 };
enum { FEW = 1 << 16, HALVINGS = 20 };

/* The last place of scales that are subnormal. */
static const double tiniest = 0x1p-149;
static const double first_decay = 0.9, second_decay = 0.999, tiny = 1e-8;

/* State of a run; sizes as in feedback.h. */
struct feedback_state {
	const struct feedback_layer *layer;
	size_t m, n, r, parts;
	double per;			/* 1 / mean(diag H) */
	float *a, *b;			/* the iterate */
	float *ah;			/* [r][n] A H · per */
	float *c, *part;		/* [r][n] Bᵀ Δ; [parts][r][n] the sums of the parts */
	float *ga, *gb;			/* gradients */
	float *first_a, *second_a, *first_b, *second_b;	/* moments of Adam */
	float *delta;			/* [threads][ROWS][n] */
};

static size_t rows_of_part(size_t m)
{
	return ceil_div(ceil_div(m, ROWS), PARTS) * ROWS;
}

/* Divides the workspace at `base`; returns its size. base NULL: for the size only. */
static size_t lay_out(struct feedback_state *s, const struct feedback_layer *layer, char *base)
{
	const size_t m = layer->weight->out, n = layer->weight->in, r = layer->settings->rank;
	const size_t parts = ceil_div(m, rows_of_part(m));
	size_t at = 0;

	s->a = cut(base, &at, r * n, sizeof(float));
	s->b = cut(base, &at, m * r, sizeof(float));
	s->ah = cut(base, &at, r * n, sizeof(float));
	s->c = cut(base, &at, r * n, sizeof(float));
	s->part = cut(base, &at, parts * r * n, sizeof(float));
	s->ga = cut(base, &at, r * n, sizeof(float));
	s->gb = cut(base, &at, m * r, sizeof(float));
	s->first_a = cut(base, &at, r * n, sizeof(float));
	s->second_a = cut(base, &at, r * n, sizeof(float));
	s->first_b = cut(base, &at, m * r, sizeof(float));
	s->second_b = cut(base, &at, m * r, sizeof(float));
	s->delta = cut(base, &at, (size_t)threads * ROWS * n, sizeof(float));
	s->layer = layer;
	s->m = m, s->n = n, s->r = r, s->parts = parts;
	return at;
}

size_t feedback_workspace(const struct feedback_layer *layer)
{
	struct feedback_state s = { 0 };

	return lay_out(&s, layer, NULL);
}

static size_t feedback_group(const struct feedback *f, size_t n)
{
	return f->group > 0 ? min((size_t)f->group, n) : n;
}

/* Computes Δ of at most ROWS rows. */
static void error_of(const struct feedback_layer *l, const float *a, const float *b, size_t first,
	size_t rows, float *delta)
{
	const struct feedback *f = l->settings;
	const size_t n = l->weight->in;

	linear_weight(l->weight, first, rows, (float (*)[n])delta);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)n, (int)f->rank, -1,
		b + first * f->rank, (int)f->rank, a, (int)n, 1, delta, (int)n);
	for (size_t i = 0; i < rows; i++)
		round_residue(&f->storage, n, feedback_group(f, n), delta + i * n);
}

/* For part k of the rows: the gradient of B and the sum for Bᵀ Δ. Returns its part of the loss, if `loss`. */
static double part_of(const struct feedback_state *s, size_t k, bool loss, float *delta)
{
	const struct quadratic q = { s->n, s->n, s->layer->h, .block = COLUMNS };
	float product[ROWS * COLUMNS];
	const size_t each = rows_of_part(s->m), end = min((k + 1) * each, s->m);
	const int n = (int)s->n, r = (int)s->r;
	double sum = 0;

	for (size_t i = k * each; i < end; i += ROWS) {
		const int rows = (int)min(ROWS, end - i);

		error_of(s->layer, s->a, s->b, i, (size_t)rows, delta);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, r, n, -2, delta, n, s->ah, n, 0,
			s->gb + i * s->r, r);
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, r, n, rows, 1, s->b + i * s->r, r, delta,
			n, i > k * each, s->part + k * s->r * s->n, n);
		if (loss)
			sum += quadratic_trace(&q, (size_t)rows, delta, product);
	}
	return sum;
}

static void add_parts(const struct feedback_state *s)
{
	#pragma omp parallel for num_threads(threads) if (s->r * s->n > FEW) schedule(static)
	for (size_t i = 0; i < s->r * s->n; i++) {
		double sum = 0;

		for (size_t k = 0; k < s->parts; k++)
			sum += (double)s->part[k * s->r * s->n + i];
		s->c[i] = (float)sum;
	}
}

static void times(size_t n, float x[n], double by)
{
	#pragma omp parallel for num_threads(threads) if (n > FEW) schedule(static)
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)x[i] * by);
}

/* y = x H · by; x and y are [r][n]. */
static void through(const struct feedback_state *s, float *y, const float *x, double by)
{
	const size_t n = s->n;

	linalg_product(s->r, n, n, n, (float (*)[n])y, (const float (*)[n])x, (const float (*)[n])s->layer->h,
		NULL, false);
	times(s->r * n, y, by);
}

/* Computes the gradients at the iterate. Returns the loss tr(Δ H Δᵀ) there, if `loss`. */
static double gradients(struct feedback_state *s, bool loss)
{
	double part[PARTS], sum = 0;

	through(s, s->ah, s->a, s->per);
	#pragma omp parallel num_threads(threads_for(s->parts))
	{
		/* the clause above limits thread numbers to those that have memory */
		const size_t own = (size_t)omp_get_thread_num() * ROWS * s->n;

		#pragma omp for schedule(dynamic)
		for (size_t k = 0; k < s->parts; k++)
			part[k] = part_of(s, k, loss, s->delta + own);
	}
	for (size_t k = 0; k < s->parts; k++)
		sum += part[k];
	add_parts(s);
	through(s, s->ga, s->c, -2 * s->per);
	return sum;
}

/* Step t of Adam, counted from 1. */
static void descend(size_t n, float x[n], float first[n], float second[n], const float g[n], double rate,
	size_t t)
{
	const double one = 1 - pow(first_decay, (double)t), two = 1 - pow(second_decay, (double)t);

	#pragma omp parallel for num_threads(threads) if (n > FEW) schedule(static)
	for (size_t i = 0; i < n; i++) {
		const double d = (double)g[i];

		first[i] = (float)(first_decay * (double)first[i] + (1 - first_decay) * d);
		second[i] = (float)(second_decay * (double)second[i] + (1 - second_decay) * d * d);
		x[i] = (float)((double)x[i] - rate * ((double)first[i] / one) /
			(sqrt((double)second[i] / two) + tiny));
	}
}

/* A ~ N(0, σ²), but 0 for dead channels, which have no gradient; B = 0. */
static void begin_factors(const struct feedback_state *s)
{
	const struct feedback *f = s->layer->settings;
	const struct random_stream stream = random_open(f->seed, s->layer->name);
	const double sigma = f->sigma > 0 ? f->sigma : 0.25 / sqrt((double)s->n);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (uint64_t i = 0; i < s->r * s->n; i++) {
		const bool live = s->layer->h[i % s->n * (s->n + 1)] > 0;

		s->a[i] = (float)(live ? sigma * random_normal(&stream, i) : 0);
	}
	memset(s->b, 0, s->m * s->r * sizeof *s->b);
}

static void no_moments(const struct feedback_state *s)
{
	memset(s->first_a, 0, s->r * s->n * sizeof(float));
	memset(s->second_a, 0, s->r * s->n * sizeof(float));
	memset(s->first_b, 0, s->m * s->r * sizeof(float));
	memset(s->second_b, 0, s->m * s->r * sizeof(float));
}

static void copy(const struct feedback_state *s, float *a, float *b, const float *from_a, const float *from_b)
{
	memcpy(a, from_a, s->r * s->n * sizeof *a);
	memcpy(b, from_b, s->m * s->r * sizeof *b);
}

/* Divides the workspace, and computes the mean of the diagonal of H. */
static struct feedback_state start(const struct feedback_layer *layer, void *workspace)
{
	struct feedback_state s = { 0 };
	double mean = 0;

	lay_out(&s, layer, workspace);
	for (size_t i = 0; i < s.n; i++)
		mean += (double)layer->h[i * s.n + i] / (double)s.n;
	s.per = mean > 0 ? 1 / mean : 0;
	return s;
}

void feedback_gradients(const struct feedback_layer *layer, float *ga, float *gb, void *workspace)
{
	struct feedback_state s = start(layer, workspace);

	copy(&s, s.a, s.b, layer->a, layer->b);
	gradients(&s, false);
	copy(&s, ga, gb, s.ga, s.gb);
}

void feedback_run(struct feedback_layer *layer, void *workspace)
{
	const struct feedback *f = layer->settings;
	struct feedback_report *y = &layer->report;
	struct feedback_state s = start(layer, workspace);
	const double all = layer->whole;
	double rate = f->rate, min_loss = INFINITY;
	size_t since = 0, t = 0;

	*y = (struct feedback_report){ .start = NAN };
	begin_factors(&s);
	no_moments(&s);
	copy(&s, layer->a, layer->b, s.a, s.b);
	for (size_t k = 0; k <= f->steps; k++) {
		const bool due = k % f->every == 0 || k == f->steps;
		const double loss = gradients(&s, due);

		if (due && f->on_loss)
			f->on_loss(f->arg, k, loss / all);
		if (due && k == 0)
			y->start = loss / all;
		if (due && loss < min_loss) {
			min_loss = loss, since = 0, y->best = k;
			copy(&s, layer->a, layer->b, s.a, s.b);
		} else if (due && !isfinite(loss)) {
			if (y->halved == HALVINGS)
				break;
			y->halved++, rate /= 2, t = 0;
			copy(&s, s.a, s.b, layer->a, layer->b);
			no_moments(&s);
			continue;
		} else if (due && f->patience && ++since >= f->patience)
			break;
		if (k == f->steps)
			break;
		y->steps++, t++;
		const double now = rate * (1 - (double)k / (double)f->steps);

		descend(s.r * s.n, s.a, s.first_a, s.second_a, s.ga, now, t);
		descend(s.m * s.r, s.b, s.first_b, s.second_b, s.gb, now, t);
	}
	y->loss = min_loss / all;
}

/* The largest difference of neighbouring values of the format. */
static double widest(const struct format *f)
{
	double y = 0;

	for (int c = 0; c <= f->code_last; c++) {
		double above = INFINITY;

		for (int d = 0; d <= f->code_last; d++)
			if (f->grid[d] > f->grid[c])
				above = fmin(above, (double)f->grid[d] - (double)f->grid[c]);
		if (isfinite(above))
			y = fmax(y, above);
	}
	return y;
}

/* Scale, zero, codes and values of n numbers in one group. Returns the scale. */
static double fit(const struct format *f, size_t n, const double p[n], uint8_t *code, float *y, float *scale,
	uint8_t *zero)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < n; i++)
		low = fmin(low, p[i]), high = fmax(high, p[i]);
	format_fit(f, scale, zero, low, high);
	for (size_t i = 0; i < n; i++)
		format_quantize(f, 1, &code[i], &y[i], &p[i], scale, zero);
	return (double)*scale;
}

double feedback_codes(const struct feedback_layer *l, size_t first, size_t rows, uint8_t *code, float *scale,
	uint8_t *zero, float *w, double *p)
{
	const struct feedback *f = l->settings;
	const size_t n = l->weight->in, r = f->rank, group = feedback_group(f, n);
	const size_t groups = ceil_div(n, group);
	const double cell = widest(&f->storage) / 2;
	const double max = f->storage.asymmetric ? 1 << f->storage.bits : (double)f->storage.max;
	double worst = 0;

	linear_weight(l->weight, first, rows, (float (*)[n])w);
	#pragma omp parallel for num_threads(threads) schedule(static) reduction(max:worst)
	for (size_t i = 0; i < rows; i++) {
		double *row = p + i * n;
		float *y = w + i * n;

		for (size_t j = 0; j < n; j++)
			row[j] = (double)y[j];
		for (size_t k = 0; k < r; k++)
			for (size_t j = 0; j < n; j++)
				row[j] -= (double)l->b[(first + i) * r + k] * (double)l->a[k * n + j];
		for (size_t g = 0, j = 0; g < groups; g++, j += group) {
			const size_t some = min(group, n - j);
			uint8_t none;
			const double s = fit(&f->storage, some, row + j, code + i * n + j, y + j,
				&scale[i * groups + g], zero ? &zero[i * groups + g] : &none);

			for (size_t k = j; k < j + some; k++)
				worst = fmax(worst, fabs(row[k] - (double)y[k]) /
					(s * (cell + max * 0x1p-23) + max * tiniest));
		}
	}
	return worst;
}
