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
#include "transform/reorder.h"

static char *group_name(double group)
{
	return group > 0 ? xformat("%g", group) : xformat("%s", group < 0 ? "tensor" : "channel");
}

/* A group-aware order fits only the group that it was made for. layer NULL: the method of the options, for
 * all. */
static void check_order(const struct quantize *q, const struct method *m, const char *layer)
{
	const struct part *order = q->files.order;
	char *kind = part_text(order, "/", "order");
	const bool gar = kind && !strcmp(kind, "gar");
	const double group = part_number(order, "/", "group", -2);

	free(kind);
	if (gar && group < -1)
		die("%s: has no attribute group, expected one in a group-aware order", part_name(order));
	if (gar && group != (double)m->solver.group)
		die("%s: was made with --group %s, %s has --group %s: make the order with the same group",
			part_name(order), group_name(group), layer ? layer : "this",
			group_name((double)m->solver.group));
}

static void check_method(const struct quantize *q, const struct method *m, const char *layer)
{
	if (m->quantizer->needs_hessian && !q->source.name)
		misuse("--hessian FILE is needed (hessian-accum makes it), or --sequential --tokens FILE, or "
			"--compensate none to round to nearest%s%s", layer ? ": " : "", layer ? layer : "");
	if (m->quantizer->needs_cross && !q->files.hessian)
		misuse("--solver %s needs --hessian FILE with cross moments (hessian-accum --pair makes it)"
			"%s%s", m->quantizer->name, layer ? ": " : "", layer ? layer : "");
	if (m->solver.search > SEARCH_MSE && !q->source.name)
		misuse("--scale-search %s needs --hessian FILE (hessian-accum makes it) or --sequential, "
			"or use --scale-search mse%s%s", searches[m->solver.search],
			layer ? ": " : "", layer ? layer : "");
	if (m->act_mode == INPUT_STATIC_TENSOR && !q->source.name)
		misuse("static activation scales need --hessian FILE or --sequential, or use "
			"--act-mode dynamic-token or none%s%s", layer ? ": " : "", layer ? layer : "");
	if (m->quantizer->takes_order && q->files.order)
		check_order(q, m, layer);
}

void quantize_check(struct quantize *q)
{
	if (!q->plan->n)
		check_method(q, plan_method(q->plan, NULL), NULL);
}

/* The layer's method, checked against the files. */
static const struct method *method_of(const struct quantize *q, const char *layer)
{
	const struct method *m = plan_method(q->plan, layer);

	if (!m->keep && q->plan->n)
		check_method(q, m, layer);
	return m;
}

/* Fatal error if statistics of a layer's inputs that the method needs are missing. */
static void check_inputs(const struct quantize *q, const struct method *m, const char *layer,
	const struct second_moments *inputs)
{
	if (m->quantizer->takes_order && q->source.order_name && !inputs->order)
		die("%s: %s/order: is missing", q->source.order_name, layer);
	if (m->quantizer->needs_cross && inputs->hessian && !inputs->cross)
		die("%s: %s/cross: is missing, expected hessian-accum --pair", q->source.name, layer);
	if (m->act_mode == INPUT_STATIC_TENSOR && inputs->hessian && !inputs->absmax)
		die("%s: %s/absmax: is missing", q->source.name, layer);
}

static void check_plain(const struct quantize *q, const struct method *m, const struct part *part,
	const char *layer, bool quantized)
{
	if (q->reference || !quantized)
		return;
	if (m->quantizer->makes_branch)
		die("%s: %s: is quantized already, expected --reference MODEL with the original weights, and "
			"--method %s", part_name(part), layer, quantizer_keepers());
	die("%s: %s: is quantized already, expected a plain weight", part_name(part), layer);
}

/* Argument of a visit() of layers_each(). */
struct visit { struct quantize *q; const struct filter *f; };

/* Number of outputs of a layer whose part may not have been read. Without a configuration the layer is read,
 * and *n set to its inputs. A layer outside of blocks is a fatal error: its branch would never run. */
static size_t outputs_of(const struct filter *f, const struct layer_ref *ref, size_t *n)
{
	const struct linear_row *row = layer_ref_row(ref);
	struct layer layer;
	size_t y;

	if (row)
		return stack_out(ref->stack, row->role);
	if (ref->stack)
		die("%s: %s: is not a layer of a block, expected one: others run no branch",
			part_name(f->part), ref->path);
	layer = layer_read(f->part, ref->path, 0, 0);
	*n = layer.linear.in;
	y = layer.linear.out;
	layer_free(&layer);
	return y;
}

