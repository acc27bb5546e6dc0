/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_device.c -- layers that are quantized on a device; see solver_private.h
 *
 * H is factorized on the device, once for a job. All rows of a layer are one panel. Order, groups and spans
 * are those of the processor; blocks are shorter, and end where parameters of a group are due. So numbers
 * differ from the processor's by the order of sums in float.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "device/device_codes.h"
#include "device/device_open.h"
#include "solver/factor.h"
#include "solver/solver_private.h"

/* Rows of a launch; numbers of weights that are copied at once. */
enum { GRID_ROWS = 65535, COPIED = 1 << 22 };

/* Memory of a job on its device. */
struct held {
	const struct device *d;
	float *h, *r, *v;
	int32_t *column, *group, *member;
	double *factor;
	struct device_format *values, *compute;
	struct device_span *span;	/* host */
	size_t widest;
	struct device_solve solve;
};

const char *solver_off_device(const struct solver *s, size_t n)
{
	return s->storage.form ? "this --storage" :
		s->compensate == COMPENSATE_NONE ? "--compensate none" :
		s->paths > 1 ? "--paths" : s->turns ? "--turns" :
		s->group == -1 ? "--group tensor" :
		search_reads_hessian(s->search) ? "--scale-search hessian or learned" :
		!format_has_grid(&s->storage) ? "this --storage" :
		s->compute.integers && s->saturate != floorf(s->saturate) ? "a fraction as --saturate" :
		n > GRID_ROWS ? "so many columns" : NULL;
}

/* ---- a job: what its layers share ---- */

static void *memory(const struct held *a, size_t n, size_t size)
{
	return device_memory(a->d, n, size);
}

static struct device_storage storage_of(const struct format *f, const struct device_format *values)
{
	const struct scale_kind t = format_scale_kind(f);
	struct device_storage y = { .values = values, .asymmetric = f->asymmetric, .away = f->away,
		.max = f->max, .rounds = format_rounds_scales(f), .power = t.power,
		.least = t.min, .step = t.step, .most = t.max, .divisor = f->divisor };
	const double below = -0.0;
	const float one = 1;
	float value;

	format_quantize(f, 1, &y.minus, &value, &below, &one, &(uint8_t){ 0 });
	return y;
}

/* The values of a format, on the device. */
static struct device_format *values_of(const struct held *a, const struct format *f)
{
	const struct device_format y = device_format(f);

	return device_copy(a->d, &y, sizeof y);
}

static double *factors_of(const struct held *a, const struct format *f, size_t steps)
{
	double factor[SEARCH_STEPS];

	for (size_t i = 0; i < steps; i++)
		factor[i] = search_factor(f, i);
	return device_copy(a->d, factor, steps * sizeof *factor);
}

/* Settings, columns and groups. */
static void share(struct held *a, const struct job *j)
{
	const struct solver *s = j->s;
	struct device_solve *y = &a->solve;

	a->group = device_copy(a->d, j->group, j->n * sizeof *j->group);
	a->member = device_copy(a->d, j->member, j->live * sizeof *j->member);
	a->values = s->storage.integers ? NULL : values_of(a, &s->storage);
	a->compute = s->compute.kind ? values_of(a, &s->compute) : NULL;
	y->n = j->n, y->live = j->live;
	y->storage = storage_of(&s->storage, a->values);
	y->compute = a->compute;
	y->round_first = s->round_first && a->compute;
	y->of_storage = s->compensate == COMPENSATE_STORAGE;
	y->saturate = s->saturate > 0 && s->saturate < s->compute.max ? s->saturate : s->compute.max;
	y->column = a->column, y->group = a->group, y->member = a->member;
	y->steps = s->search == SEARCH_MINMAX ? 1 : search_steps(&s->storage);
	y->factor = a->factor = factors_of(a, &s->storage, y->steps);
	y->near = search_near(&s->storage);
	y->r = a->r;
}

/* R, as factor_run(). */
static enum status factorize(struct held *a, struct job *j, size_t *index)
{
	struct device_factor f = { .n = j->n, .live = j->live, .h = a->h };
	size_t info = 1;

