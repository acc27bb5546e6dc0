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

enum { LAYERS_AT_ONCE = 9 };	/* those of a block, or of three experts, which have three each */

static char *group_name(double group)
{
	return group > 0 ? xformat("%g", group) : xformat("%s", group < 0 ? "tensor" : "channel");
}

/* A group-aware order fits only the groups that it was made for. layer NULL: the options say how all are
 * quantized. */
static void check_order(const struct quantize *q, const struct method *m, const char *layer)
{
	const struct part *order = q->files.order;
	char *kind = part_text(order, "/", "order");
	const bool gar = kind && !strcmp(kind, "gar");
	const double group = part_number(order, "/", "group", -2);

	free(kind);
	if (gar && group < -1)
		die("%s: has no attribute group; group-aware orders were made for one", part_name(order));
	if (gar && group != (double)m->solver.group)
		die("%s: was made with --group %s, %s is --group %s: make the order again with the same",
			part_name(order), group_name(group), layer ? layer : "this",
			group_name((double)m->solver.group));
}

static bool solves(const struct method *m)
{
	return m->solver.compensate != COMPENSATE_NONE;
}

static void check_method(const struct quantize *q, const struct method *m, const char *layer)
{
	if (solves(m) && !q->source.name)
		misuse("--hessian FILE is needed (hessian-accum makes it), or --sequential --tokens FILE, or "
			"--compensate none to round to nearest%s%s", layer ? ": " : "", layer ? layer : "");
	if (m->solver.search > SEARCH_MSE && !q->source.name)
		misuse("--scale-search %s weighs errors by --hessian FILE (hessian-accum makes it) "
			"or --sequential; give one, or --scale-search mse%s%s", searches[m->solver.search],
			layer ? ": " : "", layer ? layer : "");
	if (m->act_mode == INPUT_STATIC_TENSOR && !q->source.name)
		misuse("static activation scales come from --hessian FILE or --sequential; give one, or "
			"--act-mode dynamic-token or none%s%s", layer ? ": " : "", layer ? layer : "");
	if (solves(m) && q->files.order)
		check_order(q, m, layer);
}

void quantize_check(struct quantize *q)
{
	if (!q->plan->n)
		check_method(q, plan_method(q->plan, NULL), NULL);
}

/* The layer's method, which fits the files. */
static const struct method *method_of(struct quantize *q, const char *layer)
{
	const struct method *m = plan_method(q->plan, layer);

	if (!m->keep && q->plan->n)
		check_method(q, m, layer);
	q->needs_hessian |= !m->keep && method_needs_hessian(m);
	return m;
}

/* Dies where the method needs more than is known of a layer's inputs. */
static void check_inputs(const struct quantize *q, const struct method *m, const char *layer,
	const struct second_moments *inputs)
{
	if (solves(m) && q->source.order_name && !inputs->order)
		die("%s: %s/order: is missing", q->source.order_name, layer);
	if (m->act_mode == INPUT_STATIC_TENSOR && inputs->hessian && !inputs->absmax)
		die("%s: %s/absmax: is missing", q->source.name, layer);
}

static void check_plain(const struct part *part, const char *layer, bool quantized)
{
	if (quantized)
		die("%s: %s: is quantized already, expected a plain weight", part_name(part), layer);
}

/* A run and the part that is read of its input. */
struct look { struct quantize *q; const struct filter *f; };

static void look_for(void *arg, const char *layer, size_t in)
{
	const struct look *w = arg;
	struct quantize *q = w->q;
	const struct method *m = method_of(q, layer);
	struct second_moments inputs;

	if (m->keep)
		return;
	inputs = q->source.look(q->source.arg, layer, in, method_needs_hessian(m));
	check_inputs(q, m, layer, &inputs);
	if (w->f->shard.n < 2)	/* which may be of others */
		check_plain(w->f->part, layer, layer_quantized(w->f->part, layer));
}

