/* SPDX-License-Identifier: GPL-3.0-or-later */
/* awq.c -- see awq.h */
#include "transform/awq.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "calib/hessian.h"
#include "model/layer.h"

/* The first SCALED columns if weights are only scaled, all columns if they are clipped too. */
static const struct report_column columns[] = {
	{ "ratio", REPORT_NONE }, { "nearest", REPORT_GEOMETRIC }, { "scaled", REPORT_GEOMETRIC },
	{ "clipped", REPORT_GEOMETRIC }, { "groups_clipped", REPORT_NONE },
};
enum { SCALED = 3, COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table scaled = { .column = columns, .columns = SCALED };
static const struct report_table clipped = { .column = columns, .columns = COLUMNS };

bool awq_clips(void *arg, const struct residual_layer *l)
{
	const struct awq *a = arg;

	return hessian_exists(a->hessian, l->path) && (l->role == ROLES || !role_is_kept(l->role));
}

/* The layer's H; free(*own). */
static const float *find_hessian(const struct awq *a, const struct residual_layer *l, float **own)
{
	const struct hessian h = hessian_mixed(a->hessian, l->path, l->in, own);

	hessian_check(part_name(a->hessian), l->path, l->in, h.sum);
	return h.sum;
}

static struct hessian find_means(const struct awq *a, const char *path, size_t n)
{
	struct hessian h = hessian_find(a->hessian, path, n);

