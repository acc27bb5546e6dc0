/* SPDX-License-Identifier: GPL-3.0-or-later */
/* export.c -- see export.h */
#include "export/export.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "export/adapter.h"
#include "export/checkpoint_name.h"
#include "import/class_members.h"
#include "io/file.h"
#include "io/tree.h"
#include "model/dense.h"
#include "model/layer_list.h"
#include "model/layer_ref.h"
#include "model/shard_file.h"

enum { LAYERS = LINEARS };	/* max layers of one tensor of a checkpoint */

float *export_dense(const struct export_weight *w)
{
	float *y = xalloc(w->rows * w->columns, sizeof *y), *x;

	if (w->n == 1) {
		linear_dense(&w->layer->linear, (float (*)[w->columns])y);
		return y;
	}
	for (size_t i = 0; i < w->n; i++) {
		const struct row_slice *p = &w->slice[i];
		const size_t each = p->each * w->columns, group = p->rows / p->groups * w->columns;

		x = xalloc(p->groups, each * sizeof *x);
		linear_dense(&w->layer[i].linear, (float (*)[w->columns])x);
		for (size_t g = 0; g < p->groups; g++)
			memcpy(y + g * group + p->before * w->columns, x + g * each, each * sizeof *x);
		free(x);
	}
	return y;
}

size_t export_row(const struct export_weight *w, size_t row, size_t *of_layer)
{
	const size_t group = w->slice->rows / w->slice->groups, r = row % group;

	*of_layer = row;
	for (size_t i = 0; w->n > 1 && i < w->n; i++) {
		const struct row_slice *p = &w->slice[i];

		*of_layer = row / group * p->each + r - p->before;
		if (r >= p->before && r < p->before + p->each)
			return i;
	}
	return 0;
}

/* The biases of all layers, in the order of the weight's rows; NULL: no biases. free() it. */
static float *join_biases(const struct export_weight *w)
{
	float *y = w->layer->linear.bias ? xalloc(w->rows, sizeof *y) : NULL;

	for (size_t i = 0; y && i < w->n; i++) {
		const struct row_slice *p = &w->slice[i];

		for (size_t g = 0; g < p->groups; g++)
			memcpy(y + g * (p->rows / p->groups) + p->before,
				w->layer[i].linear.bias + g * p->each, p->each * sizeof *y);
	}
	return y;
}

/* --- checks against the class --- */

static void check_bias(const struct export *e, const struct part *part, const struct layer *l, bool wanted)
{
	if (l->linear.bias && !wanted)
		die("%s: %s/bias: a %s of this config.json has no such bias", part_name(part), l->path,
			config_class(e->config));
	if (!l->linear.bias && wanted)
		die("%s: %s/bias: is missing, a %s needs it", part_name(part), l->path,
			config_class(e->config));
}

/* The stack of a norm; NULL: the group is not a norm. */
static const struct stack *norm_stack(const struct config *c, const char *group)
{
	const char *rest;
	size_t block;
	const struct stack *s = config_block(c, group, &block, &rest);

	for (int i = 0; s && rest && i < NORM_POSITIONS; i++)
		if (s->arch->norm[i] && !strcmp(s->arch->norm[i], rest))
			return s;
	for (int i = 0; s && rest && i < 2; i++)
		if (s->arch->head_norm[i] && !strcmp(s->arch->head_norm[i], rest))
			return s;
	for (s = c->stack; s < c->stack + c->stacks; s++)
		if ((s->arch->embedding_norm && !strcmp(s->arch->embedding_norm, group)) ||
		    (stack_final_norm(s) && !strcmp(stack_final_norm(s), group)))
			return s;
	return NULL;
}

static void check_norm(const struct export *e, const struct part *part, const char *group)
{
	static const char *const kinds[] = { [NORM_RMS] = "rms", [NORM_LAYER] = "layer" };
	const struct stack *s = norm_stack(e->config, group);
	char *kind = part_text(part, group, "norm");
	const char *own = s ? kinds[s->arch->norm_kind] : NULL;

	if (s && kind && strcmp(kind, own))
		die("%s: %s: is a norm of kind %s, but checkpoints of a %s have only %s",
			part_name(part), group, kind, config_class(e->config), own);
	if (s && s->arch->norm_kind == NORM_RMS && layer_has(part, group, "bias"))
		die("%s: %s/bias: a %s has no such bias", part_name(part), group, config_class(e->config));
	free(kind);
}

