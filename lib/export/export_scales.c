/* SPDX-License-Identifier: GPL-3.0-or-later */
/* export_scales.c -- see export_scales.h */
#include "export/export_scales.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/size.h"
#include "export/export_codes.h"

enum { COLUMNS = LINEAR_COLUMNS };

const struct linear *export_scales_layer(const struct export_scales *s, size_t row, size_t *of_layer)
{
	return s->view + export_row(s->w, row, of_layer);
}

/* The group of the layer for a group of the target, by its number or its first column. */
static size_t our_group(const struct export_scales *s, const struct linear *l, size_t group, size_t columns)
{
	if (l->group <= 0 || s->groups == 1)
		return 0;
	return (size_t)l->group == columns ? group : linear_group(l, group * columns);
}

static float scale_at(const struct export_scales *s, size_t row, size_t group, size_t columns,
	bool keeps_scale_tensor)
{
	size_t of_layer, k = export_row(s->w, row, &of_layer);
	const struct linear *whole = &s->w->layer[k].linear, *l = s->view + k;

	k = our_group(s, l, group, columns);
	if (keeps_scale_tensor)
		return l->scale[linear_scale_at(l, of_layer, k)];
	return linear_unit_scale(l, of_layer, k) *
		(whole->compute.kind && !l->compute.kind ? linear_unit_scale(whole, of_layer, 0) : 1);
}

struct export_scales export_scales(const struct export *e, const struct export_weight *w, size_t rows,
	size_t groups, size_t columns, bool keeps_scale_tensor)
{
	struct export_scales s = { .e = e, .w = w, .rows = rows, .groups = groups,
		.view = xalloc(w->n, sizeof *s.view), .scale = xalloc(rows * groups, sizeof *s.scale) };

	for (size_t i = 0; i < w->n; i++) {
		s.view[i] = w->layer[i].linear;
		if (e->options.skip_compute)
			s.view[i].compute = (struct format){ .kind = NULL };
	}
	for (size_t row = 0; row < rows; row++)
		for (size_t g = 0; g < groups; g++)
			s.scale[row * groups + g] = scale_at(&s, row, g, columns, keeps_scale_tensor);
	return s;
}

void export_scales_free(struct export_scales *s)
{
	free(s->view);
	free(s->scale);
}

/* ‖Y - Ŵ‖²/‖Ŵ‖², with Y the weight that is written. */
static double change_of(const struct export_scales *s, const float rounded[])
{
	double difference = 0, norm = 0;

	for (size_t row = 0; row < s->w->rows; row++) {
		const float *scale = rounded + (s->rows > 1 ? row * s->groups : 0);
		size_t of_layer, k = export_row(s->w, row, &of_layer);
		const struct linear *l = s->view + k;

		for (size_t i = 0; i < s->w->columns; i += COLUMNS) {
			const size_t n = min(s->w->columns - i, COLUMNS);
			float u[COLUMNS], w[COLUMNS];

			linear_units(l, of_layer, i, n, u);
			linear_columns(&s->w->layer[k].linear, of_layer, i, n, w);
			for (size_t j = 0; j < n; j++) {
				const float y = scale[s->groups > 1 ? linear_group(l, i + j) : 0];
				const double d = (double)u[j] * (double)y - (double)w[j];

				difference += d * d;
				norm += (double)w[j] * (double)w[j];
			}
		}
	}
	return norm > 0 ? difference / norm : 0;
}

static void count(const struct export_scales *s, const float rounded[], struct export_change *c)
{
	static const struct report_column columns[] = { { "change", REPORT_MAX } };
	static const struct report_table table = { columns, 1, NULL };
	const double change = sqrt(change_of(s, rounded));

	report_row(s->e->options.report, &table, s->w->name, &change);
	if (c->worst && change <= c->change)
		return;
	free(c->worst);
	c->worst = xformat("%s", s->w->name);
	c->change = change;
}

float *export_scales_round(const struct export_scales *s, enum half_type dtype, const char *instead,
	struct export_change *change)
{
	static const char *const dtypes[] = { [HALF_F16] = "f16", [HALF_BF16] = "bf16" };
	const struct export_options *o = &s->e->options;
	const size_t n = s->rows * s->groups;
	float *rounded = xalloc(n, sizeof *rounded);
	size_t k = 0;
	const bool exact = export_narrow(dtype, n, s->scale, rounded, &k);

	if (!exact && (rounded[k] == 0 || isinf(rounded[k])))
		die("%s: %s: the scale %.9g of row %zu, group %zu, would be %g in %s; %s, dpq-run "
			"--scale-dtype %s makes scales that fit", s->e->from, s->w->layer->path,
			(double)s->scale[k], k / s->groups, k % s->groups, (double)rounded[k], dtypes[dtype],
			instead, dtypes[dtype]);
	if (!exact && !o->allow_rounding)
		die("%s: %s: the scale %.9g of row %zu, group %zu, is not a number of %s; %s, dpq-run "
			"--scale-dtype %s makes scales that fit, --allow-rounding rounds it", s->e->from,
			s->w->layer->path, (double)s->scale[k], k / s->groups, k % s->groups, dtypes[dtype],
			instead, dtypes[dtype]);
	if (!exact || (o->skip_compute && s->w->layer->linear.compute.kind))
		count(s, rounded, change);
	return rounded;
}

void export_change_warn(const struct export *e, struct export_change *c)
{
	if (c->worst)
		warn("%s: rounding changed weights, most %s: by %.3g of its norm", e->to, c->worst,
			c->change);
	free(c->worst);
}
