/* SPDX-License-Identifier: GPL-3.0-or-later */
/* divergence.c -- see divergence.h */
#include "eval/divergence.h"
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "eval/perplexity.h"
#include "forward/score.h"
#include "num/vector.h"

/*
 * Sums of a row of one model so far. The exponentials of the score are floats, which is enough for a
 * likelihood. A divergence of 1e-6 is the difference of two such logarithms, so `sum` has exponentials in
 * double.
 */
struct side { struct score score; size_t top; double sum; };
struct row { struct side model, reference; double difference; };
struct rows { const struct windows *windows; size_t models; struct row *row[DIVERGENCES]; };

static size_t first_of(size_t n, const float y[n], float value)
{
	size_t i = 0;

	while (i + 1 < n && y[i] != value)
		i++;
	return i;
}

/* Adds a tile. Returns the factor for sums over earlier tiles. */
static double side_add(struct side *s, size_t n, const float y[n], size_t first, size_t target)
{
	float before = s->score.max;

	score_add(&s->score, n, y, first, target);
	if (s->score.max > before)
		s->top = first + first_of(n, y, s->score.max);
	return exp((double)before - (double)s->score.max);
}

static void row_add(struct row *r, size_t n, const float m[n], const float a[n], size_t first, size_t target)
{
	const double model = side_add(&r->model, n, m, first, target);
	const double reference = side_add(&r->reference, n, a, first, target);
	double sum[3];

	vector_sum_exp_pair(n, sum, a, r->reference.score.max, m, r->model.score.max);
	r->reference.sum = r->reference.sum * reference + sum[0];
	r->model.sum = r->model.sum * model + sum[1];
	r->difference = r->difference * reference + sum[2];
}

static void add_tile(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[])
{
	struct rows *r = arg;

	for (size_t k = 0; k < m; k++) {
		int32_t target = r->windows->target[row + k];

		for (size_t i = 0; target >= 0 && i < r->models; i++)
			row_add(&r->row[i][row + k], n, y[i] + k * n, y[r->models] + k * n, first,
				(size_t)target);
	}
}

static double divergence_of_row(const struct row *r, const struct windows *w, size_t i)
{
	const struct side *m = &r->model, *a = &r->reference;
	double kl = r->difference / a->sum + (log(m->sum) - log(a->sum)) +
		((double)m->score.max - (double)a->score.max);

	if (!isfinite(kl))
		die("the divergence of the models is %g at %s: their numbers overflow", kl,
			windows_place(w, i));
	return kl > 0 ? kl : 0;
}

static struct row *rows_begin(size_t n)
{
	struct row *row = xalloc(n, sizeof *row);

	for (size_t i = 0; i < n; i++)
		row[i].model.score = row[i].reference.score = score_begin();
	return row;
}

/* The divergence of one model, whose sums are `row`, from the reference. */
static struct divergence of_rows(const struct row row[], const struct forward *f,
	const struct forward *reference, double nll[])
{
	const struct windows *w = f->windows;
	size_t n = w->targets, k = 0;
	struct divergence d = { n, nll, xalloc(n, sizeof *d.reference), xalloc(n, sizeof *d.kl),
		xalloc(n, 1), xalloc(n, 1) };

	for (size_t i = 0; i < f->hidden.rows; i++) {
		if (w->target[i] < 0)
			continue;
		nll[k] = score_nll(&row[i].model.score, f->name, w, i);
		d.reference[k] = score_nll(&row[i].reference.score, reference->name, w, i);
		d.kl[k] = divergence_of_row(&row[i], w, i);
		d.likeliest[k] = score_likeliest(&row[i].model.score);
		d.agrees[k++] = row[i].model.top == row[i].reference.top;
	}
	return d;
}

void divergences_of(size_t n, struct forward *const f[n], const struct head *const h[n],
	struct forward *reference, const struct head *reference_head, double *const nll[n],
	struct divergence d[n])
{
	struct rows r = { .windows = reference->windows, .models = n };
	struct forward *model[LOGITS_MODELS];
	const struct head *head[LOGITS_MODELS];

	for (size_t k = 0; k < n; k++) {
		model[k] = f[k], head[k] = h[k];
		r.row[k] = rows_begin(reference->hidden.rows);
	}
	model[n] = reference, head[n] = reference_head;
	logits_tiles(n + 1, model, head, add_tile, &r);
	for (size_t k = 0; k < n; k++) {
		d[k] = of_rows(r.row[k], f[k], reference, nll[k]);
		free(r.row[k]);
	}
}