void quantize_check_layers(struct quantize *q, const struct filter *f)
{
	shard_check(&f->shard, input_name(f->in), f->config);
	q->done += f->shard.n > 1;	/* a shard may have none of those that are selected */
	if (f->config || layers_whole(f)) {
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
		if (!layers_each(f, q->layers, plan_note, q->plan))
			layers_none(input_name(f->in), q->layers);
		plan_check(q->plan, input_name(f->in));
	}
	if (layers_whole(f))
		layers_each(f, q->layers, look_for, &(struct look){ q, f });
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

/* The order of one that shares its Hessian, so that they share the factor too, or one of its own. */
static const int32_t *order_of(const struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n])
{
	const size_t in = t->layer.linear.in;

	if (!solves(t->method))
		return NULL;
	if (q->source.order_name || q->reorder == ORDER_NONE)
		return t->inputs.order;
	for (size_t i = 0; i < n; i++)
		if (before[i]->inputs.hessian == t->inputs.hessian && before[i]->method == t->method)
			return before[i]->result.order;
	return t->order = reorder_columns(q->source.name, t->layer.path, in,
		(const float (*)[in])t->inputs.hessian, q->reorder, q->key, t->method->solver.group);
}

/* The layer at `path` goes to t; n that go through the solver with it are before it. */
static void begin_layer(struct quantize *q, struct quantized *t, size_t n, struct quantized *const before[n],
	const struct part *part, const char *path)
{
	const struct method *m = t->method = method_of(q, path);
	struct linear *l = &t->layer.linear;

	t->layer = layer_read(part, path, 0, 0);
	check_plain(part, path, !l->weight);
	t->inputs = q->source.find(q->source.arg, path, l->in, method_needs_hessian(m));
	check_inputs(q, m, path, &t->inputs);
	t->own = layers_moments(&t->inputs, q->source.name, path, l);
	t->codes = solver_codes(&m->solver, l->out, l->in);
	layers_codes(&t->codes);
	t->result = (struct solver_layer){ .weight = l, .settings = &m->solver, .h = t->inputs.hessian,
		.order = order_of(q, t, n, before), .codes = &t->codes };
}

static void end_layer(struct output *out, const struct part *part, struct quantized *t)
{
	static int warned;
	const struct method *m = t->method;
	struct linear *l = &t->layer.linear;

	codes_view(&t->codes, l);
	if (m->inputs_given) {
		if (m->inputs_follow && linear_rounds(l) && !warned++)
			warn("%s: %s: says how its inputs are rounded; --compute %s takes the place of that, "
				"with --act-mode or --act-format it is meant", part_name(part),
				t->layer.path, m->solver.compute.name);
		l->input.mode = m->act_mode;
		l->input.format = m->act_format;
		l->input.clip = m->act_clip;
	}
	if (m->act_mode == INPUT_STATIC_TENSOR) {
		t->act_scale = static_scale(m, l->in, t->inputs.absmax);
		l->input.scale = &t->act_scale;
		l->input.modalities = 1;
	}
	layer_write(out, part, t->layer.path, l);
}

void quantize_release(struct quantize *q)
{
	for (size_t i = 0; i < q->made; i++) {
		struct quantized *t = q->layer[i];

		free(t->codes.memory), free(t->order), free(t->own);
		layer_free(&t->layer);
		free(t);
	}
	free(q->layer);
	q->layer = NULL;
	q->made = 0;
}

/* The last two where a model has experts: the tokens that reached a layer, and the part of its Hessian that
 * is its prior's. */
static const struct report_column columns[] = {
	{ "error", REPORT_GEOMETRIC }, { "mse", REPORT_NONE }, { "lambda", REPORT_NONE },
	{ "dead", REPORT_NONE }, { "seconds", REPORT_NONE }, { "tokens", REPORT_NONE },
	{ "prior", REPORT_NONE },
};
enum { COLUMNS = sizeof columns / sizeof *columns, OF_EXPERTS = 2 };

static const struct report_table *table_of(const struct filter *f)
{
	static const struct report_table whole = { .column = columns, .columns = COLUMNS },
		plain = { .column = columns, .columns = COLUMNS - OF_EXPERTS };

	return f->config && config_last(f->config)->experts ? &whole : &plain;
}

static void report(const struct filter *f, const char *layer, const struct quantized *t,
	const struct solver_report *r)
{
	const bool known = t->inputs.hessian;
	const double value[COLUMNS] = { r->error, r->mse, r->lambda, (double)r->dead, r->seconds,
		known ? (double)t->inputs.count : NAN, known ? t->inputs.prior : NAN };

	report_row(f->report, table_of(f), layer, value);
}

