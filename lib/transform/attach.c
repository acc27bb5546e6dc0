/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attach.c -- see attach.h */
#include "transform/attach.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "model/calibrated.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "model/setting.h"
#include "num/half.h"
#include "quant/member.h"
#include "transform/layers.h"

/*
 * tr(E H Eᵀ)/tr(W H Wᵀ) of what is kept, and of the start (without H: under I); bits a weight; the branch's
 * rank; the largest |w - w_F| as a part of its bound; the step that is kept, steps made; seconds by the clock
 */
static const struct report_column heads[] = {
	{ "error", REPORT_GEOMETRIC }, { "start", REPORT_NONE }, { "bits", REPORT_NONE },
	{ "rank", REPORT_NONE }, { "bound", REPORT_MAX }, { "best", REPORT_NONE }, { "steps", REPORT_NONE },
	{ "seconds", REPORT_NONE },
};
enum { COLUMNS = sizeof heads / sizeof *heads };
static const struct report_table table = { .column = heads, .columns = COLUMNS };

static const struct { const char *name; enum half_type type; } types[] = {
	{ "f32", HALF_NONE }, { "f16", HALF_F16 }, { "bf16", HALF_BF16 },
};
enum { TYPES = sizeof types / sizeof *types };

char *attach_takers(void)
{
	char *names = NULL;

	for (const struct branch_method *m = branch_methods; m->name; m++) {
		char *before = names;

		if (!m->takes_main)
			continue;
		names = before ? xformat("%s, %s", before, m->name) : xformat("%s", m->name);
		free(before);
	}
	return names;
}

void attach_format(void *format, const char *option, const char *text)
{
	struct attach_format *f = format;
	const size_t n = strcspn(text, ":");
	char *name = xformat("%.*s", (int)n, text);

	*f = (struct attach_format){ .group = 0 };
	for (size_t i = 0; i < TYPES; i++)
		if (!strcmp(types[i].name, text)) {
			f->type = types[i].type;
			free(name);
			return;
		}
	setting_format(&f->format, option, name);
	free(name);
	f->group = (long)f->format.group;
	if (text[n])
		setting_group(&f->group, option, text + n + 1);
}

char *attach_form(const void *format)
{
	const struct attach_format *f = format;

	if (!f->format.kind)
		return xformat("%s", types[f->type].name);
	return f->group > 0 ? xformat("%s:%ld", f->format.name, f->group) :
		xformat("%s%s", f->format.name, f->group ? ":tensor" : "");
}

static size_t rank_of(const struct attach *a, size_t out, size_t in)
{
	return a->settings.rank ? a->settings.rank : min(max(in / ATTACH_SHARE, 1), out);
}

static void check_rank(const struct attach *a, const char *path, size_t out, size_t in, size_t rank)
{
	if (rank > min(in, out))
		die("%s: %s: is %zu x %zu, expected a --rank of at most the smaller, not %zu", a->input, path,
			out, in, rank);
}

static void check_plain(const struct attach *a, const char *path, bool quantized)
{
	if (!a->reference && quantized)
		die("%s: %s: is quantized already; --reference MODEL gives the weights before that, for "
			"--method %s", a->input, path, attach_takers());
}

/* A run and the part that is read of its input. */
struct look { struct attach *a; const struct part *part; };

/* Outputs of a layer before its part is read; without a configuration, and for n = 0, it is read. Dies of
 * layers outside blocks: nothing runs a branch there. */
static size_t outputs_of(const struct look *w, const char *path, size_t *n)
{
	const struct config *c = w->a->config;
	const struct stack *s;
	struct layer layer;
	size_t block, row, y;

	if (c) {
		s = config_find(c, path, &block, &row, NULL);
		if (!s)
			die("%s: %s: is no layer of a block; a branch is not run beside it", w->a->input,
				path);
		return stack_out(s, s->arch->linear[row].role);
	}
	layer = layer_read(w->part, path, 0, 0);
	*n = layer.linear.in;
	y = layer.linear.out;
	layer_free(&layer);
	return y;
}

static void look_for(void *arg, const char *path, size_t in)
{
	const struct look *w = arg;
	struct attach *a = w->a;
	const size_t out = outputs_of(w, path, &in);

	check_plain(a, path, layer_quantized(w->part, path));
	if (a->method->needs_hessian)
		a->source.look(a->source.arg, path, in, true);
	check_rank(a, path, out, in, a->settings.rank);
}