	if (!h.mean_abs)
		die("%s: %s/mean_abs: is missing, expected a file of hessian-accum", part_name(a->hessian),
			path);
	return h;
}

/* mean |x| of the layer's inputs, over the tokens of its H; returns the number of tokens that reached it. */
static int64_t mean_abs(const struct awq *a, const struct residual_layer *l, double mean[l->in])
{
	const struct hessian h = find_means(a, l->path, l->in);
	const double n = (double)l->in, own = (double)h.count / n;
	char *path = hessian_prior(l->path);
	const bool mixed = h.count < (int64_t)l->in && hessian_exists(a->hessian, path);
	const float *prior = mixed ? find_means(a, path, l->in).mean_abs : NULL;

	for (size_t j = 0; j < l->in; j++)
		mean[j] = prior ? own * (double)h.mean_abs[j] + (1 - own) * (double)prior[j] :
			(double)h.mean_abs[j];
	free(path);
	return h.count;
}

static void check_finite(const struct part *part, const struct residual_layer *l, bool finite)
{
	if (!finite)
		die("%s: %s/weight: holds a number that is not finite, or too large to be squared",
			part_name(part), l->path);
}

/* Computes the layer's loss at each ratio (own), and adds it to the sum over layers with the same inputs
 * (all). */
static void add_losses(struct awq *a, const struct part *part, const struct residual_layer *l,
	const double mean[l->in], double all[AWQ_RATIOS], double own[AWQ_RATIOS], double *whole)
{
	struct layer layer = layer_read(part, l->path, l->out, l->in);
	double *s = xalloc(l->in, sizeof *s);
	float *mixed;
	const float *h = find_hessian(a, l, &mixed);

	if (!layer.linear.weight)	/* an error even if no ratio is better and nothing would change */
		die("%s: %s: is quantized already, expected a plain weight: run %s first", part_name(part),
			l->path, program);
	for (size_t i = 0; i < AWQ_RATIOS; i++) {
		awq_factors(l->in, s, mean, i);
		own[i] = awq_loss(&a->format, &layer.linear, s, h, i ? NULL : whole);
		all[i] += own[i];
	}
	check_finite(part, l, !isnan(own[0]));
	free(s), free(mixed);
	layer_free(&layer);
	part_drop(a->hessian);
}

/* Reports the result of a layer's search, or keeps it until the layer is clipped. */
static void note_layer(struct awq *a, const char *path, double ratio, double nearest, double best)
{
	if (!a->clip) {
		report_row(a->report, &scaled, path, (double[SCALED]){ ratio, nearest, best });
		a->done++;
		return;
	}
	a->note = xgrow(a->note, a->notes + 1, sizeof *a->note);
	a->note[a->notes++] = (struct awq_note){ xformat("%s", path), ratio, nearest, best };
}

/* Means of the shared inputs of layers, from the layer that most tokens reached. */
static void find_mean(const struct awq *a, size_t count, const struct residual_layer *const reader[count],
	double mean[])
{
	const size_t n = reader[0]->in;
	double *x = xalloc(n, sizeof *x);
	int64_t max = -1;

	for (size_t k = 0; k < count; k++) {
		const int64_t tokens = mean_abs(a, reader[k], x);

		if (tokens > max)
			memcpy(mean, x, n * sizeof *x);
		max = tokens > max ? tokens : max;
	}
	free(x);
}

/* The factors of the shared inputs of `count` layers; NULL: no factors are better than none. */
static double *search(struct awq *a, const struct part *part, size_t count,
	const struct residual_layer *const reader[count])
{
	const size_t n = reader[0]->in;
	double *mean = xalloc(n, sizeof *mean), *s = NULL, *whole = xalloc(count, sizeof *whole);
	double all[AWQ_RATIOS] = { 0 }, (*own)[AWQ_RATIOS] = xalloc(count, sizeof *own);
	size_t best = 0;

	find_mean(a, count, reader, mean);
	for (size_t k = 0; k < count; k++)
		add_losses(a, part, reader[k], mean, all, own[k], &whole[k]);
	for (size_t i = 1; i < AWQ_RATIOS; i++)
		if (all[i] < all[best])
			best = i;
	for (size_t k = 0; k < count; k++)
		note_layer(a, reader[k]->path, (double)best / AWQ_RATIOS, own[k][0] / whole[k],
			own[k][best] / whole[k]);
	if (best)
		awq_factors(n, s = xalloc(n, sizeof *s), mean, best);
	free(mean), free(whole), free(own);
	return s;
}

void awq_norm(void *arg, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm)
{
	const struct residual_layer **reader = xalloc(here->layers, sizeof *reader);
	size_t count = 0;

	for (const struct residual_layer *l = here->layer; l < here->layer + here->layers; l++)
		if (invariant_reads(l) && l->norm == (int64_t)i && awq_clips(arg, l))
			reader[count++] = l;
	/* A projector that reads several rows of the norm at once would need factors for each row. */
	norm->factor = count && (*reader)->in == norm->n ? search(arg, part, count, reader) : NULL;
	free(reader);
}

double *awq_source(void *arg, const struct part *part, const struct residual *here, size_t i)
{
	const struct residual_layer *l = &here->layer[i];
	struct layer layer = layer_read(part, l->path, l->out, l->in);
	/* After an online Hadamard, input channels are not the channels of the source. Of values that
	 * several heads share, the search would need the mean over these heads. */
	const bool fits = !layer.linear.rotation_in.hadamard && l->shared == 1 && awq_clips(arg, l);

	layer_free(&layer);
	return fits ? search(arg, part, 1, &l) : NULL;
}

/* Moves the kept result of the layer's search to *note. Returns whether there was one. */
static bool take_note(struct awq *a, const char *path, struct awq_note *note)
{
	for (size_t i = 0; i < a->notes; i++)
		if (!strcmp(a->note[i].path, path)) {
			*note = a->note[i];
			free(note->path);
			a->note[i] = a->note[--a->notes];
			return true;
		}
	return false;
}

/* tr(E H Eᵀ)/tr(W H Wᵀ) of w, for the report. */
static double error_of(const struct awq *a, const struct residual_layer *l, const struct rewrite_factors *by,
	const float *h, double (*w)[l->in])
{
	double *rows, whole, loss;

	if (!report_wanted(a->report))
		return 0;
	rows = xalloc(l->out, sizeof *rows);
	for (size_t i = 0; i < l->out; i++)
		rows[i] = by->rows && i >= l->first ? by->rows[i - l->first] : 1;
	loss = awq_loss_scaled(&a->format, l->out, l->in, (const double (*)[l->in])w, by->columns, rows, h,
		&whole);
	free(rows);
	return loss / whole;
}

void awq_finish(void *arg, const struct part *part, const struct residual_layer *l,
	const struct rewrite_factors *by, double (*w)[l->in])
{
	struct awq *a = arg;
	struct awq_note note;
	/* Rows of queries and keys are not clipped: attention multiplies their errors with each other. */
	const size_t first = l->role == ROLE_Q || l->role == ROLE_K ? l->out : l->first;
	const size_t groups = linear_groups(l->in, a->format.group) * l->out;
	size_t done = 0;
	float *mixed;
	const float *h = find_hessian(a, l, &mixed);

	if (!take_note(a, l->path, &note))
		note.ratio = 0, note.scaled = note.nearest = error_of(a, l, by, h, w);
	check_finite(part, l, awq_clip(&a->format, l->out - first, l->in, w + first, by->columns, h, &done));
	report_row(a->report, &clipped, l->path, (double[COLUMNS]){ note.ratio, note.nearest, note.scaled,
		error_of(a, l, by, h, w), (double)done / (double)groups });
	a->done++;
	free(mixed);
	part_drop(a->hessian);
}
