/* SPDX-License-Identifier: GPL-3.0-or-later */
/* experts.c -- the mixture of experts of a block; see experts.h */
#include "forward/experts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/activation.h"
#include "model/layer_ref.h"
#include "num/linalg.h"

enum { ROWS = 16, FEW = 1 << 16 };	/* FEW: numbers, up to which one thread is faster */
enum { GATE_UP, DOWN };

/* Whether each thread gets several experts; if not, all threads work on one expert at a time. */
static bool many(size_t experts)
{
	return experts >= 2 * (size_t)threads;
}

/* Fatal error if the block has more experts than config.json specifies. */
static void check_beyond(const struct part *part, const struct stack *s, size_t index)
{
	for (const struct linear_row *row = s->arch->linear; row->name; row++) {
		char *path = stack_expert_path(s, index, row->name, s->experts);

		if (strchr(row->name, '#') && part_has(part, path))
			die("%s: %s: is beyond the %zu experts of config.json", part_name(part), path,
				s->experts);
		free(path);
	}
}

void experts_read(struct experts *e, const struct part *part, const struct config *c,
	const struct execution *execution, const struct stack *s, size_t index)
{
	if (!stack_sparse(s, index))
		return;
	if (!e->of)
		e->of = xalloc(s->experts, sizeof *e->of);
	check_beyond(part, s, index);
	e->n = s->experts;
	e->block = s->first + index;
	e->activation = s->activation;
	for (size_t i = 0; i < e->n; i++) {
		projection_layers(&e->of[i][GATE_UP], part, c, execution, s, index, PROJECTION_EXPERT_GATE_UP,
			i);
		projection_layers(&e->of[i][DOWN], part, c, execution, s, index, PROJECTION_EXPERT_DOWN, i);
	}
	#pragma omp parallel for num_threads(threads) if (many(e->n)) schedule(dynamic)
	for (size_t i = 0; i < e->n; i++)
		projection_prepare(&e->of[i][GATE_UP]), projection_prepare(&e->of[i][DOWN]);
}

void experts_empty(struct experts *e)
{
	for (size_t i = 0; i < e->n; i++)
		projection_empty(&e->of[i][GATE_UP]), projection_empty(&e->of[i][DOWN]);
}

void experts_free(struct experts *e)
{
	for (size_t i = 0; i < e->n; i++)
		projection_free(&e->of[i][GATE_UP]), projection_free(&e->of[i][DOWN]);
	free(e->of);
	*e = (struct experts){ 0 };
}

struct projection *experts_projection(const struct experts *e, enum projection_name name, size_t expert)
{
	return &e->of[expert][name == PROJECTION_EXPERT_DOWN ? DOWN : GATE_UP];
}

struct routing routing_make(const struct stack *s, size_t tokens)
{
	struct routing r = { .experts = s->experts, .chosen = s->chosen, .hidden = s->hidden };

	if (!s->experts)
		return r;
	r.choice = xalloc(tokens * r.chosen, sizeof *r.choice);
	r.weight = xalloc(tokens * r.chosen, sizeof *r.weight);
	r.place = xalloc(tokens * r.chosen, sizeof *r.place);
	r.start = xalloc(r.experts + 1, sizeof *r.start);
	r.token = xalloc(tokens * r.chosen, sizeof *r.token);
	r.modality = xalloc(tokens * r.chosen, 1);
	return r;
}

void routing_free(struct routing *r)
{
	free(r->choice), free(r->weight), free(r->place), free(r->start), free(r->token), free(r->modality);
	free(r->rows.memory);
	*r = (struct routing){ 0 };
}

float *routing_rows(struct routing *r, size_t m)
{
	return workspace_of(&r->rows, m * r->chosen * r->hidden * sizeof(float));
}