void attach_check(struct attach *a, const struct filter *f)
{
	a->input = input_name(f->in);
	a->config = f->config;
	if (layers_whole(f) && !layers_each(f, a->layers, look_for, &(struct look){ a, f->part }))
		layers_none(input_name(f->in), a->layers);
}

/* A layer on its way: as it stands, the weight that is approximated, what is made, and the memory of it. */
struct attached {
	struct layer layer, reference;
	struct branch_settings settings;
	struct branch_layer work;
	struct second_moments inputs;
	float *own;
	struct linear a, b;
	uint16_t *half[2];
};

static struct codes new_codes(size_t rows, size_t columns, const struct format *f, long group)
{
	struct codes y = codes_make(rows, columns, f, group);

	layers_codes(&y);
	return y;
}

/* The weight that is approximated: the input's own, or that of the reference. */
static const struct linear *weight_of(const struct attach *a, struct attached *t, const struct filter *f,
	const char *path)
{
	const struct linear *l = &t->layer.linear;

	check_plain(a, path, !l->weight);
	if (!a->reference)
		return l;
	if (!layer_there(a->reference, path))
		die("%s: %s: is missing; %s has it", part_name(a->reference), path, part_name(f->part));
	t->reference = layer_read(a->reference, path, l->out, l->in);
	if (!t->reference.linear.weight)
		die("%s: %s: is quantized, expected the weights before", part_name(a->reference), path);
	if (t->reference.linear.branch_a)
		die("%s: %s: has a branch, expected the weight before", part_name(a->reference), path);
	if (t->reference.linear.online != l->online || t->reference.linear.splits != l->splits ||
		(l->splits && memcmp(t->reference.linear.split_index, l->split_index,
			l->splits * sizeof *l->split_index)))
		die("%s: %s: reads its input otherwise than that of %s: another online Hadamard, or other "
			"columns "
			"taken out", part_name(a->reference), path, part_name(f->part));
	return &t->reference.linear;
}

static void begin(const struct attach *a, struct attached *t, const struct filter *f, const char *path)
{
	const struct linear *l = &t->layer.linear;
	const struct branch_settings *s = &a->settings;
	size_t rank;

	*t = (struct attached){ .layer = layer_read(f->part, path, 0, 0), .settings = a->settings };
	if (l->branch_a)
		die("%s: %s: has a branch already, expected a layer before fbq-run", part_name(f->part),
			path);
	rank = t->settings.rank = rank_of(a, l->out, l->in);
	check_rank(a, path, l->out, l->in, rank);
	t->work = (struct branch_layer){ .weight = weight_of(a, t, f, path), .main = l->weight ? NULL : l,
		.settings = &t->settings, .name = t->layer.path, .a = xalloc(rank * l->in, sizeof(float)),
		.b = xalloc(l->out * rank, sizeof(float)) };
	t->inputs = a->source.find(a->source.arg, path, l->in, a->method->needs_hessian);
	t->own = layers_moments(&t->inputs, a->source.name, path, l);
	t->work.h = t->inputs.hessian;
	if (!t->work.main)
		t->work.codes = new_codes(l->out, l->in, &s->main.storage, s->main.group);
	if (s->storage.kind) {
		t->work.code_a = new_codes(rank, l->in, &s->storage, s->group);
		t->work.code_b = new_codes(l->out, rank, &s->storage, s->group);
	}
}

/* A or B as it is stored. */
static struct linear branch_part(struct attached *t, size_t out, size_t in, const float *x,
	const struct codes *c, uint16_t **half)
{
	const struct branch_settings *s = &t->settings;
	struct linear l = { .out = out, .in = in, .weight = x };

	if (s->storage.kind)
		codes_view(c, &l);
	else if (s->type != HALF_NONE) {
		*half = xalloc(out * in, sizeof **half);
		half_narrow(out * in, *half, x, s->type);
		l.weight = *half, l.weight_type = s->type;
	}
	return l;
}

static void write_layer(struct attached *t, const struct filter *f)
{
	struct linear *l = &t->layer.linear;
	const size_t rank = t->settings.rank;

	if (!t->work.main)
		codes_view(&t->work.codes, l);
	t->a = branch_part(t, rank, l->in, t->work.a, &t->work.code_a, &t->half[0]);
	t->b = branch_part(t, l->out, rank, t->work.b, &t->work.code_b, &t->half[1]);
	l->rank = rank;
	l->branch_a = &t->a, l->branch_b = &t->b;
	layer_write(f->out, f->part, t->layer.path, l);
}

