/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize.c -- see quantize.h */
#include "transform/quantize.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/thread.h"
#include "model/hessian.h"
#include "model/layer.h"
#include "model/setting.h"

enum { TOGETHER = 8 };

/* Values are only rounded to this format, so it must not have a zero point. */
static void rounded_format(const struct format *f, const char *option)
{
	if (f->asymmetric)
		misuse("--%s: %s has a zero point, expected a format without one", option, f->name);
}

void quantize_top(const struct solver *s, const char *option, double value, float *to)
{
	if (!s->compute.kind)
		return;
	if (!(value >= 1 && value <= (double)s->compute.top))
		misuse("--%s: %g is not a number from 1 to %g, the largest value of %s", option, value,
			(double)s->compute.top, s->compute.name);
	*to = (float)value;
}

void quantize_idle(const struct quantize *q)
{
	const struct solver *s = &q->solver;
	const bool none = s->compensate == COMPENSATE_NONE, fp8 = s->compute.kind;
	const bool as_is = q->inputs_given && q->act_mode == INPUT_AS_IS;
	const bool scales = q->inputs_given ? q->act_mode == INPUT_STATIC_TENSOR : fp8 || q->act_format.kind;

	option_idle(7, (struct option_idle[]){
		{ none, "order static-groups group-view damp", "--compensate none" },
		{ s->group <= 0, "static-groups group-view", "one group per row" },
		{ s->static_groups, "group-view", "--static-groups" },
		{ s->compensate == COMPENSATE_STORAGE && !fp8, "compensate", "--compute none" },
		{ !fp8, "round-first scale8 top saturate", "--compute none" },
		{ !fp8 && !scales, "pow2-scale", "no FP8 scale and no static scale" },
		{ as_is, "act-format", "--act-mode none" },
	});
}

void quantize_inputs(struct quantize *q)
{
	const struct solver *s = &q->solver;

	rounded_format(&s->compute, "compute");
	if (!q->act_format.kind || (q->inputs_given && q->act_mode == INPUT_AS_IS))
		q->act_format = s->compute;
	else {
		setting_hint(&q->act_format, "act-format");
		rounded_format(&q->act_format, "act-format");
	}
	q->act_top = s->z_top;
	if (strcmp(q->act_format.name, s->compute.name))
		q->act_top = q->act_format.top;
	else
		q->act_pow2 = s->pow2_scale;
	if (q->inputs_given && q->act_mode != INPUT_AS_IS && !q->act_format.kind)
		misuse("--act-mode needs a format, from --act-format or --compute");
	if (!q->inputs_given)
		q->act_mode = q->act_format.kind ? INPUT_STATIC_TENSOR : INPUT_AS_IS;
	q->inputs_given |= q->act_format.kind != NULL;
}

static char *group_name(double group)
{
	return group > 0 ? xformat("%g", group) : xformat("%s", group < 0 ? "tensor" : "channel");
}

void quantize_check(const struct quantize *q)
{
	const struct solver *s = &q->solver;
	char *kind;
	double group;

	if (s->compensate != COMPENSATE_NONE && !q->hessian)
		misuse("--hessian FILE is needed (hessian-accum makes it), or --compensate none to round to nearest");
	if (q->act_mode == INPUT_STATIC_TENSOR && !q->hessian)
		misuse("static activation scales come from --hessian FILE; give it, or --act-mode dynamic-token or none");
	if (!q->order)
		return;
	kind = image_text(q->order, "/", "order");
	group = image_number(q->order, "/", "group", -2);
	if (kind && !strcmp(kind, "gar") && group < -1)
		die("%s: has no attribute group; group-aware orders were made for one", image_name(q->order));
	if (kind && !strcmp(kind, "gar") && group != (double)s->group)
		die("%s: was made with --group %s, this is --group %s: make the order again with the same", image_name(q->order),
			group_name(group), group_name((double)s->group));
	free(kind);
}

static const int32_t *layer_order(const struct quantize *q, const char *path, size_t n)
{
	char *at = xformat("%s/order", path);
	const int32_t *order = image_tensor(q->order, at, TENSOR_I32, 1, &n).data;

	free(at);
	return order;
}

static bool solves(const struct quantize *q)
{
	return q->solver.compensate != COMPENSATE_NONE;
}

/* Whether the result depends on the Hessians; otherwise they only serve the report. */
static bool needs_hessian(const struct quantize *q)
{
	return solves(q) || q->act_mode == INPUT_STATIC_TENSOR;
}

static void look_for(void *arg, const char *path, size_t in)
{
	const struct quantize *q = arg;

	if (needs_hessian(q))
		hessian_find(q->hessian, path, in);
	if (q->order)
		layer_order(q, path, in);
}

void quantize_check_layers(struct quantize *q, const struct filter *f)
{
	if (f->config && image_parts(f->image) > f->config->blocks)	/* not some blocks by themselves */
		layer_each(f->config, q->layers, look_for, q);
}

static float static_scale(const struct quantize *q, const char *path, size_t n)
{
	char *at = xformat("%s/absmax", path);
	const float *absmax = image_tensor(q->hessian, at, TENSOR_F32, 1, &n).data;
	float top = 0, scale;

	for (size_t i = 0; i < n; i++) {
		if (!(absmax[i] >= 0) || isinf(absmax[i]))
			die("%s: %s: element %zu is %g, a largest magnitude was wanted", image_name(q->hessian), at, i, (double)absmax[i]);
		top = absmax[i] > top ? absmax[i] : top;
	}
	free(at);
	scale = top / q->act_top;
	if (!(scale > 0))
		return 1;
	return q->act_pow2 ? (float)exp2(ceil(log2((double)scale))) : scale;
}