	j->mean = f.mean = factor_mean(j->n, j->live, j->h, j->column);
	j->lambda = j->s->damp;
	if (!j->live)
		return STATUS_DONE;
	f.column = a->column;
	f.r = a->r = memory(a, j->live * j->live, sizeof *f.r);
	f.work = memory(a, j->live * j->live, sizeof *f.work);
	for (size_t i = 0; info && i < FACTOR_STEPS; i++) {
		j->lambda = f.lambda = j->s->damp * factor_ladder[i];
		info = a->d->factor(&f);
	}
	device_free(a->d, f.work);
	if (info)
		*index = (size_t)j->column[j->live - info];
	return info ? STATUS_NOT_POSITIVE : STATUS_DONE;
}

/* Uᵀ of all spans. */
static void invert(struct held *a, const struct job *j)
{
	size_t numbers = 0, at = 0;
	struct device_span *span;
	double *work;

	for (size_t i = 0; i < j->spans; i++) {
		const size_t width = j->span[i].last - j->span[i].first;

		numbers += width * width;
		a->widest = max(a->widest, width);
	}
	a->v = memory(a, numbers, sizeof *a->v);
	work = memory(a, numbers, sizeof *work);
	a->span = xalloc(j->spans, sizeof *a->span);
	for (size_t i = 0; i < j->spans; i++) {
		const size_t width = j->span[i].last - j->span[i].first;

		a->span[i] = (struct device_span){ j->span[i].first, j->span[i].last, a->v + at,
			work + at };
		at += width * width;
	}
	span = device_copy(a->d, a->span, j->spans * sizeof *span);
	if (j->spans)
		a->d->inverse(j->live, a->r, j->spans, span, a->widest);
	device_free(a->d, span);
	device_free(a->d, work);
}

static enum status prepare(struct held *a, struct job *j, size_t *index)
{
	enum status status;

	#pragma omp parallel num_threads(threads)
	#pragma omp single
	status = factor_check(j->n, j->h, index);
	if (status || (status = job_plan(j, index)))
		return status;
	a->h = device_copy(a->d, j->h, j->n * j->n * sizeof *j->h);
	a->column = device_copy(a->d, j->column, j->n * sizeof *j->column);
	if ((status = factorize(a, j, index)))
		return status;
	share(a, j);
	invert(a, j);
	return STATUS_DONE;
}

static void release(struct held *a)
{
	void *const all[] = { a->h, a->r, a->v, a->column, a->group, a->member, a->factor, a->values,
		a->compute };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(a->d, all[i]);
	free(a->span);
}

/* ---- a layer ---- */

/* Copies the weight to w[n][m], in pieces. */
static void load(const struct held *a, const struct linear *l, float *w)
{
	const struct device *d = a->d;
	const bool half = l->weight && l->weight_type != HALF_NONE;
	const enum device_type type = l->weight_type == HALF_BF16 ? DEVICE_BF16 : DEVICE_F16;
	const size_t n = l->in, most = min(l->out, COPIED / n + 1), size = half ? 2 : sizeof *w;
	float *piece = memory(a, most * n, sizeof *piece);
	float *host = l->weight ? NULL : xalloc(most * n, sizeof *host);
	void *narrow = half ? memory(a, most * n, size) : NULL;

	for (size_t row = 0; row < l->out; row += most) {
		const size_t rows = min(l->out - row, most);
		const char *from = l->weight ? (const char *)l->weight + row * n * size : (const char *)host;

		if (!l->weight)
			linear_weight(l, row, rows, (float (*)[n])host);
		d->upload(half ? narrow : piece, from, rows * n * size);
		if (half)
			d->convert(rows * n, piece, DEVICE_F32, narrow, type);
		d->transpose(rows, n, l->out, w + row, piece);
	}
	device_free(d, piece);
	device_free(d, narrow);
	free(host);
}