static void check_selected(void *arg, const struct layer_ref *layer, size_t in)
{
	const struct visit *w = arg;
	const char *path = layer->path;
	struct quantize *q = w->q;
	const struct method *m = method_of(q, path);
	struct second_moments inputs;
	size_t out = 0;

	if (m->keep)
		return;
	q->reads_hessian |= method_reads_hessian(m);
	if (m->quantizer->makes_branch)
		out = outputs_of(w->f, layer, &in);
	inputs = q->source.peek(q->source.arg, layer, in, method_needs_hessian(m));
	check_inputs(q, m, path, &inputs);
	if (w->f->shard.n < 2)	/* otherwise the layer may belong to another shard */
		check_plain(q, m, w->f->part, path, layer_quantized(w->f->part, path));
	if (m->quantizer->check)
		m->quantizer->check(m, part_name(w->f->part), path, out, in);
}

/* Whether the layer is known to be outside of blocks, where layers have no rotation. */
static bool is_outside(const struct layer_ref *layer)
{
	return layer->stack && !layer_ref_row(layer);
}

/* Whether a layer of the model is rotated. */
static bool is_rotated(const struct quantize *q, const struct layer_ref *layer)
{
	const struct method *m;

	if (!selection_has(q->layers, layer->path) || is_outside(layer))
		return false;
	m = plan_method(q->plan, layer->path);
	return !m->keep && m->rotates;
}

/* The layers that are known of each input: whether they are rotated. */
struct inputs {
	const struct quantize *q;
	const struct filter *f;
	struct layer_ref *first;	/* [inputs of the model] the first layer that reads it */
	char **path;			/* of that layer; NULL: none yet */
};

/* The input of a layer is rotated once for all layers that read it. */
static void check_same_input(void *arg, const struct layer_ref *layer, size_t in)
{
	const struct inputs *w = arg;
	const size_t i = layer_ref_input(w->f->config, layer);
	struct layer_ref *first;

	(void)in;
	if (i == SIZE_MAX)
		return;
	first = &w->first[i];
	if (!w->path[i]) {
		*first = *layer;
		first->path = w->path[i] = xformat("%s", layer->path);
	} else if (is_rotated(w->q, first) != is_rotated(w->q, layer)) {
		const bool rotated = is_rotated(w->q, layer);

		die("%s: %s: is %s, but %s, which has the same input, is %s: expected the same "
			"--layer-rotation for both", part_name(w->f->part), layer->path,
			rotated ? "rotated" : "not rotated", first->path, rotated ? "not" : "rotated");
	}
}

static void check_inputs_agree(const struct quantize *q, const struct filter *f)
{
	const size_t n = config_inputs(f->config);
	struct inputs w = { q, f, xalloc(n, sizeof *w.first), xalloc(n, sizeof *w.path) };

	layers_each(f, &(struct selection){ 0 }, check_same_input, &w);
	for (size_t i = 0; i < n; i++)
		free(w.path[i]);
	free(w.first), free(w.path);
}

void quantize_check_layers(struct quantize *q, const struct filter *f)
{
	shard_check(&f->shard, input_name(f->in), f->config);
	q->done += f->shard.n > 1;	/* a shard may have no selected layer */
	if (f->config || layers_whole(f)) {
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
		if (!layers_each(f, q->layers, plan_note, q->plan))
			layers_none_selected(input_name(f->in), q->layers);
		plan_check(q->plan, input_name(f->in));
	}
	if (layers_whole(f))
		layers_each(f, q->layers, check_selected, &(struct visit){ q, f });
	if (f->config && layers_whole(f))
		check_inputs_agree(q, f);
	if (q->plan->n)
		plan_warn(q->plan, layers_whole(f));
}

static float static_scale(const struct method *m, size_t n, const float absmax[n])
{
	float max = 0, scale;

	for (size_t i = 0; i < n; i++)
		max = absmax[i] > max ? absmax[i] : max;
	scale = linear_scale_of(max, m->act_max);
	return m->act_pow2 ? (float)exp2(ceil(log2((double)scale))) : scale;
}

