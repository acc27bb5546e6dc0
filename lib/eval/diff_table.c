/* SPDX-License-Identifier: GPL-3.0-or-later */
/* diff_table.c -- see diff_table.h */
#include "eval/diff_table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "calib/hessian.h"
#include "eval/stats_table.h"
#include "model/dense.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "quant/stats.h"

static const struct table_column columns[] = {
	{ "tensor", TABLE_TEXT }, { "storage", TABLE_TEXT }, { "mse", TABLE_REAL },
	{ "weight_error", TABLE_REAL }, { "sqnr", TABLE_REAL }, { "largest", TABLE_REAL },
	{ "output_error", TABLE_REAL },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Argument of the visits to the groups of a part of the model, or of the whole reference. */
struct diff_walk {
	struct diff_table *c;
	const struct part *part;
	struct layer_list list;
	const char *other;		/* name of the other file, in which a tensor may be missing */
};

struct diff_table diff_table_begin(struct part *reference, struct part *hessian,
	const struct selection *layers)
{
	return (struct diff_table){
		.table = { .columns = hessian ? COLUMNS : COLUMNS - 1, .column = columns },
		.layers = layers, .reference = reference, .hessian = hessian };
}

static bool is_seen(const struct diff_table *c, const char *path)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->seen[i], path))
			return true;
	return false;
}

static void see(struct diff_table *c, const char *group, const char *member)
{
	c->seen = xgrow(c->seen, c->n + 1, sizeof *c->seen);
	c->seen[c->n++] = xformat("%s/%s", group, member);
}

static void add_row(struct diff_table *c, const char *path, const struct linear *l,
	const struct weight_difference *d)
{
	table_row(&c->table, (const char *[]){ path, stats_table_storage(l) },
		(double[]){ d->mse, d->error, d->sqnr, d->largest, d->output });
}

/* Whether the weights are compared without their rotations, which differ. A Hessian is of the inputs before
 * the signs and after the online Hadamard, so it fits only one of two online Hadamards. */
static bool compared_back(const struct diff_walk *w, const struct layer *ours, const struct layer *theirs,
	const float *h)
{
	const struct linear *a = &ours->linear, *b = &theirs->linear;
	const char *which = linear_two_sided(a) ? linear_two_sided(a) : linear_two_sided(b);

	if (linear_same_rotations(a, b))
		return false;
	if (!which && h)
		die("%s: %s: has another online Hadamard than in %s, and the Hessian fits only one",
			part_name(w->part), ours->path, part_name(w->c->reference));
	if (which && (linear_two_sided(b) || b->rotation_in.hadamard))
		die("%s: %s: has another rotation than in %s (%s)", part_name(w->part), ours->path,
			part_name(w->c->reference), which);
	return true;
}

static void compare_layer(struct diff_walk *w, const char *group)
{
	struct diff_table *c = w->c;
	struct layer ours = layer_read(w->part, group, 0, 0);
	const struct linear *l = &ours.linear;
	void *work = xalloc(stats_workspace(l->out, l->in), 1);
	struct weight_difference d;
	struct layer theirs;
	const float *h = NULL;
	float *own = NULL, *memory[2] = { NULL };
	struct linear a, b;

	if (c->hessian && hessian_exists(c->hessian, group)) {
		h = hessian_mixed(c->hessian, group, l->in, &own).sum;
		hessian_check(part_name(c->hessian), group, l->in, h);
	}
	if (!layer_exists(c->reference, group))
		die("%s: %s: is missing; %s has it", part_name(c->reference), group, part_name(w->part));
	theirs = layer_read(c->reference, group, l->out, l->in);
	a = *l, b = theirs.linear;
	if (compared_back(w, &ours, &theirs, h)) {
		a = linear_dense_layer(l, &memory[0]);
		b = linear_dense_layer(&theirs.linear, &memory[1]);
	} else if (h)
		a = linear_of_hessian(l, &memory[0]), b = linear_of_hessian(&theirs.linear, &memory[1]);
	if (!stats_difference(&b, &a, h, &d, work))
		die("%s: %s/hessian: makes the output error infinite or NaN", part_name(c->hessian), group);
	add_row(c, group, l, &d);
	for (const struct member *m = members; m->name; m++)
		if (m->role == MEMBER_WEIGHT)	/* together they are one effective weight */
			see(c, group, m->name);
	for (size_t i = 0; i < 3; i++) {
		double x = (double[]){ d.mse, d.error, d.output }[i];

		if (x > 0 && !isinf(x)) {
			c->logs[i] += log(x);
			c->counts[i]++;
		}
	}
	c->compared++;
	c->hessians += h != NULL;
	free(work), free(own), free(memory[0]), free(memory[1]);
	layer_free(&ours), layer_free(&theirs);
}