/* --- tensors --- */

static void put_weight(struct export *e, const struct export_weight *w)
{
	float *bias = join_biases(w);

	e->target->weight(e, w);
	if (bias) {
		char *name = xformat("%s.bias", w->name);
		struct tensor t = tensor_1d(TENSOR_F32, bias, w->rows);

		e->target->tensor(e, name, &t);
		free(name);
	}
	free(bias);
}

/* Moves the branches from the layers to the adapter. */
static void take_branches(const struct export *e, const struct export_weight *w, struct layer layer[])
{
	adapter_add(e->adapter, e, w);
	for (size_t i = 0; i < w->n; i++) {
		layer[i].linear.rank = 0;
		layer[i].linear.branch_a = layer[i].linear.branch_b = NULL;
	}
}

/* Sets the shape in the checkpoint. */
static void set_shape(struct export_weight *w, const struct config *c, const struct layer_ref *ref)
{
	const struct vision *v = &c->vision;
	const size_t convolution[] = { w->rows, CHANNELS, v->frames, v->patch, v->patch };
	const size_t plain[] = { w->transposed ? w->columns : w->rows, w->transposed ? w->rows : w->columns };
	const bool frames = ref->row == ROW_PATCH && v->frames > 1;

	w->rank = ref->row == ROW_PATCH ? 4 + frames : 2;
	for (int i = 0; i < w->rank; i++)
		w->dim[i] = w->rank == 2 ? plain[i] : convolution[i + (i > 1 && !frames)];
}

/* The name of a layer in the checkpoint, without a member; free() it. */
static char *layer_name(const struct config *c, const char *group)
{
	char *path = xformat("%s/weight", group), *name = checkpoint_name(c, path);

	*strrchr(name, '.') = 0;
	free(path);
	return name;
}

/* Exports a layer. If several layers share a tensor of the checkpoint, the first one exports all of them. */
static void export_layer(struct export *e, const struct part *part, const struct layer_ref *ref)
{
	const struct config *c = e->config;
	const struct linear_row *own = layer_ref_row(ref), *rows = ref->stack->arch->linear;
	struct layer layer[LAYERS];
	struct row_slice slice[LAYERS];
	struct export_weight w = { .layer = layer, .slice = slice, .table = ref->row == ROW_EMBEDDING,
		.transposed = own && own->order == ROWS_TRANSPOSED };
	char *path, *name;

	for (const struct linear_row *row = own ? rows : NULL; row && row->name; row++) {
		if (row != own && (!own->fused || !row->fused || strcmp(row->fused, own->fused)))
			continue;
		if (row < own)
			return;		/* exported with that row */
		path = stack_expert_path(ref->stack, ref->block, row->name, ref->expert);
		slice[w.n] = stack_rows(ref->stack, row);
		layer[w.n] = layer_read(part, path, stack_out(ref->stack, row->role),
			stack_in(ref->stack, row->projection));
		check_bias(e, part, &layer[w.n++], ref->stack->bias[row->role]);
		free(path);
	}
	if (!own) {
		layer[0] = layer_read(part, ref->path, ref->row == ROW_PATCH ? 0 : c->vocab, 0);
		slice[0] = (struct row_slice){ 1, layer->linear.out, 0, layer->linear.out };
		check_bias(e, part, layer, ref->row == ROW_PATCH && ref->stack->arch->embedding_bias);
		w.n = 1;
	}
	w.rows = slice->rows;
	w.columns = layer->linear.in;
	set_shape(&w, c, ref);
	path = own && own->fused ? stack_expert_path(ref->stack, ref->block, own->fused, ref->expert) :
		xformat("%s", ref->path);
	w.name = name = layer_name(c, path);
	if (e->adapter)
		take_branches(e, &w, layer);
	put_weight(e, &w);
	for (size_t i = 0; i < w.n; i++)
		layer_free(&layer[i]);
	free(path);
	free(name);
}

/* Exports the datasets of a group that is not a linear layer of the class. */
static void export_others(struct export *e, const struct part *part, const char *group)
{
	size_t n;
	char **path = tree_children(part, group, &n);

	if (layer_quantized(part, group))
		die("%s: %s: is quantized, but is not a layer of a %s", part_name(part), group,
			config_class(e->config));
	check_norm(e, part, group);
	for (size_t i = 0; i < n; i++) {
		struct tensor t;
		char *name;

		if (tree_info(part, path[i]).type != H5O_TYPE_DATASET)
			continue;
		t = part_tensor(part, path[i], TENSOR_ANY, -1, NULL);
		name = checkpoint_name(e->config, path[i]);
		if (t.type == TENSOR_F32 || t.type == TENSOR_F16 || t.type == TENSOR_BF16)
			e->target->tensor(e, name, &t);
		else
			warn("%s: %s: is %s, and is not a tensor of a %s: it is left out", part_name(part),
				path[i], tensor_name(t.type), config_class(e->config));
		free(name);
	}
	tree_free_paths(path, n);
}

