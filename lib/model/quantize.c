/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize.c -- see quantize.h */
#include "model/quantize.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "base/table.h"
#include "model/layer.h"

void quantize_format(struct format *f, const char *option, const char *name)
{
	if (!format_parse(f, name))
		misuse("--%s: there is no format '%s'; known are %s", option, name, format_list());
}

long quantize_group(const char *text)
{
	char *end;
	long g = strtol(text, &end, 10);

	if (!strcmp(text, "channel"))
		return 0;
	if (!strcmp(text, "tensor"))
		return -1;
	if (end == text || *end || g <= 0)
		misuse("--group: '%s' is neither a number of columns nor 'channel' nor 'tensor'", text);
	return g;
}

void quantize_check(const struct quantize *q)
{
	const struct solver *s = &q->solver;
	bool solves = s->compensate != COMPENSATE_NONE;
	char *kind;
	double group;

	if (solves && !q->hessian)
		misuse("--hessian FILE is needed (hessian-accum makes it), or --compensate none to round to nearest");
	if (q->order && !solves)
		misuse("--order has no meaning with --compensate none");
	if (q->act_mode == ACT_STATIC_TENSOR && !q->hessian)
		misuse("static activation scales come from --hessian FILE; give it, or --act-mode dynamic-token or none");
	if (!q->order)
		return;
	kind = image_text(q->order, "/", "order");
	group = image_number(q->order, "/", "group", -2);
	if (kind && !strcmp(kind, "gar") && group != (double)s->group)
		die("%s: was made for groups of %g columns, --group says %ld: make the order again with the same --group",
			image_name(q->order), group, s->group);
	free(kind);
}

static const float *layer_hessian(const struct quantize *q, const char *path, size_t n)
{
	char *at = xformat("%s/hessian", path), *count = xformat("%s/count", path);
	struct tensor h;

	if (!image_find(q->hessian, at, TENSOR_F32, 2, (size_t[]){ n, n }, &h))
		die("%s: %s: is missing; the layer was not calibrated, or this is the Hessian of another model",
			image_name(q->hessian), at);
	if (*(const int64_t *)image_tensor(q->hessian, count, TENSOR_I64, 0, NULL).data <= 0)
		die("%s: %s: says that no token was seen", image_name(q->hessian), count);
	free(at), free(count);
	return h.data;
}

static const int32_t *layer_order(const struct quantize *q, const char *path, size_t n)
{
	char *at = xformat("%s/order", path);
	const int32_t *order = image_tensor(q->order, at, TENSOR_I32, 1, &n).data;

	free(at);
	return order;
}

static float static_scale(const struct quantize *q, const char *path, size_t n)
{
	const struct solver *s = &q->solver;
	char *at = xformat("%s/absmax", path);
	const float *absmax = image_tensor(q->hessian, at, TENSOR_F32, 1, &n).data;
	float top = 0, scale;

	for (size_t i = 0; i < n; i++) {
		if (!(absmax[i] >= 0) || isinf(absmax[i]))
			die("%s: %s: element %zu is %g, a largest magnitude was wanted", image_name(q->hessian), at, i, (double)absmax[i]);
		top = absmax[i] > top ? absmax[i] : top;
	}
	free(at);
	scale = top / (s->z_top > 0 ? s->z_top : s->compute.top);
	if (!(scale > 0))
		return 1;
	return s->pow2_scale ? (float)exp2(ceil(log2((double)scale))) : scale;
}

static _Noreturn void fail(const struct quantize *q, const struct image *image, const char *path, enum solver_status status,
	const struct solver_report *r)
{
	bool weight = status == SOLVER_BAD_WEIGHT;
	const struct image *file = weight ? image : status == SOLVER_BAD_ORDER ? q->order : q->hessian;

	die("%s: %s/%s: %s (at %zu)", image_name(file), path, weight ? "weight" : status == SOLVER_BAD_ORDER ? "order" : "hessian",
		solver_text(status), r->index);
}

