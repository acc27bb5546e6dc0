/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stats_table.c -- see stats_table.h */
#include "eval/stats_table.h"
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "calib/hessian.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "num/code_form.h"
#include "quant/stats.h"

static const struct table_column model_columns[] = {
	{ "layer", TABLE_TEXT }, { "storage", TABLE_TEXT }, { "group", TABLE_TEXT },
	{ "compute", TABLE_TEXT }, { "rows", TABLE_INTEGER }, { "columns", TABLE_INTEGER },
	{ "bits", TABLE_REAL }, { "sigma", TABLE_REAL }, { "sigma_min", TABLE_REAL },
	{ "sigma_max", TABLE_REAL }, { "deviation", TABLE_REAL }, { "kurtosis", TABLE_REAL },
	{ "absmax", TABLE_REAL }, { "incoherence", TABLE_REAL },
};

static const struct table_column hessian_columns[] = {
	{ "layer", TABLE_TEXT }, { "tokens", TABLE_INTEGER }, { "inputs", TABLE_INTEGER },
	{ "dead", TABLE_INTEGER }, { "square_mean", TABLE_REAL }, { "square_median", TABLE_REAL },
	{ "square_max", TABLE_REAL }, { "absmax", TABLE_REAL }, { "kurtosis", TABLE_REAL },
};

static const struct table_column channel_columns[] = {
	{ "layer", TABLE_TEXT }, { "channel", TABLE_INTEGER }, { "rms", TABLE_REAL },
	{ "absmax", TABLE_REAL },
};
#define COLUMNS_OF(c) .column = c, .columns = sizeof c / sizeof *c

struct stats_table stats_table_begin(const char *kind, bool channels, const struct selection *layers)
{
	struct stats_table s = { .layers = layers, .channels = channels, .model = !strcmp(kind, "model") };

	if (channels)
		s.table = (struct table){ COLUMNS_OF(channel_columns) };
	else if (s.model)
		s.table = (struct table){ COLUMNS_OF(model_columns) };
	else
		s.table = (struct table){ COLUMNS_OF(hessian_columns) };
	return s;
}

const char *stats_table_storage(const struct linear *l)
{
	static const enum tensor_type types[] = { [HALF_NONE] = TENSOR_F32, [HALF_F16] = TENSOR_F16,
		[HALF_BF16] = TENSOR_BF16 };

	return l->weight ? tensor_name(types[l->weight_type]) : l->storage.name;
}

char *stats_table_group(const struct linear *l)
{
	if (l->weight || code_has_scales(&l->storage))
		return xformat("-");
	return l->group > 0 ? xformat("%ld", l->group) : xformat(l->group ? "tensor" : "channel");
}

static void add_layer_row(struct stats_table *s, const struct part *part, const char *path)
{
	struct layer layer = layer_read(part, path, 0, 0);
	const struct linear *l = &layer.linear;
	void *work = xalloc(stats_workspace(l->out, l->in), 1);
	double bits = member_bits(members, l), weights = (double)l->out * (double)l->in;
	char *group = stats_table_group(l);
	struct weight_stats w;

	stats_weight(l, &w, work);
	table_row(&s->table,
		(const char *[]){ path, stats_table_storage(l), group,
			l->compute.kind ? l->compute.name : "none" },
		(double[]){ (double)l->out, (double)l->in, bits, w.sigma, w.sigma_min, w.sigma_max,
			w.deviation, w.kurtosis, w.absmax, w.incoherence });
	s->weights += weights;
	s->bits += bits * weights;
	s->absmax = fmax(s->absmax, w.absmax);
	free(group), free(work);
	layer_free(&layer);
}

static void add_channel_row(struct stats_table *s, const char *path, size_t j, double rms, double absmax)
{
	table_row(&s->table, &path, (double[]){ (double)j, rms, absmax });
}

static void add_weight_channels(struct stats_table *s, const struct part *part, const char *path)
{
	struct layer layer = layer_read(part, path, 0, 0);
	const size_t m = layer.linear.out, n = layer.linear.in;
	float *row = xalloc(n, sizeof *row);
	double *square = xalloc(n, sizeof *square), *max = xalloc(n, sizeof *max);

	for (size_t i = 0; i < m; i++) {
		linear_weight(&layer.linear, i, 1, (float (*)[n])row);
		for (size_t j = 0; j < n; j++) {
			square[j] += (double)row[j] * (double)row[j];
			max[j] = fmax(max[j], fabs((double)row[j]));
		}
	}
	for (size_t j = 0; j < n; j++)
		add_channel_row(s, path, j, sqrt(square[j] / (double)m), max[j]);
	free(row), free(square), free(max);
	layer_free(&layer);
}

struct visit { struct stats_table *s; const struct part *part; };

static void visit_hessian(void *arg, const char *path)
{
	struct visit *v = arg;
	struct hessian h;
	double *square, sum = 0, max = 0, fourth = 0;
	size_t n, dead = 0;

	if (!selection_has(v->s->layers, path) || hessian_is_prior(path) || !hessian_exists(v->part, path))
		return;
	h = hessian_find(v->part, path, 0);
	n = h.in;
	hessian_check(part_name(v->part), path, n, h.sum);
	if (!h.absmax)
		die("%s: %s/absmax: is missing", part_name(v->part), path);
	square = xalloc(n, sizeof *square);
	for (size_t i = 0; i < n; i++) {
		square[i] = h.count ? (double)h.sum[i * n + i] / (double)h.count : 0;
		sum += square[i];
		dead += !(square[i] > 0);
		max = fmax(max, (double)h.absmax[i]);
		fourth += h.fourth && h.count ? h.fourth[i] / (double)h.count : NAN;
		if (v->s->channels)
			add_channel_row(v->s, path, i, sqrt(square[i]), (double)h.absmax[i]);
	}
	if (v->s->channels) {
		free(square);
		return;
	}
	gsl_sort(square, 1, n);
	table_row(&v->s->table, &path, (double[]){ (double)h.count, (double)n, (double)dead, sum / (double)n,
		(square[(n - 1) / 2] + square[n / 2]) / 2, square[n - 1], max,
		fourth * (double)n / (sum * sum) });
	free(square);
}

void stats_table_part(void *arg, const struct filter *f)
{
	struct stats_table *s = arg;
	const struct part *part = f->part;
	struct layer_list list = { 0 };

	if (s->model)
		list = layer_list(part, f->config, s->layers);
	else
		part_groups(part, visit_hessian, &(struct visit){ s, part });
	for (size_t i = 0; i < list.n; i++) {
		progress_part(list.layer[i].path, part_index(part), part_count(part), i, list.n);
		(s->channels ? add_weight_channels : add_layer_row)(s, part, list.layer[i].path);
	}
	layer_list_free(&list);
}

void stats_table_end(struct stats_table *s, const char *name)
{
	if (!s->table.rows)
		die("%s: holds no linear layer%s", name, selection_text(s->layers));
	if (s->channels || !s->model)
		return;
	table_sum(&s->table, (const char *[]){ "all", "-", "-", "-" }, (double[]){ NAN, NAN,
		s->bits / s->weights, NAN, NAN, NAN, NAN, NAN, s->absmax, NAN });
}