/* Memory of a layer of at most m rows. */
static void begin(struct held *a, const struct job *j, size_t m)
{
	struct device_solve *s = &a->solve;

	s->w = memory(a, j->n * m, sizeof *s->w);
	s->e = memory(a, j->live * m, sizeof *s->e);
	s->d = memory(a, a->widest * m, sizeof *s->d);
	s->d_before = memory(a, a->widest * m, sizeof *s->d_before);
	s->b = memory(a, DEVICE_BLOCK * m, sizeof *s->b);
	s->code = memory(a, j->n * m, 1);
	s->scale = memory(a, j->groups * m, sizeof *s->scale);
	s->zero = memory(a, j->groups * m, 1);
	s->cost = memory(a, 3 * m, sizeof *s->cost);
	s->square = s->cost + m, s->error = s->square + m;
	s->x = memory(a, j->largest * m, sizeof *s->x);
	s->low = memory(a, (2 + s->steps) * m, sizeof *s->low);
	s->high = s->low + m, s->loss = s->high + m;
}

static void end(const struct held *a)
{
	const struct device_solve *s = &a->solve;
	void *const all[] = { s->w, s->e, s->d, s->d_before, s->b, s->code, s->scale, s->zero, s->cost, s->x,
		s->low };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(a->d, all[i]);
}

/* The range of each row; as scale_ranges(). */
static enum status take_ranges(const struct held *a, const struct device_solve *s, struct rows *r,
	size_t *index)
{
	float *range = memory(a, 2 * r->m, sizeof *range);

	a->d->ranges(s, range, range + r->m);
	a->d->download(r->low, range, r->m * sizeof *range);
	a->d->download(r->high, range + r->m, r->m * sizeof *range);
	device_free(a->d, range);
	for (*index = 0; *index < r->m; ++*index)
		if (isnan(r->low[*index]))
			return STATUS_BAD_WEIGHT;
	return STATUS_DONE;
}

static void fit(const struct held *a, const struct job *j, const struct device_solve *s,
	const struct device_span *span, size_t g)
{
	a->d->fit(s, span, g, (size_t)j->first[g], (size_t)(j->first[g + 1] - j->first[g]));
}

/* Parameters of the groups that start in a block, which are all due at its start. */
static void fit_block(const struct held *a, const struct job *j, const struct device_solve *s,
	const struct device_span *span, size_t first, size_t last)
{
	for (size_t p = first; j->late && p < last; p++)
		if (!p || j->group[p] != j->group[p - 1])
			fit(a, j, s, span, (size_t)j->group[p]);
}

/* End of the columns from `first` that need no parameters but those of the groups that start there. */
static size_t block_end(const struct job *j, const struct span *span, size_t first)
{
	size_t end = min(first + BLOCK_COLUMNS, span->last), p = first;

	if (!j->late || j->s->group_view != VIEW_EXACT)
		return end;
	while (p < end && j->group[p] == j->group[first])
		p++;
	return p;
}

static void sweep(const struct held *a, const struct job *j, const struct device_solve *s)
{
	for (size_t g = 0; g < j->groups; g++)
		if (!j->late || j->first[g] == j->first[g + 1])
			fit(a, j, s, NULL, g);
	for (size_t i = 0; i < j->spans; i++) {
		const struct device_span *span = &a->span[i];

		a->d->span(s, span);
		for (size_t first = span->first, last; first < span->last; first = last) {
			last = block_end(j, &j->span[i], first);
			fit_block(a, j, s, span, first, last);
			for (size_t p = first; p < last; p += DEVICE_BLOCK)
				a->d->block(s, span, p, min(p + DEVICE_BLOCK, last));
		}
	}
	if (j->live < j->n)
		a->d->dead(s);
}

