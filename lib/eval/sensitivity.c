/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sensitivity.c -- see sensitivity.h */
#include "eval/sensitivity.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "eval/candidate.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "model/dense.h"
#include "model/layer.h"

/* Hidden states of the model with the layers of one unit from one candidate. */
struct variant { size_t unit, candidate; struct hidden hidden; };

struct measurement {
	struct sensitivity *s;
	struct forward *other;		/* takes the hidden states of variants through a block */
	size_t candidates;
	size_t n, room;			/* room: bytes of memory that are left */
	struct variant *variant;	/* [n] */
};

struct sensitivity sensitivity_open(const struct units *u, const struct config *c, const struct execution *e,
	const struct windows *w, size_t memory)
{
	return (struct sensitivity){ .units = u, .config = c, .execution = *e, .windows = w,
		.memory = memory };
}

static void release(struct sensitivity *s)
{
	for (size_t i = 0; i < s->layers; i++) {
		layer_free(&s->layer[i]);
		free(s->dense[i]);
	}
	free(s->layer), free(s->dense);
	s->layer = NULL, s->dense = NULL;
	s->layers = 0;
}

void sensitivity_close(struct sensitivity *s)
{
	if (!s->model)
		return;
	head_free(&s->head);
	forward_close(s->model);
}

/* Whether a layer is rotated otherwise than in the model, and others with its input are not replaced. */
static bool is_lone(const struct sensitivity *s, const struct layer_ref *layer, const struct linear *l)
{
	struct layer model;
	bool y;

	if (s->units->kind != UNIT_LAYER || !candidate_shares_input(layer))
		return false;
	model = layer_outline(s->units->model, layer->path);
	y = !candidate_same_rotation(&model.linear, l);
	layer_free(&model);
	return y;
}

/* Replaces the layers of a unit by those of a candidate. alone: no other unit is replaced. Returns whether
 * one of them is quantized. */
static bool replace(struct sensitivity *s, struct block *b, size_t unit, size_t candidate, bool alone)
{
	const struct layer_list *list = &s->units->unit[unit].list;
	const struct part *part = s->units->candidate[candidate];
	bool any = false;

	s->layer = xgrow(s->layer, s->layers + list->n, sizeof *s->layer);
	s->dense = xgrow(s->dense, s->layers + list->n, sizeof *s->dense);
	for (size_t j = 0; j < list->n; j++) {
		const struct layer_ref *l = &list->layer[j];
		float **dense = &s->dense[s->layers];
		struct layer *own = &s->layer[s->layers++];

		*own = layer_read(part, l->path, 0, layer_ref_in(s->config, l));
		*dense = NULL;
		execution_layer(&s->execution, part, own, false);
		if (own->linear.weight)
			continue;
		if (alone && is_lone(s, l, &own->linear))
			own->linear = linear_dense_layer(&own->linear, dense);
		block_replace(b, l, &own->linear);
		any = true;
	}
	return any;
}

/* Takes hidden states through a block of the model. */
static void pass(struct measurement *m, struct block *b, struct hidden *h)
{
	struct hidden own = m->other->hidden;

	m->other->hidden = *h;
	m->other->block = b;
	forward_stage(m->other, (struct stage){ PROJECTION_QKV, PROJECTIONS }, NULL);
	m->other->block = NULL;
	m->other->hidden = own;
}

static struct hidden copy_of(struct measurement *m, const struct hidden *h)
{
	struct hidden y = hidden_make(h->rows, h->width, m->room);

	m->room -= y.mapped ? 0 : y.bytes;
	memcpy(y.x, h->x, y.bytes);
	return y;
}

/* Measures the block's units: begins a variant of each candidate, and restores the block. */
static void begin_variants(struct measurement *m, struct forward *f, size_t unit)
{
	struct sensitivity *s = m->s;

	for (size_t c = 0; c < m->candidates; c++) {
		if (replace(s, f->block, unit, c, true)) {
			struct variant *v;

			m->variant = xgrow(m->variant, m->n + 1, sizeof *m->variant);
			v = &m->variant[m->n++];
			*v = (struct variant){ unit, c, copy_of(m, &f->hidden) };
			pass(m, f->block, &v->hidden);
			block_next(f->block, s->units->model, f->block->stack, f->block->index);
		}
		release(s);
	}
}