static int ascending(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static bool is_among(size_t n, const int32_t choice[n], size_t e)
{
	for (size_t i = 0; i < n; i++)
		if ((size_t)choice[i] == e)
			return true;
	return false;
}

/* Chooses the largest logits. NaN is chosen only if no number is left. */
static void choose_row(const struct stack *s, int32_t choice[], float weight[], const float logit[])
{
	double all = 0, of_chosen = 0;
	float max = -INFINITY;

	for (size_t k = 0; k < s->chosen; k++) {
		size_t best = s->experts;

		for (size_t e = 0; e < s->experts; e++)
			if ((best == s->experts || logit[e] > logit[best] || isnan(logit[best])) &&
			    !is_among(k, choice, e))
				best = e;
		choice[k] = (int32_t)best;
		max = k ? max : logit[best];
	}
	qsort(choice, s->chosen, sizeof *choice, ascending);
	for (size_t e = 0; e < s->experts; e++)
		all += exp((double)logit[e] - (double)max);
	for (size_t k = 0; k < s->chosen; k++)
		of_chosen += exp((double)logit[choice[k]] - (double)max);
	for (size_t k = 0; k < s->chosen; k++)
		weight[k] = (float)(exp((double)logit[choice[k]] - (double)max) /
			(s->normalized ? of_chosen : all));
}

void routing_choose(struct routing *r, const struct stack *s, size_t m, size_t stride, const float *logits)
{
	const size_t k = r->chosen;

	#pragma omp parallel for num_threads(threads) if (m * r->experts * k > FEW) schedule(static, ROWS)
	for (size_t t = 0; t < m; t++)
		choose_row(s, r->choice + t * k, r->weight + t * k, logits + t * stride);
	memset(r->start, 0, (r->experts + 1) * sizeof *r->start);
	for (size_t i = 0; i < m * k; i++)
		r->start[r->choice[i] + 1]++;
	for (size_t e = 0; e < r->experts; e++)
		r->start[e + 1] += r->start[e];
	for (size_t i = 0; i < m * k; i++) {
		r->place[i] = r->start[r->choice[i]]++;
		r->token[r->place[i]] = (int32_t)(i / k);
	}
	memmove(r->start + 1, r->start, r->experts * sizeof *r->start);
	r->start[0] = 0;
}

void routing_add_shared(const struct stack *s, size_t m, float *y, const float *x, size_t stride,
	const float *logit)
{
	const size_t n = s->hidden;

	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t t = 0; t < m; t++) {
		const float weight = (float)(1 / (1 + exp(-(double)logit[t * stride])));

		for (size_t j = t * n; j < (t + 1) * n; j++)
			y[j] += weight * x[j];
	}
}

/* Some tokens, and their run through the experts. */
struct experts_pass {
	const struct experts *e;
	const struct routing *r;
	const uint8_t *modality;	/* of its tokens, or NULL */
	const float *x;
	const struct observer *observer;	/* NULL: no callback for experts */
	enum projection_name to;		/* the run ends at its input; PROJECTIONS: at the output */
	size_t m, max;			/* tokens; most tokens of an expert */
	bool apart;			/* as in the batch */
};

/* Memory of one thread. */
struct buffers {
	float *wide, *middle;		/* [max][outputs of gate and up], [max][inputs of down] */
	struct workspace input;
};

/* b->middle = inputs of the down projection for x. */
static void run_gate_up(const struct experts_pass *p, struct buffers *b, size_t expert,
	const struct batch *batch,
	const float *x)
{
	const struct projection *s = &p->e->of[expert][GATE_UP];

	projection_apply(s, batch, 0, batch->rows, s->out, (float (*)[s->out])b->wide,
		(const float (*)[s->in])x, &b->input, NULL, false);
	mlp_activate(p->e->activation, batch->rows, p->e->of[expert][DOWN].in, s->out, b->middle, b->wide);
}

/* Calls the observer with n rows of inputs of a projection of an expert. */
static void show_expert(const struct experts_pass *p, struct buffers *b, enum projection_name name,
	size_t expert,
	size_t n, const float *x)
{
	const struct projection *s = experts_projection(p->e, name, expert);
	const struct observer *o = p->observer;

	if (n && o && o->on_expert_input)
		o->on_expert_input(o->arg, p->e->block, name, expert, n, s->in,
			p->r->token + p->r->start[expert], projection_observed(s, n, x, &b->input));
}

/* Calls the observer with the inputs of both projections of an expert for a set of extra tokens; only with
 * that of gate and up, if the run ends there. */
static void show_extra(const struct experts_pass *p, struct buffers *b, size_t expert, int set)
{
	const struct projection *gate_up = &p->e->of[expert][GATE_UP], *down = &p->e->of[expert][DOWN];
	const struct observer *o = p->observer;
	const int32_t *token = NULL;
	const size_t n = min(p->m, o->extra_tokens(o->arg, p->e->block, expert, set, &token));
	const size_t width = gate_up->in;
	float *some = n && token ? xalloc(n, width * sizeof *some) : NULL;
	uint8_t *modality = n && token && p->modality ? xalloc(n, 1) : NULL;
	const struct batch extra = { .rows = n, .modality = modality ? modality : p->modality };
	const float *x = some ? some : p->x;

	for (size_t i = 0; some && i < n; i++) {
		memcpy(some + i * width, p->x + (size_t)token[i] * width, width * sizeof *some);
		if (modality)
			modality[i] = p->modality[token[i]];
	}
	if (n)
		o->on_extra_input(o->arg, p->e->block, PROJECTION_EXPERT_GATE_UP, expert, set, n, width,
			projection_observed(gate_up, n, x, &b->input));
	if (n && p->to != PROJECTION_EXPERT_GATE_UP) {
		run_gate_up(p, b, expert, &extra, x);
		o->on_extra_input(o->arg, p->e->block, PROJECTION_EXPERT_DOWN, expert, set, n, down->in,
			projection_observed(down, n, b->middle, &b->input));
	}
	free(some), free(modality);
}

