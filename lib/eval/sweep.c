/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sweep.c -- see sweep.h */
#include "eval/sweep.h"
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/thread.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "model/setting.h"
#include "num/gauss.h"

enum { WEIGHTS = 256, POINTS = 1000000 };	/* weights rounded at a time; most points of --sigma */
static const double MIN = 1e-3, MAX = 2;	/* range of sigma for the search of minima and crossovers */

static const struct table_column curve_columns[] = {
	{ "format", TABLE_TEXT }, { "bits", TABLE_INTEGER }, { "sigma", TABLE_REAL }, { "error", TABLE_REAL },
	{ "relative", TABLE_REAL }, { "sampled", TABLE_REAL }, { "sampled_se", TABLE_REAL },
};
static const struct table_column best_columns[] = {
	{ "format", TABLE_TEXT }, { "bits", TABLE_INTEGER }, { "sigma", TABLE_REAL }, { "error", TABLE_REAL },
	{ "lead", TABLE_REAL },
};
static const struct table_column crossover_columns[] = {
	{ "below", TABLE_TEXT }, { "above", TABLE_TEXT }, { "bits", TABLE_INTEGER }, { "sigma", TABLE_REAL },
	{ "error", TABLE_REAL },
};
static const struct table_column values_columns[] = {
	{ "format", TABLE_TEXT }, { "code", TABLE_INTEGER }, { "value", TABLE_FLOAT },
};
static const struct table_column layer_columns[] = {
	{ "layer", TABLE_TEXT }, { "channels", TABLE_INTEGER }, { "zero_channels", TABLE_INTEGER },
	{ "mean", TABLE_REAL }, { "deviation", TABLE_REAL }, { "least", TABLE_REAL }, { "twentieth",
	TABLE_REAL }, { "quarter", TABLE_REAL }, { "median", TABLE_REAL }, { "three_quarters", TABLE_REAL },
	{ "nineteen_twentieths", TABLE_REAL }, { "largest", TABLE_REAL }, { "in_band", TABLE_REAL },
};
static const struct table_column error_columns[] = {
	{ "layer", TABLE_TEXT }, { "format", TABLE_TEXT }, { "sigma", TABLE_REAL }, { "error", TABLE_REAL },
	{ "relative", TABLE_REAL },
};
const char *const sweep_tables[] = { [SWEEP_CURVE] = "curve", [SWEEP_BEST] = "best",
	[SWEEP_CROSSOVER] = "crossover", [SWEEP_VALUES] = "values", [SWEEP_LAYER] = "layer",
	[SWEEP_ERROR] = "error", NULL };
#define TABLE_OF(c) { .column = c, .columns = sizeof c / sizeof *c }

/* Adds a row for each code with a value. */
static void add_values(struct table *t, const struct format *f)
{
	for (int c = 0; c < 1 << f->bits; c++)
		if ((c & f->code_mask) <= f->code_last)
			table_row(t, (const char *[]){ f->name }, (double[]){ c, (double)f->grid[c] });
}

struct sweep sweep_begin(const char *names, bool ties_away, double low, double high,
	const struct selection *layers)
{
	struct sweep s = { .layers = layers, .low = low, .high = high, .table = {
		[SWEEP_CURVE] = TABLE_OF(curve_columns), [SWEEP_BEST] = TABLE_OF(best_columns),
		[SWEEP_CROSSOVER] = TABLE_OF(crossover_columns), [SWEEP_VALUES] = TABLE_OF(values_columns),
		[SWEEP_LAYER] = TABLE_OF(layer_columns), [SWEEP_ERROR] = TABLE_OF(error_columns) } };
	char *copy = xformat("%s", names), *rest = copy, *name;

	s.format = xalloc(strlen(names) / 2 + 1, sizeof *s.format);
	while ((name = strsep(&rest, ","))) {
		setting_format(&s.format[s.formats], "formats", name);
		format_tensor(&s.format[s.formats], -1, 1);
		format_ties(&s.format[s.formats], ties_away);
		add_values(&s.table[SWEEP_VALUES], &s.format[s.formats++]);
	}
	free(copy);
	return s;
}

void sweep_free(struct sweep *s)
{
	for (size_t i = 0; i < SWEEP_TABLES; i++)
		table_free(&s->table[i]);
	free(s->format);
	free(s->sigma);
	*s = (struct sweep){ 0 };
}

/* Parses a number that is followed by `end` ('\0': the end of the list). Returns the rest; NULL: no such
 * number. */
static const char *next(const char *text, char end, double *value)
{
	const char *rest = text ? number_real(text, value) : NULL;

	if (!rest || *rest != end)
		return NULL;
	return end ? rest + 1 : rest;
}

static double checked(double sigma)
{
	if (!(sigma >= SWEEP_MIN && sigma <= SWEEP_MAX))
		misuse("--sigma: %g is not a number from %g to %g", sigma, SWEEP_MIN, SWEEP_MAX);
	return sigma;
}

