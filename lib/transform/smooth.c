/* SPDX-License-Identifier: GPL-3.0-or-later */
/* smooth.c -- see smooth.h */
#include "transform/smooth.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/report.h"
#include "calib/hessian.h"
#include "model/layer.h"

static const struct report_column columns[] = {
	{ "input", REPORT_MAX }, { "smoothed", REPORT_MAX }, { "weight", REPORT_MAX },
	{ "scaled", REPORT_MAX },
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table table = { .column = columns, .columns = COLUMNS, .name = "norm" };

/* x = max(x, |inputs of the layer|), if the layer has a Hessian. A projector reads several rows of the norm
 * at once; their channels are joined. Returns whether the layer has a Hessian. */
static bool add_inputs(const struct part *hessian, const struct residual_layer *l, size_t n, double x[n])
{
	struct hessian h;

	if (!hessian_exists(hessian, l->path))
		return false;
	h = hessian_find(hessian, l->path, l->in);
	if (!h.absmax)
		die("%s: %s/absmax: is missing, expected a file of hessian-accum", part_name(hessian),
			l->path);
	for (size_t j = 0; j < l->in; j++)
		x[j % n] = fmax(x[j % n], (double)h.absmax[j]);
	return true;
}

/* w = max(w, |weights of a column|), joined in the same way. */
static void add_weights(const struct part *part, const struct residual_layer *l, size_t n, double w[n])
{
	struct layer layer = layer_read(part, l->path, l->out, l->in);
	float *row = xalloc(l->in, sizeof *row);

	for (size_t i = 0; i < layer.linear.out; i++) {
		linear_weight(&layer.linear, i, 1, (float (*)[l->in])row);
		for (size_t j = 0; j < l->in; j++)
			w[j % n] = fmax(w[j % n], fabs((double)row[j]));
	}
	free(row);
	layer_free(&layer);
}

static double largest_scaled(size_t n, const double x[n], const double factor[n], bool over)
{
	double y = 0;

	for (size_t j = 0; j < n; j++)
		y = fmax(y, !factor ? x[j] : over ? x[j] / factor[j] : x[j] * factor[j]);
	return y;
}

void smooth_norm(void *arg, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm)
{
	struct smooth *s = arg;
	const size_t n = norm->n;
	double *x = xalloc(n, sizeof *x), *w = xalloc(n, sizeof *w), *factor = xalloc(n, sizeof *factor);
	size_t known = 0;

	for (const struct residual_layer *l = here->layer; l < here->layer + here->layers; l++)
		if (invariant_reads(l) && l->norm == (int64_t)i)
			known += add_inputs(s->hessian, l, n, x);
	for (const struct residual_layer *l = here->layer; known && l < here->layer + here->layers; l++)
		if (invariant_reads(l) && l->norm == (int64_t)i)
			add_weights(part, l, n, w);
	for (size_t j = 0; j < n; j++)
		factor[j] = x[j] > 0 && w[j] > 0 ? pow(x[j], s->alpha) / pow(w[j], 1 - s->alpha) : 1;
	if (known) {
		report_row(s->report, &table, here->norm[i].path, (double[COLUMNS]){
			largest_scaled(n, x, NULL, false), largest_scaled(n, x, factor, true),
				largest_scaled(n, w, NULL, false),
			largest_scaled(n, w, factor, false) });
		norm->factor = factor;
		s->done++;
	} else
		free(factor);
	free(x), free(w);
}
