/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize.c -- see quantize.h */
#include "transform/quantize.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "forward/cache.h"
#include "model/calibrated.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "model/shard_file.h"
#include "transform/layers.h"
#include "transform/qep.h"
#include "transform/quantize_private.h"
#include "transform/reorder.h"

static float static_scale(const struct method *m, size_t n, const float absmax[n])
{
	float max = 0, scale;

	for (size_t i = 0; i < n; i++)
		max = absmax[i] > max ? absmax[i] : max;
	scale = linear_scale_of(max, m->act_max);
	return m->act_pow2 ? (float)exp2(ceil(log2((double)scale))) : scale;
}

/* The order of an earlier layer with the same Hessian, so that they share the factor too, or a new one. */
static const int32_t *order_of(struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n])
{
	const size_t in = t->layer.linear.in;

	if (!quantize_takes_order(q, t->method))
		return NULL;
	if (q->source.order_name && linear_own_rotation(&t->rotation.in) && !q->warned_order) {
		warn("%s: %s: the order is of inputs before the rotation; --reorder gar orders the rotated "
			"ones", q->source.order_name, t->layer.path);
		q->warned_order = true;
	}
	if (q->source.order_name || q->reorder == ORDER_NONE)
		return t->inputs.order;
	for (size_t i = 0; i < n; i++)
		if (before[i]->inputs.hessian == t->inputs.hessian && before[i]->method == t->method)
			return before[i]->inputs.order;
	return t->order = reorder_columns(q->source.name, t->layer.path, in,
		(const float (*)[in])t->inputs.hessian, q->reorder, q->key, t->method->solver.group);
}

/* Warns of the first layer that is quantized by the processor, although there is a device. */
static void warn_off_device(struct quantize *q, const struct part *part, const struct quantized *t)
{
	const char *why = solver_off_device(&t->method->solver, t->layer.linear.in);

	if (!q->device || !t->method->quantizer->needs_hessian || !why || q->warned_device)
		return;
	warn("%s: %s: is quantized by the processor: no device has %s", part_name(part), t->layer.path, why);
	q->warned_device = true;
}

/* The layer of the reference, with the weight before quantization. */
static const struct linear *reference_of(const struct quantize *q, struct quantized *t,
	const struct part *part)
{
	const char *path = t->layer.path, *file = part_name(q->reference);
	const struct linear *l = &t->layer.linear, *y = &t->reference.linear;

	if (!layer_exists(q->reference, path))
		die("%s: %s: is missing; %s has it", file, path, part_name(part));
	t->reference = layer_read(q->reference, path, l->out, l->in);
	if (!y->weight)
		die("%s: %s: is quantized, expected the weights before quantization", file, path);
	if (y->branch_a)
		die("%s: %s: has a branch, expected the weight before fbq-run", file, path);
	if (!quantize_reference_fits(y, l))
		die("%s: %s: is rotated or split otherwise than in %s: expected the model that was "
			"quantized", file, path, part_name(part));
	return y;
}

/* Reads the layer into t. */
static void begin_layer(struct quantize *q, struct quantized *t, const struct part *part,
	const struct layer_ref *layer)
{
	const char *path = layer->path;
	const struct method *m = t->method = quantize_method(q, path);
	const struct quantizer *z = m->quantizer;
	struct linear *l = &t->layer.linear;

	t->ref = *layer;
	t->device = q->device;
	t->layer = layer_read(part, path, 0, 0);
	if (z->makes_branch && l->branch_a)
		die("%s: %s: has a branch already, expected a layer before fbq-run", part_name(part), path);
	if (z->check)
		z->check(m, part_name(part), path, l->out, l->in);
	quantize_check_plain(q, m, part, path, !l->weight);
	quantize_check_signs(q, m, part, layer);
	t->weight = q->reference ? reference_of(q, t, part) : l;
	t->main = l->weight ? NULL : l;
	t->inputs = q->source.find(q->source.arg, layer, l->in, method_needs_hessian(m));
	quantize_check_inputs(q, m, layer, &t->inputs);
	if (quantize_needs_cross(q, layer))
		qep_check_layer(part, path);
	else
		t->inputs.cross = NULL;		/* it is not read */
	t->own = layers_moments(&t->inputs, q->source.name, path, l);
}

/* Prepares the quantizer, after all layers of the run() have their weights. before: the n layers that precede
 * it. */
static void prepare_layer(struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n], const struct part *part)
{
	const struct method *m = t->method;

	if (!m->quantizer->needs_cross)
		t->inputs.cross = NULL;		/* QEP has read it */
	quantize_rotate(q, t, n, before, part);
	t->inputs.order = order_of(q, t, n, before);
	if (!t->main) {
		t->codes = solver_codes(&m->solver, t->layer.linear.out, t->layer.linear.in);
		layers_codes(&t->codes);
	}
	warn_off_device(q, part, t);
	m->quantizer->begin(t);
}