double *sweep_sigmas(const char *text, size_t *n)
{
	double low, high, step, *sigma;
	const char *s = text;

	*n = 0;
	if (strchr(text, ':')) {
		if (!next(next(next(text, ':', &low), ':', &high), 0, &step) || high < low || step <= 0)
			misuse("--sigma: '%s' is not LOW:HIGH:STEP with LOW <= HIGH and 0 < STEP", text);
		checked(low), checked(high);
		if ((high - low) / step > POINTS)
			misuse("--sigma: '%s' has %.3g points, expected at most %d", text,
				(high - low) / step, POINTS);
		sigma = xalloc((size_t)((high - low) / step) + 2, sizeof *sigma);
		while (low + (double)*n * step <= high + 1e-9 * step) {
			sigma[*n] = low + (double)*n * step;
			++*n;
		}
		return sigma;
	}
	sigma = xalloc(strlen(text) / 2 + 1, sizeof *sigma);
	for (bool last = false; !last; ++*n) {
		last = !strchr(s, ',');
		s = next(s, last ? 0 : ',', &sigma[*n]);
		if (!s)
			misuse("--sigma: '%s' is not a list of numbers separated by commas", text);
		checked(sigma[*n]);
	}
	return sigma;
}

void sweep_band(const char *text, double *low, double *high)
{
	if (!next(next(text, ':', low), 0, high) || !(*low >= 0 && *low <= *high))
		misuse("--band: '%s' is not LOW:HIGH with 0 <= LOW <= HIGH", text);
}

static void add_best(struct sweep *s, const struct gauss g[])
{
	const struct gauss **other = xalloc(s->formats, sizeof *other);

	for (size_t f = 0; f < s->formats; f++) {
		size_t n = 0;
		double best, error, min = INFINITY;

		for (size_t i = 0; i < s->formats; i++)
			if (i != f && s->format[i].bits == s->format[f].bits)
				other[n++] = &g[i];
		if (!n)
			continue;
		best = gauss_best(&g[f], n, other, MIN, MAX);
		error = gauss_error(&g[f], best);
		for (size_t i = 0; i < n; i++)
			min = fmin(min, gauss_error(other[i], best));
		table_row(&s->table[SWEEP_BEST], (const char *[]){ s->format[f].name },
			(double[]){ s->format[f].bits, best, error, min / error });
	}
	free(other);
}

static void add_crossovers(struct sweep *s, const struct gauss g[])
{
	for (size_t a = 0; a < s->formats; a++)
		for (size_t b = a + 1; b < s->formats; b++) {
			double from = MIN, x;

			if (s->format[a].bits != s->format[b].bits)
				continue;
			while (!isnan(x = gauss_crossover(&g[a], &g[b], from, MAX))) {
				double beyond = x * (1 + 1e-6);
				bool swap = gauss_error(&g[a], beyond) < gauss_error(&g[b], beyond);

				table_row(&s->table[SWEEP_CROSSOVER], (const char *[]){
					s->format[swap ? b : a].name, s->format[swap ? a : b].name },
					(double[]){ s->format[a].bits, x, gauss_error(&g[a], x) });
				from = beyond;
			}
		}
}

void sweep_gauss(struct sweep *s, size_t n, const double sigma[n], size_t samples, uint64_t number,
	bool compare)
{
	struct gauss *g = xalloc(s->formats, sizeof *g);
	double (*sampled)[2] = xalloc(s->formats * n, sizeof *sampled);
	const bool uniform = n && isinf(sigma[0]);

	for (size_t f = 0; f < s->formats; f++)
		g[f] = gauss_of(&s->format[f]);
	#pragma omp parallel for num_threads(threads) schedule(dynamic) if (samples)
	for (size_t i = 0; i < s->formats * n; i++) {
		sampled[i][0] = sampled[i][1] = NAN;
		if (samples)
			sampled[i][0] = gauss_sampled(&s->format[i / n], sigma[i % n], samples, number,
				&sampled[i][1]);
	}
	for (size_t f = 0; f < s->formats; f++)
		for (size_t i = 0; i < n; i++) {
			const double e = gauss_error(&g[f], sigma[i]), *sample = sampled[f * n + i];
			const double square = gauss_second_moment(sigma[i]);

			table_row(&s->table[SWEEP_CURVE], (const char *[]){ s->format[f].name },
				(double[]){ s->format[f].bits, uniform ? sqrt(square) : sigma[i], e,
				e / square, sample[0], sample[1] });
		}
	if (compare && !uniform) {
		add_best(s, g);
		add_crossovers(s, g);
	}
	free(g);
	free(sampled);
}