static void run_block(void *arg, struct forward *f)
{
	struct measurement *m = arg;
	const struct units *u = m->s->units;
	const size_t block = f->block->stack->first + f->block->index, before = m->n;

	if (f->block->stack == config_last(f->config))
		for (size_t i = 0; i < u->n; i++)
			if (u->unit[i].block == block)
				begin_variants(m, f, i);
	for (size_t i = 0; i < before; i++)
		pass(m, f->block, &m->variant[i].hidden);
	forward_stage(f, (struct stage){ PROJECTION_QKV, PROJECTIONS }, NULL);
	for (size_t c = 0; c < u->candidates; c++)
		part_drop(u->candidate[c]);
}

/* Runs the model to its head. */
static void run(struct sensitivity *s, void (*block)(void *arg, struct forward *f), void *arg)
{
	s->model = forward_open(s->config, &s->execution, s->windows, s->memory / 4);
	if (!forward_blocks(s->model, s->units->model, NULL, block, arg))
		die("%s: %s: is missing; the model has no head", part_name(s->units->model),
			config_end(s->config));
	s->head = head_read(s->units->model, s->config, &s->execution, false);
}

/* The mean KL of n models from the model, and their standard errors. */
static void find_kl(struct sensitivity *s, size_t n, struct forward *const f[n], double kl[n], double se[n])
{
	const struct head *head[DIVERGENCES];
	double *nll[DIVERGENCES];
	struct divergence d[DIVERGENCES];

	for (size_t k = 0; k < n; k++) {
		head[k] = &s->head;
		nll[k] = xalloc(s->windows->targets, sizeof *nll[k]);
	}
	divergences_of(n, f, head, s->model, &s->head, nll, d);
	for (size_t k = 0; k < n; k++) {
		kl[k] = perplexity_of(d[k].n, d[k].kl, 0).nll;
		se[k] = perplexity_se_windows(s->windows, d[k].kl);
		divergence_free(&d[k]);
		free(nll[k]);
	}
}

/* The KL of n variants, whose hidden states are those before the head. */
static void find_kl_of_variants(struct measurement *m, size_t n, const struct variant v[n],
	double kl[][m->s->units->candidates])
{
	struct forward view[DIVERGENCES], *f[DIVERGENCES];
	double mean[DIVERGENCES], se[DIVERGENCES];

	for (size_t k = 0; k < n; k++) {
		view[k] = *m->other;
		view[k].hidden = v[k].hidden;
		view[k].normed = false;
		f[k] = &view[k];
	}
	find_kl(m->s, n, f, mean, se);
	for (size_t k = 0; k < n; k++)
		kl[v[k].unit][v[k].candidate] = mean[k];
}

void sensitivity_measure(struct sensitivity *s, size_t candidates,
	double kl[s->units->n][s->units->candidates])
{
	struct measurement m = { .s = s, .candidates = candidates, .room = s->memory / 2 };

	memset(kl, 0, s->units->n * sizeof *kl);
	m.other = forward_open(s->config, &s->execution, s->windows, s->memory / 4);
	run(s, run_block, &m);
	for (size_t i = 0; i < m.n; i += DIVERGENCES) {
		progress("KL of the variants", i, m.n);
		find_kl_of_variants(&m, min(DIVERGENCES, m.n - i), m.variant + i, kl);
	}
	progress_clear();
	for (size_t i = 0; i < m.n; i++)
		hidden_free(&m.variant[i].hidden);
	free(m.variant);
	forward_close(m.other);
}

struct planned { struct sensitivity *s; const size_t *candidate; };

static void run_planned(void *arg, struct forward *f)
{
	const struct planned *p = arg;
	const struct units *u = p->s->units;
	const size_t block = f->block->stack->first + f->block->index;

	if (f->block->stack == config_last(f->config))
		for (size_t i = 0; i < u->n; i++)
			if (u->unit[i].block == block)
				replace(p->s, f->block, i, p->candidate[i], false);
	forward_stage(f, (struct stage){ PROJECTION_QKV, PROJECTIONS }, NULL);
	release(p->s);
}

static void run_whole(void *arg, struct forward *f)
{
	(void)arg;
	forward_stage(f, (struct stage){ PROJECTION_QKV, PROJECTIONS }, NULL);
}

double sensitivity_of_plan(struct sensitivity *s, const size_t candidate[s->units->n], double *se)
{
	struct forward *f = forward_open(s->config, &s->execution, s->windows, s->memory / 4);
	double kl;

	if (!s->model)
		run(s, run_whole, NULL);
	forward_blocks(f, s->units->model, NULL, run_planned, &(struct planned){ s, candidate });
	find_kl(s, 1, &f, &kl, se);
	forward_close(f);
	progress_clear();
	return kl;
}