/* The order of an earlier layer with the same Hessian, so that they share the factor too, or a new one. */
static const int32_t *order_of(const struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n])
{
	const size_t in = t->layer.linear.in;

	if (!t->method->quantizer->takes_order)
		return NULL;
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
	if (!linear_rotations_agree(l->in, &y->rotation_in, &l->rotation_in) ||
		!linear_rotations_agree(l->out, &y->rotation_out, &l->rotation_out) ||
		!linear_splits_agree(y, l))
		die("%s: %s: differs from that of %s in online Hadamard, signs, rotation of outputs or split "
			"columns", file, path, part_name(part));
	return y;
}

/* Rotates the weight and the Hessian of a layer. Layers with one Hessian share the rotated one. */
static void rotate_layer(const struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n], const struct part *part)
{
	const struct linear *l = &t->layer.linear;
	const char *path = t->layer.path;

	if (l->rotation_in.hadamard || linear_two_sided(l))
		die("%s: %s: is rotated already, expected a layer without rotations, or "
			"--layer-rotation none", part_name(part), path);
	if (l->splits)
		die("%s: %s: has split columns, expected a layer without, or --layer-rotation none",
			part_name(part), path);
	if (l->input.scale && !t->method->inputs_given)
		die("%s: %s: rounds inputs with a static scale, which is that of inputs before a rotation; "
			"expected --act-mode dynamic-token or none", part_name(part), path);
	layer_rotation_make(&t->rotation, l->out, l->in, q->seed);
	layer_rotation_weight(&t->rotation, t->weight);
	t->weight = &t->rotation.linear;
	t->plain_hessian = t->inputs.hessian;
	if (!t->inputs.hessian)
		return;
	for (size_t i = 0; i < n; i++)
		if (before[i]->plain_hessian == t->plain_hessian) {
			t->inputs.hessian = before[i]->inputs.hessian;
			return;
		}
	t->inputs.hessian = t->rotated = layer_rotation_hessian(&t->rotation, l->in, t->plain_hessian);
}

/* Reads the layer into t. before: the n layers that precede it in the same run(). */
static void begin_layer(struct quantize *q, struct quantized *t, size_t n, struct quantized *const before[n],
	const struct part *part, const struct layer_ref *layer)
{
	const char *path = layer->path;
	const struct method *m = t->method = method_of(q, path);
	const struct quantizer *z = m->quantizer;
	struct linear *l = &t->layer.linear;

	t->ref = *layer;
	t->device = q->device;
	t->layer = layer_read(part, path, 0, 0);
	if (z->makes_branch && l->branch_a)
		die("%s: %s: has a branch already, expected a layer before fbq-run", part_name(part), path);
	if (z->check)
		z->check(m, part_name(part), path, l->out, l->in);
	check_plain(q, m, part, path, !l->weight);
	t->weight = q->reference ? reference_of(q, t, part) : l;
	t->main = l->weight ? NULL : l;
	t->inputs = q->source.find(q->source.arg, layer, l->in, method_needs_hessian(m));
	check_inputs(q, m, path, &t->inputs);
	if (!z->needs_cross)
		t->inputs.cross = NULL;		/* it is not read */
	t->own = layers_moments(&t->inputs, q->source.name, path, l);
	if (m->rotates && !is_outside(layer))
		rotate_layer(q, t, n, before, part);
	t->inputs.order = order_of(q, t, n, before);
	if (!t->main) {
		t->codes = solver_codes(&m->solver, l->out, l->in);
		layers_codes(&t->codes);
	}
	warn_off_device(q, part, t);
	z->begin(t);
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
		free(t->codes.memory), free(t->order), free(t->own), free(t->rotated);
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
	const struct quantizer *z = method_of(q, w->layer[w->done].path)->quantizer;
	size_t n = 1;

	while (n < z->max_layers && w->done + n < w->n &&
		method_of(q, w->layer[w->done + n].path)->quantizer->run == z->run)
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
		begin_layer(q, t[i], i, t, f->part, &w->layer[w->done + i]);
	}
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
	return method_of(q, layer)->keep;
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

void quantize_part(void *arg, const struct filter *f)
{
	struct quantize *q = arg;
	struct layer_list list = layer_list(f->part, f->config, q->layers);
	const bool begun = list.n || !part_index(f->part);

	if (!f->config)	/* the layers are not known earlier */
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
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
		const struct method *m = method_of(q, list.layer[i].path);

		z = m->keep ? z : m->quantizer;
	}
	filter_report(f, table_of(z, f));
	q->done += list.n;
	if (q->pass && !f->all_finished)
		q->pass(q->arg, f->result);
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