static double quantile(size_t n, const double x[n], double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

/* Mean of (w - ŵ)² of a channel, relative to its largest w². */
static double channel_error(const struct format *f, size_t n, const float w[n], double min, double max)
{
	struct format own = *f;
	float scale[WEIGHTS], y[WEIGHTS];
	uint8_t zero[WEIGHTS], code[WEIGHTS];
	double x[WEIGHTS], sum = 0, bound = fmax(-min, max);

	format_tensor(&own, min, max);
	for (size_t i = 0; i < WEIGHTS; i++)
		format_fit(&own, &scale[i], &zero[i], min, max);
	for (size_t k = 0; k < n; k += WEIGHTS) {
		size_t c = n - k < WEIGHTS ? n - k : WEIGHTS;

		for (size_t i = 0; i < c; i++)
			x[i] = (double)w[k + i];
		format_quantize(f, c, code, y, x, scale, zero);
		for (size_t i = 0; i < c; i++)
			sum += (x[i] - y[i]) * (x[i] - y[i]);
	}
	return sum / (double)n / (bound * bound);
}

/* out: sigma, mean square and error of each format of a channel scaled to [-1, 1]. All 0 for a channel of
 * zeros. */
static void channel_row(const struct sweep *s, size_t n, const float w[n], double out[2 + s->formats])
{
	double min = 0, max = 0, sum = 0, squares = 0, bound;

	memset(out, 0, (2 + s->formats) * sizeof *out);
	for (size_t i = 0; i < n; i++) {
		double v = (double)w[i];

		min = fmin(min, v);
		max = fmax(max, v);
		sum += v;
		squares += v * v;
	}
	bound = fmax(-min, max);
	if (!isfinite(squares))
		out[0] = NAN;
	if (!(bound > 0) || isnan(out[0]))
		return;
	out[1] = squares / (double)n / (bound * bound);
	sum /= (double)n * bound;
	out[0] = sqrt(fmax(out[1] - sum * sum, 0));
	for (size_t f = 0; f < s->formats; f++)
		out[2 + f] = channel_error(&s->format[f], n, w, min, max);
}

/* Adds the row of m channels. sigma: of the n channels that are not all zero; it is sorted. */
static void add_sigmas(struct sweep *s, const char *name, size_t m, size_t n, double sigma[n])
{
	double mean = 0, deviation = 0, inside = 0;

	gsl_sort(sigma, 1, n);
	for (size_t i = 0; i < n; i++) {
		mean += sigma[i] / (double)n;
		inside += sigma[i] >= s->low && sigma[i] <= s->high;
	}
	for (size_t i = 0; i < n; i++)
		deviation += (sigma[i] - mean) * (sigma[i] - mean) / (double)n;
	table_row(&s->table[SWEEP_LAYER], &name, (double[]){ (double)m, (double)(m - n), mean,
		sqrt(deviation), sigma[0], quantile(n, sigma, 0.05), quantile(n, sigma, 0.25),
		quantile(n, sigma, 0.5), quantile(n, sigma, 0.75), quantile(n, sigma, 0.95), sigma[n - 1],
		inside / (double)n });
}

static void add_layer_sigmas(struct sweep *s, const struct part *part, const char *path)
{
	struct layer layer = layer_read(part, path, 0, 0);
	const size_t m = layer.linear.out, n = layer.linear.in, wide = 2 + s->formats;
	double (*channel)[wide] = xalloc(m, sizeof *channel), *sigma = xalloc(m, sizeof *sigma), mean[wide];
	size_t live = 0;

	#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
	for (size_t i = 0; i < m; i++) {
		float *w = xgrow(NULL, n, sizeof *w);

		linear_weight(&layer.linear, i, 1, (float (*)[n])w);
		channel_row(s, n, w, channel[i]);
		free(w);
	}
	memset(mean, 0, sizeof mean);
	for (size_t i = 0; i < m; i++) {
		if (isnan(channel[i][0]))
			die("%s: %s/weight: row %zu is not finite", part_name(part), path, i);
		if (!(channel[i][1] > 0))
			continue;
		sigma[live++] = channel[i][0];
		for (size_t k = 0; k < wide; k++)
			mean[k] += channel[i][k];
	}
	if (live) {
		for (size_t k = 0; k < wide; k++)
			mean[k] /= (double)live;
		s->sigma = xgrow(s->sigma, s->live + live, sizeof *s->sigma);
		memcpy(s->sigma + s->live, sigma, live * sizeof *sigma);
		s->live += live;
		s->channels += m;
		add_sigmas(s, path, m, live, sigma);
		for (size_t f = 0; f < s->formats; f++)
			table_row(&s->table[SWEEP_ERROR], (const char *[]){ path, s->format[f].name },
				(double[]){ mean[0], mean[2 + f], mean[2 + f] / mean[1] });
	} else
		warn("%s: %s: is all zero and has no sigma", part_name(part), path);
	free(channel);
	free(sigma);
	layer_free(&layer);
}

void sweep_part(void *arg, const struct filter *f)
{
	struct sweep *s = arg;
	struct layer_list list = layer_list(f->part, f->config, s->layers);

	for (size_t i = 0; i < list.n; i++) {
		progress_part(list.layer[i].path, part_index(f->part), part_count(f->part), i, list.n);
		add_layer_sigmas(s, f->part, list.layer[i].path);
	}
	layer_list_free(&list);
}

void sweep_end(struct sweep *s, const char *name)
{
	if (!s->live)
		die("%s: holds no linear layer%s whose weights are not all zero", name,
			selection_text(s->layers));
	add_sigmas(s, "all", s->channels, s->live, s->sigma);
}