/* A tensor of any rank as a matrix of the same type. */
static struct linear matrix_of(const struct part *part, const char *path, const struct tensor *t)
{
	size_t rows = t->rank > 1 ? t->dim[0] : 1;

	return (struct linear){ .out = rows, .in = rows ? tensor_count(t) / rows : 0, .weight = t->data,
		.weight_type = layer_half(part, path, t->type) };
}

/* A tensor that one file lacks counts as different. */
static void report_missing(struct diff_walk *w, const char *path)
{
	warn("%s: %s: is missing; %s has it", w->other, path, part_name(w->part));
	w->c->others++;
	w->c->differ++;
}

static void compare_other(struct diff_walk *w, const char *group, const char *member)
{
	struct diff_table *c = w->c;
	char *path = xformat("%s/%s", group, member);
	struct weight_difference d;
	struct tensor our, their;

	if (part_has(w->part, path) && !part_has(c->reference, path))
		report_missing(w, path);
	else if (part_find(w->part, path, TENSOR_ANY, -1, NULL, &our)) {
		struct linear ours = matrix_of(w->part, path, &our), theirs;
		void *work = xalloc(stats_workspace(ours.out, ours.in), 1);

		their = part_tensor(c->reference, path, TENSOR_ANY, our.rank, our.dim);
		theirs = matrix_of(c->reference, path, &their);
		stats_difference(&theirs, &ours, NULL, &d, work);
		if (tensor_count(&our) && !isfinite(d.mse))
			die("%s: %s: has infinite numbers or NaN, or %s has",
				part_name(w->part), path, part_name(c->reference));
		if (d.largest > 0) {
			add_row(c, path, &ours, &d);
			c->differ++;
		}
		c->others++;
		see(c, group, member);
		free(work);
	}
	free(path);
}

static void visit_model(void *arg, const char *group)
{
	struct diff_walk *w = arg;

	if (!selection_has(w->c->layers, group) || layer_is_branch(w->part, group))
		return;
	progress_part(group, part_index(w->part), part_count(w->part), 0, 1);
	if (layer_listed(&w->list, group) || layer_quantized(w->part, group) ||
		layer_quantized(w->c->reference, group))
		compare_layer(w, group);
	else
		compare_other(w, group, "weight");
	for (const struct member *m = members; m->name; m++)
		if (m->role == MEMBER_TERM)
			compare_other(w, group, m->name);
}

void diff_table_part(void *arg, const struct filter *f)
{
	struct diff_table *c = arg;
	struct diff_walk w = { c, f->part, layer_list(f->part, f->config, c->layers),
		part_name(c->reference) };

	part_groups(f->part, visit_model, &w);
	layer_list_free(&w.list);
}

static void visit_reference(void *arg, const char *group)
{
	struct diff_walk *w = arg;

	if (layer_is_branch(w->part, group))
		return;
	for (const struct member *m = members; m->name && selection_has(w->c->layers, group); m++) {
		const bool compared = m->role == MEMBER_WEIGHT || m->role == MEMBER_TERM;
		char *path = xformat("%s/%s", group, m->name);

		if (compared && part_has(w->part, path) && !is_seen(w->c, path)) {
			if (layer_listed(&w->list, group) && m->role == MEMBER_WEIGHT)
				die("%s: %s: is missing; %s has it", w->other, group, part_name(w->part));
			report_missing(w, path);
		}
		free(path);
	}
}

void diff_table_end(struct diff_table *c, const char *name)
{
	struct diff_walk w = { .c = c, .part = c->reference, .other = name };
	const struct config *config = part_has(c->reference, "/config") ? config_open(c->reference) : NULL;
	double mean[3];

	w.list = layer_list(c->reference, config, c->layers);
	part_groups(c->reference, visit_reference, &w);
	layer_list_free(&w.list);
	if (config)
		config_close(config);
	if (!c->compared)
		die("%s: holds no linear layer%s", name, selection_text(c->layers));
	if (c->hessian && !c->hessians)
		die("%s: holds no Hessian of a layer of %s", part_name(c->hessian), name);
	for (size_t i = 0; i < 3; i++)
		mean[i] = exp(c->logs[i] / (double)c->counts[i]);
	table_sum(&c->table, (const char *[]){ "all", "-" },
		(double[]){ mean[0], mean[1], -10 * log10(mean[1]), NAN, mean[2] });
}

void diff_table_free(struct diff_table *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->seen[i]);
	free(c->seen);
	table_free(&c->table);
}