static _Noreturn void fail(const struct quantize *q, const struct image *image, const char *path, const struct solver_report *r)
{
	bool weight = r->status == SOLVER_BAD_WEIGHT;
	const struct image *file = weight ? image : r->status == SOLVER_BAD_ORDER ? q->order : q->hessian;

	die("%s: %s/%s: %s (at %zu)", image_name(file), path, weight ? "weight" : r->status == SOLVER_BAD_ORDER ? "order" : "hessian",
		solver_text(r->status), r->index);
}

/* A layer on its way: as it was read, and what the solver is given and gives. */
struct task {
	struct layer layer;
	struct solver_layer solver;
};

static void begin_layer(const struct quantize *q, struct task *t, const struct image *image, const char *path)
{
	const struct solver *s = &q->solver;

	t->layer = layer_read(image, path, 0, 0);
	const struct linear *l = &t->layer.linear;
	size_t m = l->out, n = l->in, scales = s->group < 0 ? 1 : m * linear_groups(n, s->group);

	if (!l->weight)
		die("%s: %s: is quantized already, a plain weight was wanted", image_name(image), path);
	t->solver = (struct solver_layer){ .weight = l, .order = q->order ? layer_order(q, path, n) : NULL };
	if (q->hessian && solves(q))
		t->solver.h = hessian_read(q->hessian, path, n);
	else if (q->hessian) {	/* rounding to nearest: only to report the error */
		char *at = xformat("%s/hessian", path);

		if (image_has(q->hessian, at))
			t->solver.h = hessian_read(q->hessian, path, n);
		free(at);
	}
	t->solver.codes = xalloc(m, n);
	t->solver.scale = xalloc(scales, sizeof *t->solver.scale);
	t->solver.zero = xalloc(scales, 1);
	t->solver.scale8 = xalloc(m, sizeof *t->solver.scale8);
	t->solver.group_index = xalloc(n, sizeof *t->solver.group_index);
}

static void end_layer(const struct quantize *q, struct output *out, const struct image *image, struct task *t)
{
	const struct solver *s = &q->solver;
	const struct solver_layer *y = &t->solver;
	struct linear *l = &t->layer.linear;
	float act_scale;

	l->weight = NULL;
	l->codes = y->codes;
	l->scale = y->scale;
	l->zero = s->storage.asymmetric ? y->zero : NULL;
	l->storage = s->storage;
	l->group = s->group;
	l->groups = linear_groups(l->in, s->group);
	l->group_index = y->report.moved ? y->group_index : NULL;
	if (s->compute.kind) {
		l->compute = s->compute;
		l->saturate = s->saturate;
		l->scale8 = y->scale8;
		l->scales8 = s->scale8_channel ? l->out : 1;
	}
	if (q->inputs_given) {
		l->input.mode = q->act_mode;
		l->input.format = q->act_format;
	}
	if (q->act_mode == INPUT_STATIC_TENSOR) {
		act_scale = static_scale(q, t->layer.path, l->in);
		l->input.scale = &act_scale;
		l->input.modalities = 1;
	}
	layer_write(out, image, t->layer.path, l);
	free(y->codes), free(y->scale), free(y->zero), free(y->scale8), free(y->group_index);
	layer_free(&t->layer);
}

static const char *const columns[] = { "error", "mse", "lambda", "dead", "seconds" };
static struct report table = { .column = columns, .columns = sizeof columns / sizeof *columns };

/* At most TOGETHER layers: those of a block overlap, and their results are in memory at once. */
static void quantize_some(struct quantize *q, struct output *out, const struct image *image, size_t n, char *const path[n])
{
	struct task task[TOGETHER];
	struct solver_layer layer[TOGETHER];
	void *work;

	for (size_t i = 0; i < n; i++) {
		begin_layer(q, &task[i], image, path[i]);
		layer[i] = task[i].solver;
	}
	work = xalloc(solver_work(&q->solver, n, layer), 1);
	solver_run(&q->solver, n, layer, work);
	free(work);
	for (size_t i = 0; i < n; i++) {
		const struct solver_report *r = &layer[i].report;

		if (r->status != SOLVER_DONE)
			fail(q, image, path[i], r);
		report_row(&table, path[i], (double[]){ r->error, r->mse, r->lambda, (double)r->dead, r->seconds });
		if (r->error > 0) {
			q->logs += log(r->error);
			q->reported++;
		}
		task[i].solver = layer[i];
		end_layer(q, out, image, &task[i]);
	}
	if (q->hessian)
		image_drop(q->hessian);
}

static void quantize_list(struct quantize *q, struct output *out, const struct image *image, const struct layer_list *list)
{
	for (size_t i = 0; i < list->n; i += TOGETHER) {
		progress(list->path[i], i, list->n);
		quantize_some(q, out, image, list->n - i < TOGETHER ? list->n - i : TOGETHER, list->path + i);
	}
	q->done += list->n;
}

void quantize_part(void *arg, const struct filter *f)
{
	struct quantize *q = arg;
	const struct image *image = f->image;
	struct output *out = f->out;
	struct layer_list list = layer_list(image, f->config, q->layers);

	if (list.n || !image_part(image)) {
		output_begin(out, image);
		if (!image_part(image) && q->hessian && needs_hessian(q))
			output_history(out, "hessian", q->hessian);
		if (!image_part(image) && q->order)
			output_history(out, "order", q->order);
		quantize_list(q, out, image, &list);
		output_rest(out, image, NULL);
		output_end(out);
	} else
		output_pass(out, image);
	layer_list_free(&list);
}

void quantize_end(struct quantize *q, const char *name)
{
	if (!q->done)
		die("%s: holds no linear layer%s", name, selection_text(q->layers));
	if (q->reported)
		report_row(&table, "geometric mean", (double[]){ exp(q->logs / (double)q->reported), NAN, NAN, NAN, NAN });
}