/* Copies codes and parameters from the device; as store() of solver.c. */
static void store(const struct held *a, const struct job *j, const struct device_solve *s, struct codes *to)
{
	const size_t m = s->m, groups = j->groups;
	uint8_t *codes = memory(a, m * j->n, 1), *zero = xalloc(groups * m, 1);
	float *scale = xalloc(groups * m, sizeof *scale);

	a->d->transpose_codes(m, j->n, codes, s->code);
	a->d->download(to->codes, codes, m * j->n);
	a->d->download(scale, s->scale, groups * m * sizeof *scale);
	a->d->download(zero, s->zero, groups * m);
	device_free(a->d, codes);
	for (size_t i = 0; i < m; i++)
		for (size_t g = 0; g < groups; g++) {
			to->scale[i * groups + g] = scale[g * m + i];
			if (to->zero)
				to->zero[i * groups + g] = zero[g * m + i];
		}
	free(scale);
	free(zero);
}

/* Sums of a number of each row of the device, times s₈² if scale8 is given. */
static double total(const struct held *a, size_t m, const double *of_rows, const float *scale8)
{
	double *x = xalloc(m, sizeof *x), sum = 0;

	a->d->download(x, of_rows, m * sizeof *x);
	for (size_t i = 0; i < m; i++)
		sum += x[i] * (scale8 ? (double)scale8[i] * (double)scale8[i] : 1);
	free(x);
	return sum;
}

/* tr(A H Aᵀ) of s->w */
static double energy(const struct held *a, const struct device_solve *s)
{
	double *sum = memory(a, s->m, sizeof *sum), y;

	a->d->quadratic(s->m, s->n, sum, s->w, a->h);
	y = total(a, s->m, sum, NULL);
	device_free(a->d, sum);
	return y;
}

/* tr(E H Eᵀ); as at the end of quantize_panel() of solver.c. */
static double error_of(const struct held *a, const struct job *j, const struct device_solve *s,
	const float *scale8)
{
	const double damped = total(a, s->m, s->cost, scale8);
	const double left = damped - j->lambda * total(a, s->m, s->square, scale8);

	if (left > 0.01 * damped && (j->s->compensate == COMPENSATE_BOTH || !j->s->compute.kind))
		return left * j->mean;
	return energy(a, s);
}

static void quantize(const struct held *a, struct rows *r)
{
	const struct job *j = r->job;
	const size_t panels = ceil_div(r->m, job_panel_rows(j->s));
	const bool reports = !j->s->no_error;
	const double start = omp_get_wtime();
	struct solver_report *report = &r->layer->report;
	struct device_solve s = a->solve;
	float *scale8 = NULL;

	s.m = r->m;
	for (size_t i = 0; i < 3; i++)
		a->d->clear((double *[]){ s.cost, s.square, s.error }[i], r->m * sizeof *s.cost);
	load(a, r->layer->weight, s.w);
	report->status = take_ranges(a, &s, r, &report->index);
	if (!report->status) {
		scale_rows(r);
		s.storage.divisor = r->storage.divisor;
		if (j->s->compute.kind)
			scale8 = device_copy(a->d, r->scale8, r->m * sizeof *scale8);
		s.scale8 = scale8;
		memset(r->sum, 0, panels * sizeof *r->sum);
		memset(r->seconds, 0, panels * sizeof *r->seconds);
		r->sum[0][0] = reports ? energy(a, &s) : 0;
		sweep(a, j, &s);
		store(a, j, &s, r->layer->codes);
		r->sum[0][1] = reports ? error_of(a, j, &s, r->scale8) : 0;
		r->sum[0][2] = total(a, r->m, s.error, NULL);
		r->seconds[0] = omp_get_wtime() - start;
		job_finish(r);
	}
	device_free(a->d, scale8);
}

void device_job(struct job *j, struct rows *first, struct rows *last)
{
	struct solver_report shared = { .error = NAN };
	struct held a = { .d = j->device };
	const double start = omp_get_wtime();
	size_t most = 0;

	shared.status = prepare(&a, j, &shared.index);
	for (struct rows *r = first; r < last && r->job == j; r++)
		most = max(most, r->m);
	if (!shared.status)
		begin(&a, j, most);
	for (struct rows *r = first; r < last && r->job == j; r++) {
		r->layer->report = shared;
		if (r == first)
			r->layer->report.seconds = omp_get_wtime() - start;
		if (!shared.status)
			quantize(&a, r);
	}
	end(&a);
	release(&a);
}