static void attached_free(struct attached *t)
{
	free(t->work.codes.memory), free(t->work.code_a.memory), free(t->work.code_b.memory);
	free(t->work.a), free(t->work.b), free(t->own), free(t->half[0]), free(t->half[1]);
	layer_free(&t->layer), layer_free(&t->reference);
}

static void report(struct attach *a, struct report *all, const struct attached *t)
{
	const struct branch_report *r = &t->work.report;
	const double value[COLUMNS] = { r->loss, r->start, member_bits(members, &t->layer.linear),
		(double)t->settings.rank, r->bound, (double)r->best, (double)r->steps, r->seconds };

	report_row(all, &table, t->layer.path, value);
	if (r->halved && !a->halved)
		warn("%s: --lr %g makes the loss infinite: the rate is halved, from the best iterate on",
			t->layer.path, t->settings.rate);
	a->halved += r->halved;
	if (isinf(r->loss))
		die("%s: the loss is infinite, whatever the rate: the weights are too large", t->layer.path);
	/* Of ranges that are not clipped; scales of few digits round them. */
	if (r->bound > 1 && t->settings.main.storage.scales == SCALE_F32)
		die("%s: a weight is off by %g times the bound of half a cell", t->layer.path, r->bound);
}

/* The layer at hand: the i-th of n of the part. */
struct place { const struct filter *f; const char *path; size_t i, n; };

static void tell(void *arg, size_t step, double loss)
{
	const struct place *at = arg;
	char *what = xformat("%s, step %zu, error %.3g", at->path, step, loss);

	progress_part(what, part_index(at->f->part), part_count(at->f->part), at->i, at->n);
	free(what);
}

static void attach_layer(struct attach *a, struct place at)
{
	const struct filter *f = at.f;
	const char *path = at.path;
	struct attached t;
	void *workspace;

	progress_part(path, part_index(f->part), part_count(f->part), at.i, at.n);
	begin(a, &t, f, path);
	t.settings.look = tell;
	t.settings.arg = &at;
	workspace = xalloc(branch_workspace(a->method, &t.work), 1);
	branch_run(a->method, &t.work, workspace);
	free(workspace);
	if (t.work.report.status != STATUS_DONE)
		layers_fail(t.work.report.status, t.work.report.index, path, f->part, &a->source);
	write_layer(&t, f);
	report(a, f->report, &t);
	attached_free(&t);
	a->done++;
	a->source.drop(a->source.arg);
	if (a->reference)
		part_drop(a->reference);
}

static void begin_part(const struct attach *a, const struct filter *f)
{
	output_begin(f->out, f->part);
	if (part_index(f->part))
		return;
	calibrated_write(f->out, 2, (const struct part *[]){ f->part,
		a->method->reads_hessian ? a->hessian : NULL }, NULL);
	if (a->hessian && a->method->reads_hessian)
		output_history(f->out, "hessian", a->hessian);
	if (a->reference)
		output_history(f->out, "reference", a->reference);
}

void attach_part(void *arg, const struct filter *f)
{
	struct attach *a = arg;
	struct layer_list list = layer_list(f->part, f->config, a->layers);

	if (list.n || !part_index(f->part)) {
		begin_part(a, f);
		for (size_t i = 0; i < list.n; i++)
			if (!a->reference || layer_quantized(f->part, list.path[i]))
				attach_layer(a, (struct place){ f, list.path[i], i, list.n });
			else if (!a->plain++)
				warn("%s: %s: is not quantized, and stays as it is", a->input, list.path[i]);
		output_rest(f->out, f->part, NULL);
		output_end(f->out);
	} else
		output_pass(f->out, f->part);
	layer_list_free(&list);
}

void attach_finished(void *arg, const struct filter *f)
{
	struct attach *a = arg;
	struct layer_list list = layer_list(f->part, f->config, a->layers);

	filter_report(f, &table);
	a->done += list.n;
	layer_list_free(&list);
}

void attach_end(struct attach *a, const char *name)
{
	if (a->reference && !a->done)
		die("%s: holds no quantized layer; --reference goes with what dpq-run makes", name);
	if (!a->done)
		layers_none(name, a->layers);
}