/* Sets the layer's rounding of inputs. */
static void set_inputs(struct quantize *q, const struct part *part, struct quantized *t)
{
	const struct method *m = t->method;
	struct linear *l = &t->layer.linear;

	if (m->inputs_given) {
		if (m->inputs_follow && linear_rounds(l) && !q->warned_inputs)
			warn("%s: %s: specifies a rounding of inputs, which --compute %s replaces; "
				"--act-mode or --act-format avoids this warning", part_name(part),
				t->layer.path, m->solver.compute.name);
		q->warned_inputs |= m->inputs_follow && linear_rounds(l);
		l->input.mode = m->act_mode;
		l->input.format = m->act_format;
		l->input.clip = m->act_clip;
	}
	if (m->act_mode == INPUT_STATIC_TENSOR) {
		t->act_scale = static_scale(m, l->in, t->inputs.absmax);
		l->input.scale = &t->act_scale;
		l->input.modalities = 1;
	}
}

static const struct report_table *table_of(const struct quantizer *z, const struct filter *f)
{
	return z->report[f->config && config_last(f->config)->experts];
}

static void end_layer(struct quantize *q, const struct filter *f, struct quantized *t)
{
	const struct quantizer *z = t->method->quantizer;
	double value[REPORT_COLUMNS];

	if (t->status != STATUS_DONE)
		layers_fail(t->status, t->index, t->layer.path, f->part, &q->source);
	z->view(t);
	if (t->rotation.weight) {
		t->layer.linear.rotation_in = t->rotation.in;
		t->layer.linear.rotation_out = t->rotation.out;
	}
	z->values(t, value);
	report_row(f->report, table_of(z, f), t->layer.path, value);
	if (z->check_result)
		z->check_result(t, &q->warned_result);
	set_inputs(q, f->part, t);
	layer_write(f->out, f->part, t->layer.path, &t->layer.linear);
}

void quantize_release(struct quantize *q)
{
	for (size_t i = 0; i < q->made; i++) {
		struct quantized *t = q->layer[i];

		t->method->quantizer->free(t);
		free(t->codes.memory), free(t->order), free(t->own);
		free(t->rotated), free(t->rotated_cross), free(t->corrected);
		layer_rotation_free(&t->rotation);
		layer_free(&t->layer), layer_free(&t->reference);
		free(t);
	}
	free(q->layer);
	q->layer = NULL;
	q->made = 0;
}

/* Runs the quantizer of the layers; layers with the same Hessian become neighbours and share its factor. */
static void run_layers(size_t n, struct quantized *const t[n])
{
	const struct quantizer *z = t[0]->method->quantizer;
	struct quantized *sorted[QUANTIZER_LAYERS];
	size_t placed = 0;
	bool done[QUANTIZER_LAYERS] = { false };
	void *workspace;

	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++)
			if (!done[j] && (j == i || (t[i]->inputs.hessian &&
				t[j]->inputs.hessian == t[i]->inputs.hessian))) {
				done[j] = true;
				sorted[placed++] = t[j];
			}
	workspace = xalloc(z->workspace(n, sorted), 1);
	z->run(n, sorted, workspace);
	free(workspace);
}

/* The layers of a part to be quantized, and the number that is done. */
struct queue { const struct filter *f; struct layer_ref *layer; size_t n, done; };

static void show_loss(void *arg, size_t step, double loss)
{
	const struct queue *w = arg;
	char *what = xformat("%s, step %zu, error %.3g", w->layer[w->done].path, step, loss);

	progress_part(what, part_index(w->f->part), part_count(w->f->part), w->done, w->n);
	free(what);
}

/* Number of the next layers for one run(). */
static size_t next_layers(const struct quantize *q, const struct queue *w)
{
	const struct quantizer *z = quantize_method(q, w->layer[w->done].path)->quantizer;
	size_t n = 1;

	while (n < z->max_layers && w->done + n < w->n &&
		quantize_method(q, w->layer[w->done + n].path)->quantizer->run == z->run)
		n++;
	return n;
}

/* Quantizes the next n layers. They run in parallel, so all their results are in memory. */
static void quantize_some(struct quantize *q, struct queue *w, size_t n)
{
	const struct filter *f = w->f;
	struct quantized **t;

	q->layer = xgrow(q->layer, q->made + n, sizeof *q->layer);
	t = q->layer + q->made;
	for (size_t i = 0; i < n; i++) {
		t[i] = xalloc(1, sizeof *t[i]);
		t[i]->on_loss = show_loss;
		t[i]->arg = w;
		begin_layer(q, t[i], f->part, &w->layer[w->done + i]);
	}
	quantize_correct(q, n, t, f->part);
	for (size_t i = 0; i < n; i++)
		prepare_layer(q, t[i], i, t, f->part);
	run_layers(n, t);
	for (size_t i = 0; i < n; i++)
		end_layer(q, f, t[i]);
	q->made += n;
	w->done += n;
	q->source.drop(q->source.arg);
	if (q->reference)
		part_drop(q->reference);
	if (!q->walk)
		quantize_release(q);
}

