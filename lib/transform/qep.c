/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qep.c -- see qep.h */
#include "transform/qep.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "calib/hessian.h"
#include "model/calibrated.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "transform/corrected.h"
#include "transform/layers.h"

static const struct report_column columns[] = {
	{ "change", REPORT_GEOMETRIC }, { "lambda", REPORT_MAX }, { "dead", REPORT_SUM },
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table table = { .column = columns, .columns = COLUMNS };

bool qep_skips(const struct selection *skip, const struct layer_ref *layer)
{
	const enum projection_name p = layer->stack ? layer_ref_projection(layer) : PROJECTION_NONE;

	if (skip->n)
		return selection_names(skip, layer->path);
	return p == PROJECTION_DOWN || p == PROJECTION_SHARED_DOWN || p == PROJECTION_EXPERT_DOWN;
}

void qep_check_layer(const struct part *part, const char *path)
{
	char *by = part_text(part, path, "corrected");

	if (by)
		die("%s: %s: is corrected for the error of its inputs already (%s); expected the model "
			"before that", part_name(part), path, by);
}

/* Argument of check_layer(). */
struct visit { const struct qep *q; const struct part *part; };

static void check_layer(void *arg, const struct layer_ref *layer, size_t in)
{
	const struct visit *v = arg;
	const struct qep *q = v->q;

	if (qep_skips(q->skip, layer))
		return;
	if (layer_exists(v->part, layer->path))
		qep_check_layer(v->part, layer->path);
	hessian_find(q->hessian, layer->path, in);
	if (!layer_has(q->hessian, layer->path, "cross"))
		die("%s: %s/cross: is missing, expected a file of hessian-accum --pair",
			part_name(q->hessian), layer->path);
}

void qep_check(struct qep *q, const struct filter *f)
{
	if (!layers_whole(f))
		return;
	if (!layers_each(f, q->layers, check_layer, &(struct visit){ q, f->part }))
		layers_none_selected(input_name(f->in), q->layers);
	selection_warn(q->layers, "layers", input_name(f->in));
}

/* The correction of layers with one Hessian. */
struct shared {
	char *group;			/* of the Hessian; NULL: none */
	struct correction correction;
	void *workspace;
};

static void drop(struct shared *s)
{
	free(s->group), free(s->workspace);
	*s = (struct shared){ 0 };
}

/* Makes the correction for the inputs of the layer, unless *s is that already. */
static void make(const struct qep *q, struct shared *s, const char *path, size_t in)
{
	char *group = part_same(q->hessian, path);
	struct hessian h;
	enum status status;
	size_t index = 0;
	float *own;

	if (s->group && !strcmp(s->group, group)) {
		free(group);
		return;
	}
	drop(s);
	s->group = group;
	h = hessian_mixed(q->hessian, path, in, &own);
	hessian_check(part_name(q->hessian), path, in, h.sum);
	hessian_check_cross(q->hessian, path);
	s->correction = (struct correction){ .n = in, .h = h.sum, .cross = h.cross, .damp = q->damp,
		.alone = in };
	s->workspace = xalloc(correct_workspace(in), 1);
	status = correct_make(&s->correction, s->workspace, &index);
	if (status != STATUS_DONE)
		die("%s: %s/hessian: %s (at %zu)", part_name(q->hessian), path, status_text(status), index);
	free(own);
	part_drop(q->hessian);
}

static void check_plain(const struct part *part, const struct layer *l)
{
	if (!l->linear.weight)
		die("%s: %s: is quantized already, expected a plain weight: run %s first", part_name(part),
			l->path, program);
	if (linear_own_rotation(&l->linear.rotation_in))
		die("%s: %s: has input_signs, expected a layer without", part_name(part), l->path);
	if (l->linear.splits)
		die("%s: %s: has split columns, expected a layer before rms-suppress", part_name(part),
			l->path);
	if (l->linear.branch_a)
		die("%s: %s: has a branch, expected a layer before fbq-run", part_name(part), l->path);
}

static void correct_layer(struct qep *q, const struct filter *f, struct shared *s, const char *path)
{
	struct layer layer = layer_read(f->part, path, 0, 0);
	struct linear *l = &layer.linear;
	const size_t numbers = l->out * l->in;
	float *weight = xalloc(numbers, sizeof *weight);
	double change;
	void *half = NULL;

	check_plain(f->part, &layer);
	qep_check_layer(f->part, path);
	make(q, s, path, l->in);
	change = corrected_weight(&s->correction, q->share, l, weight);
	l->weight = weight;
	l->weight_type = q->dtype;
	if (q->dtype != HALF_NONE) {
		half = xalloc(numbers, half_size(q->dtype));
		half_narrow(numbers, half, weight, q->dtype);
		l->weight = half;
	}
	if (!half_finite(numbers, l->weight, q->dtype))
		die("%s: %s: the corrected weight is not finite%s", part_name(f->part), path,
			q->dtype == HALF_F16 ? "; f32 and bf16 have a larger range" : "");
	report_row(f->report, &table, path, (double[COLUMNS]){ change, s->correction.lambda,
		(double)(l->in - s->correction.live) });
	layer_write(f->out, f->part, path, l);
	output_text(f->out, path, "corrected", program);
	q->done++;
	free(weight), free(half);
	layer_free(&layer);
}

void qep_part(void *arg, const struct filter *f)
{
	struct qep *q = arg;
	struct layer_list list = layer_list(f->part, f->config, q->layers);
	struct shared shared = { 0 };

	output_begin(f->out, f->part);
	if (!part_index(f->part)) {
		calibrated_write(f->out, 2, (const struct part *[]){ f->part, q->hessian }, NULL);
		output_history(f->out, "hessian", q->hessian);
	}
	for (size_t i = 0; i < list.n; i++) {
		const char *path = list.layer[i].path;

		progress_part(path, part_index(f->part), part_count(f->part), i, list.n);
		if (qep_skips(q->skip, &list.layer[i]))
			q->skipped++;
		else
			correct_layer(q, f, &shared, path);
	}
	drop(&shared);
	output_rest(f->out, f->part, NULL);
	output_end(f->out);
	layer_list_free(&list);
}

void qep_end(const struct qep *q, const char *name)
{
	if (!q->done)
		die("%s: no layer is left to correct: --skip leaves out all that are selected", name);
	if (q->skip->n && !q->skipped && strcmp(q->skip->pattern->text, "none"))
		warn("%s: --skip matches no layer", name);
}