/* Replaces the rows of an expert by its outputs. */
static void run_expert(const struct experts_pass *p, struct buffers *b, size_t expert)
{
	const struct projection *down = &p->e->of[expert][DOWN];
	const struct observer *o = p->observer;
	const size_t from = p->r->start[expert], n = p->r->start[expert + 1] - from;
	const struct batch own = { .rows = n, .modality = p->modality ? p->r->modality + from : NULL,
		.apart = p->apart };
	float *x = (float *)p->r->rows.memory + from * p->r->hidden;

	if (p->to != PROJECTION_EXPERT_DOWN)
		show_expert(p, b, PROJECTION_EXPERT_GATE_UP, expert, n, x);
	if (n && p->to != PROJECTION_EXPERT_GATE_UP) {
		run_gate_up(p, b, expert, &own, x);
		show_expert(p, b, PROJECTION_EXPERT_DOWN, expert, n, b->middle);
	}
	if (n && p->to == PROJECTIONS)
		projection_apply(down, &own, 0, n, down->out, (float (*)[down->out])x,
			(const float (*)[down->in])b->middle, &b->input, NULL, false);
	for (int set = 0; o && o->extra_tokens && set < EXTRA_SETS; set++)
		show_extra(p, b, expert, set);
}

/* Copies the input of each token to a row of each of its experts. */
static void gather(const struct experts_pass *p)
{
	const struct routing *r = p->r;
	const size_t n = p->m * r->chosen, width = r->hidden;
	float *rows = r->rows.memory;

	#pragma omp parallel for num_threads(threads) if (n * width > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < n; i++) {
		memcpy(rows + i * width, p->x + (size_t)r->token[i] * width, width * sizeof *rows);
		if (p->modality)
			r->modality[i] = p->modality[r->token[i]];
	}
}

/* Adds the outputs of the experts of each token to y. */
static void combine(const struct experts_pass *p, float *y)
{
	const struct routing *r = p->r;
	const size_t width = r->hidden, n = p->m * r->chosen * width;
	const float *rows = r->rows.memory;

	#pragma omp parallel for num_threads(threads) if (n > FEW) schedule(static, ROWS)
	for (size_t t = 0; t < p->m; t++)
		for (size_t k = t * r->chosen; k < (t + 1) * r->chosen; k++) {
			const float *from = rows + r->place[k] * width, weight = r->weight[k];

			for (size_t j = 0; j < width; j++)
				y[t * width + j] += weight * from[j];
		}
}

void experts_apply(const struct experts *e, struct routing *r, const struct batch *batch, size_t first,
	size_t m, float *y, const float *x, enum projection_name to,
	const struct observer *observer)
{
	struct experts_pass p = { .e = e, .r = r, .x = x, .m = m, .to = to, .apart = batch->apart,
		.modality = batch->modality ? batch->modality + first : NULL,
		.observer = observer && (observer->on_expert_input || observer->extra_tokens) ?
			observer : NULL };
	size_t reached = 0;

	for (size_t i = 0; i < e->n; i++) {
		p.max = max(p.max, p.observer ? m : r->start[i + 1] - r->start[i]);
		reached += r->start[i + 1] > r->start[i];
	}
	routing_rows(r, m);
	gather(&p);
	#pragma omp parallel num_threads(threads) if (many(reached))
	{
		struct buffers b = { .wide = xalloc(p.max, e->of[0][GATE_UP].out * sizeof(float)),
			.middle = xalloc(p.max, e->of[0][DOWN].in * sizeof(float)) };

		#pragma omp for schedule(dynamic)
		for (size_t i = 0; i < e->n; i++)
			run_expert(&p, &b, i);
		free(b.wide), free(b.middle), free(b.input.memory);
	}
	if (to == PROJECTIONS)
		combine(&p, y);
}