/* Through the solver, those with one Hessian side by side, so that they share its factor. */
static void solve(size_t n, struct solver_layer layer[n])
{
	struct solver_layer together[LAYERS_AT_ONCE];
	size_t from[LAYERS_AT_ONCE] = { 0 }, placed = 0;
	bool done[LAYERS_AT_ONCE] = { false };
	void *workspace;

	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++)
			if (!done[j] && (j == i || (layer[i].h && layer[j].h == layer[i].h))) {
				done[j] = true;
				from[placed] = j;
				together[placed++] = layer[j];
			}
	workspace = xalloc(solver_workspace(n, together), 1);
	solver_run(n, together, workspace);
	free(workspace);
	for (size_t i = 0; i < n; i++)
		layer[from[i]] = together[i];
}

/* At most LAYERS_AT_ONCE: those of a block overlap, and their results are in memory at once. */
static void quantize_some(struct quantize *q, const struct filter *f, size_t n, char *const path[n])
{
	struct solver_layer layer[LAYERS_AT_ONCE];
	struct quantized **t;

	q->layer = xgrow(q->layer, q->made + n, sizeof *q->layer);
	t = q->layer + q->made;
	for (size_t i = 0; i < n; i++) {
		t[i] = xalloc(1, sizeof *t[i]);
		begin_layer(q, t[i], i, t, f->part, path[i]);
		layer[i] = t[i]->result;
	}
	solve(n, layer);
	for (size_t i = 0; i < n; i++) {
		t[i]->result = layer[i];
		if (layer[i].report.status != STATUS_DONE)
			layers_fail(layer[i].report.status, layer[i].report.index, path[i], f->part,
				&q->source);
		report(f, path[i], t[i], &layer[i].report);
		end_layer(f->out, f->part, t[i]);
	}
	q->made += n;
	q->source.drop(q->source.arg);
	if (!q->walk)
		quantize_release(q);
}

bool quantize_keeps(struct quantize *q, const char *layer)
{
	return method_of(q, layer)->keep;
}

void quantize_layers(struct quantize *q, const struct filter *f, size_t all, char *const path[all])
{
	char **some = xalloc(all, sizeof *some);
	size_t n = 0;

	for (size_t i = 0; i < all; i++)
		if (!quantize_keeps(q, path[i]))
			some[n++] = path[i];
	for (size_t i = 0; i < n; i += LAYERS_AT_ONCE) {
		progress_part(some[i], part_index(f->part), part_count(f->part), i, n);
		quantize_some(q, f, n - i < LAYERS_AT_ONCE ? n - i : LAYERS_AT_ONCE, some + i);
	}
	q->done += all;
	free(some);
}

/* Under a plan layers that are not known yet may need it. */
static bool may_need_hessian(struct quantize *q, const struct filter *f)
{
	if (!q->plan->n)
		return method_needs_hessian(plan_method(q->plan, NULL));
	return q->needs_hessian || !layers_whole(f);
}

static void begin_part(struct quantize *q, const struct filter *f)
{
	const bool needed = may_need_hessian(q, f);
	const bool ordered = q->files.order && option_given("order");	/* and it has an effect */

	output_begin(f->out, f->part);
	if (part_index(f->part))
		return;
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
}

void quantize_part(void *arg, const struct filter *f)
{
	struct quantize *q = arg;
	struct layer_list list = layer_list(f->part, f->config, q->layers);
	const bool begun = list.n || !part_index(f->part);

	if (!f->config)	/* these are not known before */
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
	if (begun)
		begin_part(q, f);
	if (q->walk)
		q->walk(q->arg, f, &list);
	else
		quantize_layers(q, f, list.n, list.path);
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

	if (!f->config)
		layers_each(f, &(struct selection){ 0 }, plan_note, q->plan);
	for (size_t i = 0; i < list.n; i++)
		method_of(q, list.path[i]);
	filter_report(f, table_of(f));
	q->done += list.n;
	if (q->pass && !f->all_there)
		q->pass(q->arg, f->result);
	layer_list_free(&list);
}

void quantize_end(struct quantize *q, const char *name)
{
	if (!q->done)
		layers_none(name, q->layers);
	plan_check(q->plan, name);
	plan_end(q->plan);
}
