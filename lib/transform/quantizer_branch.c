/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer_branch.c -- see quantizer_branch.h */
#include "transform/quantizer_branch.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "num/half.h"
#include "quant/member.h"
#include "transform/layers.h"

/* The state of a layer: settings, result, and the stored forms of A and B. */
struct quantized_branch {
	struct branch_settings settings;
	struct branch_layer layer;
	struct linear a, b;
	uint16_t *half[2];
};

/*
 * tr(E H Eᵀ)/tr(W H Wᵀ) of the result and of the start (without H: with I); bits per weight; rank of the
 * branch; the largest |w - w_F| relative to its bound; the best step; number of steps; seconds of wall time
 */
static const struct report_column columns[] = {
	{ "error", REPORT_GEOMETRIC }, { "start", REPORT_NONE }, { "bits", REPORT_NONE },
	{ "rank", REPORT_NONE }, { "bound", REPORT_MAX }, { "best", REPORT_NONE }, { "steps", REPORT_NONE },
	{ "seconds", REPORT_NONE },
};
enum { COLUMNS = sizeof columns / sizeof *columns };
const struct report_table branch_table = { .column = columns, .columns = COLUMNS };

void branch_check(const struct method *m, const char *file, const char *path, size_t out, size_t in)
{
	if (m->branch.rank > min(in, out))
		die("%s: %s: is %zu x %zu, expected a --rank up to the smaller of them, not %zu", file, path,
			out, in, m->branch.rank);
}

static struct codes laid_out(size_t out, size_t in, const struct branch_settings *s)
{
	struct codes y = codes_make(out, in, &s->storage, s->group);

	layers_codes(&y);
	return y;
}

void branch_begin(struct quantized *t)
{
	const size_t out = t->layer.linear.out, in = t->layer.linear.in;
	struct quantized_branch *b = t->state = xalloc(1, sizeof *b);
	struct branch_settings *s = &b->settings;

	*s = t->method->branch;
	s->main = t->method->solver;
	if (!s->rank)
		s->rank = min(max(in / BRANCH_SHARE, 1), out);
	b->layer.settings = s;
	b->layer.a = xalloc(s->rank * in, sizeof(float));
	b->layer.b = xalloc(out * s->rank, sizeof(float));
	if (s->storage.kind) {
		b->layer.code_a = laid_out(s->rank, in, s);
		b->layer.code_b = laid_out(out, s->rank, s);
	}
}

/* The arguments of branch_run() for the layer. */
static struct branch_layer *prepare_branch(const struct quantized *t)
{
	struct quantized_branch *b = t->state;
	struct branch_layer *l = &b->layer;

	b->settings.on_loss = t->on_loss;
	b->settings.arg = t->arg;
	l->weight = t->weight;
	l->main = t->main;
	l->name = t->layer.path;
	l->h = t->inputs.hessian;
	l->codes = t->codes;
	return l;
}

size_t branch_bytes(size_t n, struct quantized *const t[n])
{
	(void)n;
	return branch_workspace(t[0]->method->quantizer->branch, prepare_branch(t[0]));
}

void branch_make(size_t n, struct quantized *const t[n], void *workspace)
{
	struct branch_layer *l = prepare_branch(t[0]);

	(void)n;
	branch_run(t[0]->method->quantizer->branch, l, workspace);
	t[0]->codes = l->codes;
	t[0]->status = l->report.status;
	t[0]->index = l->report.index;
}

/* A or B in its stored form. */
static struct linear stored(const struct branch_settings *s, size_t out, size_t in, const float *x,
	const struct codes *c, uint16_t **half)
{
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

void branch_view(struct quantized *t)
{
	struct quantized_branch *b = t->state;
	const struct branch_settings *s = &b->settings;
	struct linear *l = &t->layer.linear;

	if (!t->main)
		codes_view(&t->codes, l);
	b->a = stored(s, s->rank, l->in, b->layer.a, &b->layer.code_a, &b->half[0]);
	b->b = stored(s, l->out, s->rank, b->layer.b, &b->layer.code_b, &b->half[1]);
	l->rank = s->rank;
	l->branch_a = &b->a, l->branch_b = &b->b;
}

void branch_values(const struct quantized *t, double value[])
{
	const struct quantized_branch *b = t->state;
	const struct branch_report *r = &b->layer.report;

	memcpy(value, (const double[COLUMNS]){ r->loss, r->start, member_bits(members, &t->layer.linear),
		(double)b->settings.rank, r->bound, (double)r->best, (double)r->steps, r->seconds },
		COLUMNS * sizeof *value);
}

void branch_check_result(const struct quantized *t, bool *warned)
{
	const struct quantized_branch *b = t->state;
	const struct branch_report *r = &b->layer.report;
	const char *path = t->layer.path;

	if (r->halved && !*warned)
		warn("%s: --lr %g makes the loss infinite: the rate is halved, from the best step on",
			path, t->method->branch.rate);
	*warned |= r->halved;
	if (isinf(r->loss))
		die("%s: the loss is infinite for any rate: the weights are too large", path);
	/* The bound does not apply to rounded scales, whose range may be smaller than the data. */
	if (r->bound > 1 && !format_rounds_scales(&t->method->solver.storage))
		die("%s: the error of a weight is %g times its bound of half a step", path, r->bound);
}

void branch_free(struct quantized *t)
{
	struct quantized_branch *b = t->state;

	free(b->layer.code_a.memory), free(b->layer.code_b.memory);
	free(b->layer.a), free(b->layer.b), free(b->half[0]), free(b->half[1]);
	free(b);
}