bool quantize_keeps(const struct quantize *q, const char *layer)
{
	return quantize_method(q, layer)->keep;
}

/* Whether the layer is skipped since it has no codes, which a method with a reference would keep. */
static bool lacks_main(struct quantize *q, const struct filter *f, const char *layer)
{
	if (!q->reference || layer_quantized(f->part, layer))
		return false;
	if (!q->warned_plain)
		warn("%s: %s: is not quantized, and is not changed", part_name(f->part), layer);
	return q->warned_plain = true;
}

void quantize_layers(struct quantize *q, const struct filter *f, size_t all,
	const struct layer_ref layer[all])
{
	struct queue w = { .f = f, .layer = xalloc(all, sizeof *w.layer) };

	for (size_t i = 0; i < all; i++) {
		const bool lacks = lacks_main(q, f, layer[i].path);

		q->done += !lacks;
		if (!lacks && !quantize_keeps(q, layer[i].path))
			w.layer[w.n++] = layer[i];
	}
	while (w.done < w.n) {
		progress_part(w.layer[w.done].path, part_index(f->part), part_count(f->part), w.done, w.n);
		quantize_some(q, &w, next_layers(q, &w));
	}
	free(w.layer);
}

/* Whether a method may read the Hessian. With a plan, layers that are not known yet may. */
static bool may_read_hessian(struct quantize *q, const struct filter *f)
{
	if (!q->plan->n)
		return method_reads_hessian(plan_method(q->plan, NULL));
	return q->reads_hessian || !layers_whole(f);
}

static void begin_part(struct quantize *q, const struct filter *f)
{
	const bool needed = may_read_hessian(q, f);
	const bool ordered = q->files.order && option_has_effect("order");

	output_begin(f->out, f->part);
	if (part_index(f->part))
		return;
	if (q->kv)
		cache_write(f->out, q->kv);
	calibrated_write(f->out, 3, (const struct part *[]){ f->part, needed ? q->files.hessian : NULL,
		ordered ? q->files.order : NULL }, needed ? q->calibration : NULL);
	if (q->files.hessian && needed)
		output_history(f->out, "hessian", q->files.hessian);
	if (q->tokens && needed)
		output_history(f->out, "tokens", q->tokens);
	if (f->shard.n > 1)
		shard_write(f->out, &f->shard, (const char *[SHARD_INPUTS]){
			[SHARD_MODEL] = input_name(f->in),
			[SHARD_HESSIAN] = q->files.hessian ? part_name(q->files.hessian) : NULL,
			[SHARD_ORDER] = q->files.order ? part_name(q->files.order) : NULL });
	if (ordered)
		output_history(f->out, "order", q->files.order);
	if (q->reference)
		output_history(f->out, "reference", q->reference);
}

/* Warns if the output layer shares the weight of an embedding that is quantized. */
static void warn_untied(struct quantize *q, const struct filter *f)
{
	const struct architecture *a = f->config->arch;
	char *head = xformat("%s/weight", a->head);
	char *same = part_has(f->part, head) ? part_tied(f->part, head) : NULL;

	if (same && !q->warned_tied && selection_names(q->layers, a->embedding) &&
	    !quantize_method(q, a->embedding)->keep) {
		warn("%s: %s is quantized; the output layer, which shares its weight, keeps it as it is",
			part_name(f->part), a->embedding);
		q->warned_tied = true;
	}
	free(head), free(same);
}

void quantize_part(void *arg, const struct filter *f)
{
	struct quantize *q = arg;
	struct layer_list list = layer_list(f->part, f->config, q->layers);
	const bool begun = list.n || !part_index(f->part);

	if (!f->config)	/* the layers are not known earlier */
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
	else
		warn_untied(q, f);
	if (begun)
		begin_part(q, f);
	if (q->walk)
		q->walk(q->arg, f, &list);
	else
		quantize_layers(q, f, list.n, list.layer);
	if (begun) {
		output_rest(f->out, f->part, NULL);
		output_end(f->out);
	} else
		output_pass(f->out, f->part);
	layer_list_free(&list);
}

void quantize_finished(void *arg, const struct filter *f)
{
	struct quantize *q = arg;
	struct layer_list list = layer_list(f->part, f->config, q->layers);
	const struct quantizer *z = quantizers;		/* any, for a part without rows */

	if (!f->config)
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
	for (size_t i = 0; i < list.n; i++) {
		const struct method *m = quantize_method(q, list.layer[i].path);

		z = m->keep ? z : m->quantizer;
	}
	filter_report(f, table_of(z, f));
	q->done += list.n;
	if (q->pass && !f->all_finished)
		q->pass(q->arg, f);
	layer_list_free(&list);
}

void quantize_end(struct quantize *q, const char *name)
{
	if (q->reference && !q->done)
		die("%s: holds no quantized layer, expected a result of dpq-run with --reference", name);
	if (!q->done)
		layers_none_selected(name, q->layers);
	plan_check(q->plan, name);
	plan_end(q->plan);
}
