/* SPDX-License-Identifier: GPL-3.0-or-later */
/* experts.c -- the mixture of experts of a block; see experts.h */
#include "forward/experts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"

enum { ROWS = 16, FEW = 1 << 16 };	/* numbers, below which one thread is quicker */
enum { GATE_UP, DOWN };

void experts_read(struct experts *e, const struct image *image, const struct config *c, const struct stack *s,
	size_t index)
{
	if (!stack_sparse(s, index))
		return;
	if (!e->of)
		e->of = xalloc(s->experts, sizeof *e->of);
	e->n = s->experts;
	e->block = s->first + index;
	e->activation = s->activation;
	for (size_t i = 0; i < e->n; i++) {
		projection_read(&e->of[i][GATE_UP], image, c, s, index, PROJECTION_EXPERT_GATE_UP, i);
		projection_read(&e->of[i][DOWN], image, c, s, index, PROJECTION_EXPERT_DOWN, i);
	}
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
	r.start = xalloc(r.experts + 1, sizeof *r.start);
	r.token = xalloc(tokens * r.chosen, sizeof *r.token);
	r.share = xalloc(tokens * r.chosen, sizeof *r.share);
	r.x = xalloc(tokens, r.hidden * sizeof *r.x);
	r.modality = xalloc(tokens, 1);
	return r;
}

void routing_free(struct routing *r)
{
	free(r->choice), free(r->weight), free(r->start), free(r->token), free(r->share), free(r->x);
	free(r->modality);
	*r = (struct routing){ 0 };
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

/* The largest logits; what is no number is chosen only where nothing else is left. */
static void choose_row(const struct stack *s, int32_t choice[], float weight[], const float logit[])
{
	double all = 0, of_chosen = 0;
	float top = -INFINITY;

	for (size_t k = 0; k < s->chosen; k++) {
		size_t best = s->experts;

		for (size_t e = 0; e < s->experts; e++)
			if ((best == s->experts || logit[e] > logit[best] || isnan(logit[best])) &&
			    !is_among(k, choice, e))
				best = e;
		choice[k] = (int32_t)best;
		top = k ? top : logit[best];
	}
	qsort(choice, s->chosen, sizeof *choice, ascending);
	for (size_t e = 0; e < s->experts; e++)
		all += exp((double)logit[e] - (double)top);
	for (size_t k = 0; k < s->chosen; k++)
		of_chosen += exp((double)logit[choice[k]] - (double)top);
	for (size_t k = 0; k < s->chosen; k++)
		weight[k] = (float)(exp((double)logit[choice[k]] - (double)top) / (s->normalized ? of_chosen : all));
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
		const size_t at = r->start[r->choice[i]]++;

		r->token[at] = (int32_t)(i / k);
		r->share[at] = r->weight[i];
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
		const float share = (float)(1 / (1 + exp(-(double)logit[t * stride])));

		for (size_t j = t * n; j < (t + 1) * n; j++)
			y[j] += share * x[j];
	}
}

void mlp_activate(enum activation activation, size_t m, size_t n, size_t stride, float *y, const float *x)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++) {
		switch (activation) {
		case ACTIVATION_SILU:		linalg_silu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_GELU:		linalg_gelu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_GELU_TANH:	linalg_gelu_tanh(n, y + i * n, x + i * stride); break;
		}
		if (stride > n)		/* a gate stands before up */
			linalg_times(n, y + i * n, x + i * stride + n);
	}
}

/* An expert's pass through a piece. */
struct pass {
	const struct projection *gate_up, *down;
	enum activation activation;
	const struct expert_buffers *buffers;
};

/* What the down projection gets of these rows, in buffers->middle. */
static void run_gate_up(const struct pass *p, const struct batch *batch, const float *x)
{
	const struct projection *s = p->gate_up;
	const size_t m = batch->rows;

	projection_apply(s, batch, 0, m, s->out, (float (*)[s->out])p->buffers->wide,
		(const float (*)[s->in])x, p->buffers->input, NULL, false);
	mlp_activate(p->activation, m, p->down->in, s->out, p->buffers->middle, p->buffers->wide);
}

static void run_down(const struct pass *p, const struct batch *batch, float *y)
{
	const struct projection *s = p->down;

	projection_apply(s, batch, 0, batch->rows, s->out, (float (*)[s->out])y,
		(const float (*)[s->in])p->buffers->middle, p->buffers->input, NULL, false);
}

/* The rows of an expert's tokens, side by side. */
static void gather(struct routing *r, size_t n, const int32_t token[n], const float *x, const uint8_t *modality)
{
	#pragma omp parallel for num_threads(threads) if (n * r->hidden > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < n; i++) {
		memcpy(r->x + i * r->hidden, x + (size_t)token[i] * r->hidden, r->hidden * sizeof *x);
		if (modality)
			r->modality[i] = modality[token[i]];
	}
}

static void scatter(const struct routing *r, size_t n, const int32_t token[n], const float share[n], float *y)
{
	#pragma omp parallel for num_threads(threads) if (n * r->hidden > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < n; i++) {
		const float *from = r->x + i * r->hidden;
		float *to = y + (size_t)token[i] * r->hidden;

		for (size_t j = 0; j < r->hidden; j++)
			to[j] += share[i] * from[j];
	}
}

void experts_apply(const struct experts *e, struct routing *r, const struct expert_buffers *buffers,
	const struct batch *batch, size_t first, size_t m, float *y, const float *x,
	const struct observer *observer)
{
	const uint8_t *modality = batch->modality ? batch->modality + first : NULL;
	const struct observer *o = observer && observer->expert ? observer : NULL;

	for (size_t i = 0; i < e->n; i++) {
		const struct pass p = { &e->of[i][GATE_UP], &e->of[i][DOWN], e->activation, buffers };
		const size_t from = r->start[i], n = r->start[i + 1] - from;
		const struct batch own = { .rows = n, .modality = modality ? r->modality : NULL };
		struct batch sent = { .modality = modality };

		if (n) {
			gather(r, n, r->token + from, x, modality);
			if (o)
				o->expert(o->arg, e->block, PROJECTION_EXPERT_GATE_UP, i, n, r->hidden, r->x);
			run_gate_up(&p, &own, r->x);
			if (o)
				o->expert(o->arg, e->block, PROJECTION_EXPERT_DOWN, i, n, p.down->in,
					buffers->middle);
			run_down(&p, &own, r->x);
			scatter(r, n, r->token + from, r->share + from, y);
		}
		sent.rows = o && o->to_send ? least(m, o->to_send(o->arg, e->block, i)) : 0;
		if (sent.rows) {
			run_gate_up(&p, &sent, x);
			o->sent(o->arg, e->block, i, sent.rows, p.down->in, buffers->middle);
		}
	}
}
