/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize_check.c -- methods of layers against files, before the first layer is quantized; see quantize.h */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/report.h"
#include "model/layer.h"
#include "model/shard_file.h"
#include "transform/layers.h"
#include "transform/qep.h"
#include "transform/quantize_private.h"

static char *group_name(double group)
{
	return group > 0 ? xformat("%g", group) : xformat("%s", group < 0 ? "tensor" : "channel");
}

static bool is_group_aware(const struct part *order)
{
	char *kind = part_text(order, "/", "order");
	const bool y = kind && !strcmp(kind, "gar");

	free(kind);
	return y;
}

bool quantize_takes_order(const struct quantize *q, const struct method *m)
{
	return m->quantizer->takes_order &&
		(m->quantizer->needs_hessian || (q->files.order && !is_group_aware(q->files.order)));
}

/* A group-aware order fits only the group that it was made for. layer NULL: the method of the options, for
 * all. */
static void check_order(const struct quantize *q, const struct method *m, const char *layer)
{
	const struct part *order = q->files.order;
	const bool gar = is_group_aware(order);
	const double group = part_number(order, "/", "group", -2);

	if (gar && group < -1)
		die("%s: has no attribute group, expected one in a group-aware order", part_name(order));
	if (gar && group != (double)m->solver.group)
		die("%s: was made with --group %s, %s has --group %s: make the order with the same group",
			part_name(order), group_name(group), layer ? layer : "this",
			group_name((double)m->solver.group));
}

/* The end of a message: ": LAYER", or nothing. */
static const char *of_layer(const char *layer)
{
	return layer ? xformat(": %s", layer) : "";
}

static void check_method(const struct quantize *q, const struct method *m, const char *layer)
{
	if ((m->quantizer->needs_cross || m->qep > 0) && !q->source.name)
		misuse("--%s needs --hessian FILE with cross moments (hessian-accum --pair makes it), or "
			"--sequential --tokens FILE%s", m->qep > 0 ? "qep" : "solver qronos",
			of_layer(layer));
	if (m->quantizer->needs_hessian && !q->source.name)
		misuse("--hessian FILE is needed (hessian-accum makes it), or --sequential --tokens FILE, or "
			"--compensate none to round to nearest%s", of_layer(layer));
	if (search_reads_hessian(m->solver.search) && !q->source.name)
		misuse("--scale-search %s needs --hessian FILE (hessian-accum makes it) or --sequential, "
			"or use --scale-search mse%s", searches[m->solver.search], of_layer(layer));
	if (m->act_mode == INPUT_STATIC_TENSOR && !q->source.name)
		misuse("static activation scales need --hessian FILE or --sequential, or use "
			"--act-mode dynamic-token or none%s", of_layer(layer));
	if (quantize_takes_order(q, m) && q->files.order)
		check_order(q, m, layer);
}

void quantize_check(struct quantize *q)
{
	if (!q->plan->n)
		check_method(q, plan_method(q->plan, NULL), NULL);
}

const struct method *quantize_method(const struct quantize *q, const char *layer)
{
	const struct method *m = plan_method(q->plan, layer);

	if (!m->keep && q->plan->n)
		check_method(q, m, layer);
	return m;
}

void quantize_check_inputs(const struct quantize *q, const struct method *m, const struct layer_ref *layer,
	const struct second_moments *inputs)
{
	if (quantize_takes_order(q, m) && q->source.order_name && !inputs->order)
		die("%s: %s/order: is missing", q->source.order_name, layer->path);
	if (inputs->hessian && !inputs->cross && quantize_needs_cross(q, layer))
		die("%s: %s/cross: is missing, expected hessian-accum --pair", q->source.name, layer->path);
	if (m->act_mode == INPUT_STATIC_TENSOR && inputs->hessian && !inputs->absmax)
		die("%s: %s/absmax: is missing", q->source.name, layer->path);
}

void quantize_check_plain(const struct quantize *q, const struct method *m, const struct part *part,
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
	const struct method *m = quantize_method(q, path);
	struct second_moments inputs;
	size_t out = 0;

	if (m->keep)
		return;
	q->reads_hessian |= method_reads_hessian(m);
	if (m->quantizer->makes_branch)
		out = outputs_of(w->f, layer, &in);
	inputs = q->source.peek(q->source.arg, layer, in, method_needs_hessian(m));
	quantize_check_inputs(q, m, layer, &inputs);
	if (q->files.hessian && !inputs.hessian && layer->stack && !q->warned_moments) {
		warn("%s: has no Hessian of %s: %s", q->source.name, path, m->quantizer->reads_hessian ?
			"it is quantized without one" :
			"its errors are those of the weights, not of the outputs");
		q->warned_moments = true;
	}
	if (w->f->shard.n < 2) {	/* otherwise the layer may belong to another shard */
		quantize_check_plain(q, m, w->f->part, path, layer_quantized(w->f->part, path));
		if (layer_exists(w->f->part, path)) {	/* not a later part of a stream */
			quantize_check_signs(q, m, w->f->part, layer);
			if (quantize_needs_cross(q, layer))
				qep_check_layer(w->f->part, path);
		}
	}
	if (m->quantizer->check)
		m->quantizer->check(m, part_name(w->f->part), path, out, in);
}

void quantize_check_layers(struct quantize *q, const struct filter *f)
{
	shard_check(&f->shard, input_name(f->in), f->config);
	q->done += f->shard.n > 1;	/* a shard may have no selected layer */
	if (f->config || layers_whole(f)) {
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
		if (!layers_each(f, q->layers, plan_note, q->plan))
			layers_none_selected(input_name(f->in), q->layers);
		selection_warn(q->layers, "layers", input_name(f->in));
		plan_check(q->plan, input_name(f->in));
		quantize_check_skip(q, f);
	}
	if (layers_whole(f))
		layers_each(f, q->layers, check_selected, &(struct visit){ q, f });
	if (f->config && layers_whole(f))
		quantize_check_rotations(q, f);
	if (q->plan->n)
		plan_warn(q->plan, layers_whole(f));
}