static struct solver_report quantize_layer(const struct quantize *q, struct output *out, const struct image *image, const char *path)
{
	const struct solver *s = &q->solver;
	struct layer layer = layer_read(image, path, 0, 0);
	struct linear *l = &layer.linear;
	size_t m = l->out, n = l->in, groups = linear_groups(n, s->group), scales = s->group < 0 ? 1 : m * groups;
	const float *hessian = q->hessian && s->compensate != COMPENSATE_NONE ? layer_hessian(q, path, n) : NULL;
	const int32_t *order = q->order ? layer_order(q, path, n) : NULL;
	bool compute = s->compute.kind != NULL;
	struct solver_report report;
	enum solver_status status;
	float act_scale;

	if (!l->weight)
		die("%s: %s: is quantized already, a plain weight was wanted", image_name(image), path);
	if (q->hessian && !hessian) {	/* rounding to nearest: only to report the error */
		char *at = xformat("%s/hessian", path);

		if (image_has(q->hessian, at))
			hessian = layer_hessian(q, path, n);
		free(at);
	}

	float *w = xalloc(m * n, sizeof *w), *scale = xalloc(scales, sizeof *scale), *scale8 = xalloc(m, sizeof *scale8);
	uint8_t *codes = xalloc(m, n), *zero = xalloc(scales, 1);
	int32_t *group_index = xalloc(n, sizeof *group_index);
	void *work = xalloc(solver_work(s, m, n), 1);

	linear_weight(l, 0, m, (float (*)[n])w);
	status = solver_run(s, m, n, (uint8_t (*)[n])codes, scale, zero, scale8, group_index, &report,
		(const float (*)[n])w, (const float (*)[n])hessian, order, work);
	if (status != SOLVER_DONE)
		fail(q, image, path, status, &report);

	l->weight = NULL;
	l->codes = codes;
	l->scale = scale;
	l->zero = s->storage.asymmetric ? zero : NULL;
	l->storage = s->storage;
	l->group = s->group;
	l->groups = groups;
	l->group_index = report.moved ? group_index : NULL;
	if (compute) {
		l->compute = s->compute;
		l->saturate = s->saturate;
		l->scale8 = scale8;
		l->scales8 = s->scale8_channel ? m : 1;
		l->act_mode = q->act_mode;
		l->act_format = s->compute;
		if (q->act_mode == ACT_STATIC_TENSOR) {
			act_scale = static_scale(q, path, n);
			l->act_scale = &act_scale;
			l->modalities = 1;
		}
	}
	layer_write(out, image, path, l);
	free(w), free(scale), free(scale8), free(codes), free(zero), free(group_index), free(work);
	layer_free(&layer);
	return report;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *const columns[] = { "error", "mse", "lambda", "dead", "seconds" };
static struct report table = { .column = columns, .columns = sizeof columns / sizeof *columns };

static void quantize_list(struct quantize *q, struct output *out, const struct image *image, const struct layer_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		double start = now();
		struct solver_report r;

		progress(list->path[i], i, list->n);
		r = quantize_layer(q, out, image, list->path[i]);
		if (q->hessian)
			image_drop(q->hessian);
		report_row(&table, list->path[i], (double[]){ r.error, r.mse, r.lambda, (double)r.dead, now() - start });
		if (r.error > 0) {
			q->logs += log(r.error);
			q->reported++;
		}
	}
	q->done += list->n;
}

void quantize_part(struct quantize *q, struct output *out, const struct image *image, const struct config *config)
{
	struct layer_list list = layer_list(image, config);

	if (list.n || !image_part(image)) {
		output_begin(out, image);
		if (!image_part(image) && q->hessian)
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
		die("%s: holds no linear layer%s", name, option_layers_given() ? " that --layers selects" : "");
	if (q->reported)
		report_row(&table, "geometric mean", (double[]){ exp(q->logs / (double)q->reported), NAN, NAN, NAN, NAN });
}