struct divergence divergence_of(struct forward *f, const struct head *h, struct forward *reference,
	const struct head *reference_head, double nll[f->windows->targets])
{
	struct divergence d;

	divergences_of(1, &f, &h, reference, reference_head, &nll, &d);
	return d;
}

struct divergence divergence_measure(struct run *model, struct run *reference, const struct windows *w,
	size_t memory, double nll[w->targets])
{
	struct run *both[] = { model, reference };
	struct divergence d;

	for (size_t k = 0; k < 2; k++)
		run_begin(both[k], w, memory / 2);
	run_to_heads(2, both);
	d = divergence_of(model->forward, &model->head, reference->forward, &reference->head, nll);
	for (size_t k = 0; k < 2; k++)
		run_close(both[k]);
	progress_clear();
	return d;
}

void divergence_free(struct divergence *d)
{
	free(d->reference), free(d->kl), free(d->agrees), free(d->likeliest);
}

/* Appends the mean of x[n] and, if `error` is not NULL, its standard error. */
static struct metric *put_mean(struct metric *a, const char *name, const char *error, size_t n,
	const double x[n])
{
	struct perplexity p = perplexity_of(n, x, 0);

	*a++ = (struct metric){ name, p.nll, 6 };
	if (error)
		*a++ = (struct metric){ error, p.nll_se, 4 };
	return a;
}

struct percentile { const char *name; double percent; };

/* Appends percentiles of x[n]; sorts x. */
static struct metric *put_percentiles(struct metric *a, size_t rows, const struct percentile row[rows],
	size_t n, double x[n])
{
	gsl_sort(x, 1, n);
	for (size_t i = 0; i < rows; i++)
		*a++ = (struct metric){ row[i].name,
			gsl_stats_quantile_from_sorted_data(x, 1, n, row[i].percent / 100), 6 };
	return a;
}

size_t divergence_metrics(const struct divergence *d, const struct windows *w,
	struct metric metric[DIVERGENCE_METRICS])
{
	static const struct percentile of_kl[] = { { "kl_median", 50 }, { "kl_99", 99 }, { "kl_99_9", 99.9 },
		{ "kl_max", 100 } };
	static const struct percentile of_p[] = { { "delta_p_1", 1 }, { "delta_p_5", 5 },
		{ "delta_p_25", 25 }, { "delta_p_median", 50 }, { "delta_p_75", 75 }, { "delta_p_95", 95 },
		{ "delta_p_99", 99 } };
	double *x = xalloc(d->n, sizeof *x), squares = 0;
	struct metric *a = metric;

	for (size_t i = 0; i < d->n; i++)
		x[i] = d->kl[i];
	a = put_mean(a, "kl", "kl_se", d->n, x);
	*a++ = (struct metric){ "kl_se_windows", perplexity_se_windows(w, d->kl), 4 };
	a = put_percentiles(a, sizeof of_kl / sizeof *of_kl, of_kl, d->n, x);
	for (size_t i = 0; i < d->n; i++)
		x[i] = d->agrees[i];
	a = put_mean(a, "top_agreement", "top_agreement_se", d->n, x);
	for (size_t i = 0; i < d->n; i++) {
		x[i] = exp(-d->nll[i]) - exp(-d->reference[i]);
		squares += x[i] * x[i];
	}
	a = put_mean(a, "delta_p", NULL, d->n, x);
	*a++ = (struct metric){ "delta_p_rms", sqrt(squares / (double)d->n), 6 };
	a = put_percentiles(a, sizeof of_p / sizeof *of_p, of_p, d->n, x);
	a += delta_metrics(reference_nll, w, d->nll, d->reference, a);
	free(x);
	return (size_t)(a - metric);
}

void divergence_write(struct output *out, const struct divergence *d)
{
	if (!out)
		return;
	output_write(out, "/nll_of_reference", tensor_1d(TENSOR_F64, d->reference, d->n));
	output_write(out, "/kl", tensor_1d(TENSOR_F64, d->kl, d->n));
	output_write(out, "/top_agrees", tensor_1d(TENSOR_U8, d->agrees, d->n));
}