/* --- check that all members are present --- */

static void saw(struct export *e, const char *path)
{
	json_object_set_new(e->seen, path, json_true());
}

/* Notes the datasets of a group. Codes of a layer count as its weight. */
static void see(struct export *e, const struct part *part, const char *group)
{
	size_t n;
	char **path = tree_children(part, group, &n);

	for (size_t i = 0; i < n; i++)
		saw(e, path[i]);
	tree_free_paths(path, n);
	if (layer_quantized(part, group)) {
		char *weight = xformat("%s/weight", group);

		saw(e, weight);
		free(weight);
	}
}

static void count_member(void *arg, const struct class_member *m)
{
	((struct export *)arg)->members += m->wanted;
}

static void check_member(void *arg, const struct class_member *m)
{
	const struct export *e = arg;
	char *path = xformat("%s/%s", m->group, m->member);

	if (m->wanted && !(e->tied && !strcmp(m->group, e->config->arch->head)) &&
	    !json_object_get(e->seen, path))
		die("%s: %s: is missing, a %s needs it", e->from, path, config_class(e->config));
	free(path);
}

size_t export_header_room(const struct export *e)
{
	enum { ROOM = 1024 };

	return e->members * ROOM;
}

struct walk { struct export *e; const struct part *part; };

static void visit(void *arg, const char *group)
{
	const struct walk *w = arg;
	struct export *e = w->e;
	struct layer_ref ref;

	if (!strcmp(group, "/") || layer_is_branch(w->part, group))
		return;
	see(e, w->part, group);
	if (!layer_ref_find(e->config, group, &ref))
		export_others(e, w->part, group);
	else if (ref.row != ROW_HEAD || !e->tied)
		export_layer(e, w->part, &ref);
}

static void begin(struct export *e, const struct part *part)
{
	char *keys = part_text(part, "/", "kv_format");

	shard_refuse(part);
	if (keys && !e->options.weights_only)
		die("%s: /: rounds keys and values to %s, which --to %s does not write; --weights-only "
			"leaves their rounding out", part_name(part), keys, e->target->name);
	if (keys)
		warn("%s: /: keys and values are not rounded to %s in %s", part_name(part), keys, e->to);
	for (int i = 0; i < TEXTS; i++)
		e->text[i] = part_has(part, text_rows[i].path) ? part_string(part, text_rows[i].path) : NULL;
	free(keys);
	if (e->options.adapter)
		e->adapter = adapter_open(e, e->options.adapter);
	e->target->begin(e);
}

static void export_part(void *arg, const struct filter *f)
{
	struct export *e = arg;
	struct walk w = { e, f->part };
	const char *embedding = e->config->arch->embedding;
	char *head = xformat("%s/weight", e->config->arch->head), *same;

	progress("export", part_index(f->part), part_count(f->part));
	layer_blocks_check(f->part, e->config);
	if (!part_index(f->part))
		begin(e, f->part);
	same = e->config->tied && part_has(f->part, head) ? part_tied(f->part, head) : NULL;
	e->tied |= same && !strncmp(same, embedding, strlen(embedding));
	part_groups(f->part, visit, &w);
	free(head);
	free(same);
}

void export_model(struct filter *f, const struct target *target, const char *to,
	const struct export_options *options)
{
	struct export e = { .target = target, .options = *options, .to = to, .from = input_name(f->in) };

	filter_config(f);
	if (!f->config)
		die("%s: /config: is missing; it specifies the class of the model", e.from);
	e.config = f->config;
	e.seen = json_object();
	class_members(e.config, count_member, &e);
	model_filter(f, export_part, &e);
	class_members(e.config, check_member, &e);
	if (e.adapter)
		adapter_finish(e.adapter, &e);
	target->end(&e);
	if (e.adapter)
		adapter_close(e.adapter);
	json_decref(e.seen);
	for (int i = 0; i < TEXTS; i++)
		free(e.text[i]);
}
