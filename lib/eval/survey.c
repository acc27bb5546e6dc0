/* SPDX-License-Identifier: GPL-3.0-or-later */
/* survey.c -- see survey.h */
#include "eval/survey.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "model/layer.h"
#include "quant/stats.h"

static const struct sheet_column columns[] = {
	{ "layer", SHEET_TEXT }, { "storage", SHEET_TEXT }, { "group", SHEET_TEXT }, { "compute", SHEET_TEXT },
	{ "rows", SHEET_INTEGER }, { "columns", SHEET_INTEGER }, { "bits", SHEET_REAL },
	{ "sigma", SHEET_REAL }, { "sigma_min", SHEET_REAL }, { "sigma_max", SHEET_REAL }, { "deviation", SHEET_REAL },
	{ "kurtosis", SHEET_REAL }, { "absmax", SHEET_REAL }, { "incoherence", SHEET_REAL },
};

struct survey survey_begin(void)
{
	return (struct survey){ .sheet = { .columns = sizeof columns / sizeof *columns, .column = columns } };
}

const char *survey_storage(const struct linear *l)
{
	static const enum tensor_type types[] = { [HALF_NONE] = TENSOR_F32, [HALF_F16] = TENSOR_F16, [HALF_BF16] = TENSOR_BF16 };

	return l->weight ? tensor_name(types[l->weight_type]) : l->storage.name;
}

static char *group_of(const struct linear *l)
{
	if (l->weight)
		return xformat("-");
	return l->group > 0 ? xformat("%ld", l->group) : xformat(l->group ? "tensor" : "channel");
}

static void add_layer(struct survey *s, const struct image *image, const char *path)
{
	struct layer layer = layer_read(image, path, 0, 0);
	const struct linear *l = &layer.linear;
	void *work = xalloc(stats_work(l->out, l->in), 1);
	double bits = stats_bits(l), weights = (double)l->out * (double)l->in;
	char *group = group_of(l);
	struct weight_stats w;

	stats_weight(l, &w, work);
	sheet_row(&s->sheet, (union sheet_value[]){ { path }, { survey_storage(l) }, { group },
		{ l->compute.kind ? l->compute.name : "none" }, { .number = (double)l->out }, { .number = (double)l->in },
		{ .number = bits }, { .number = w.sigma }, { .number = w.sigma_min }, { .number = w.sigma_max },
		{ .number = w.deviation }, { .number = w.kurtosis }, { .number = w.absmax }, { .number = w.incoherence } });
	s->weights += weights;
	s->bits += bits * weights;
	s->absmax = fmax(s->absmax, w.absmax);
	free(group), free(work);
	layer_free(&layer);
}

void survey_part(struct survey *s, const struct image *image, const struct config *config)
{
	struct layer_list list = layer_list(image, config);

	for (size_t i = 0; i < list.n; i++) {
		progress(list.path[i], i, list.n);
		add_layer(s, image, list.path[i]);
	}
	layer_list_free(&list);
}

void survey_end(struct survey *s, const char *name)
{
	const union sheet_value not = { .number = NAN };

	if (!s->sheet.rows)
		die("%s: holds no linear layer%s", name, option_layers_given() ? " that --layers selects" : "");
	sheet_sum(&s->sheet, (union sheet_value[]){ { "all" }, { "-" }, { "-" }, { "-" }, not, not, { .number = s->bits / s->weights },
		not, not, not, not, not, { .number = s->absmax }, not });
}
