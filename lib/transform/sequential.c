/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sequential.c -- see sequential.h */
#include "transform/sequential.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "forward/cache.h"

/* Fatal error if the layer will have no moments. Before the model runs no moments exist. */
static struct second_moments peek(void *arg, const struct layer_ref *layer, size_t in, bool needed)
{
	const struct sequential *s = arg;

	(void)in;
	if (needed && layer_ref_input(s->run->forward->config, layer) == SIZE_MAX)
		die("%s: %s: reads token ids, which cannot be calibrated; expected --compensate none and no "
			"static activation scale for it (--plan)", s->name, layer->path);
	return (struct second_moments){ 0 };
}

static struct second_moments find_moments(void *arg, const struct layer_ref *layer, size_t in, bool needed)
{
	struct sequential *s = arg;
	struct moments_source source;

	if (layer_ref_input(s->run->forward->config, layer) == SIZE_MAX)
		return peek(arg, layer, in, needed);
	/* messages about an overflow of sums name the model */
	source = calibrate_source(&s->calibration, part_name(s->filter->part));
	return source.find(source.arg, layer, in, needed);
}

static void drop(void *arg)
{
	struct sequential *s = arg;
	const struct moments_source source = calibrate_source(&s->calibration, s->name);

	source.drop(source.arg);
}

/*
 * The layers of the part that belong to a projection, of all experts; free() the array. For the head and
 * other layers outside of blocks, `block` is the number of blocks.
 */
static struct layer_list layers_of(const struct sequential *s, size_t block,
	enum projection_name projection)
{
	const struct config *c = s->filter->config;
	struct layer_list y = { .layer = xalloc(s->list->n, sizeof *y.layer) };

	for (const struct layer_ref *l = s->list->layer; l < s->list->layer + s->list->n; l++)
		if (layer_ref_block(c, l) == block && layer_ref_projection(l) == projection)
			y.layer[y.n++] = *l;
	return y;
}

static bool any_quantized(const struct sequential *s, const struct layer_list *list)
{
	bool any = false;

	for (size_t i = 0; i < list->n; i++)
		any |= !quantize_keeps(s->quantize, list->layer[i].path);
	return any;
}

/* Calibrates the layers of a projection by a stage, quantizes and replaces them. */
static void run_stage(struct sequential *s, struct forward *f, const struct layer_list *list, bool observed,
	struct stage *stage)
{
	struct quantize *q = s->quantize;
	const size_t before = q->made;

	if (observed) {
		calibrate_stage(&s->calibration, f, *stage);
		stage->from = block_resume(f->block->stack, *stage);
	}
	quantize_layers(q, s->filter, list->n, list->layer);
	for (size_t i = before; i < q->made; i++)
		block_replace(f->block, &q->layer[i]->ref, &q->layer[i]->layer.linear);
}

/* Groups windows as in hessian-accum: the last bits of products depend on it. */
static const struct observer in_groups = { 0 };

static void run_block(void *arg, struct forward *f)
{
	struct sequential *s = arg;
	const size_t block = f->block->stack->first + f->block->index;
	struct stage stage = { PROJECTION_QKV, PROJECTIONS };

	for (int p = 0; p < PROJECTIONS; p++) {
		struct layer_list list = layers_of(s, block, (enum projection_name)p);
		bool observed = any_quantized(s, &list);

		if (p == PROJECTION_ROUTER && !observed) {	/* its input is the prior of experts */
			struct layer_list experts = layers_of(s, block, PROJECTION_EXPERT_GATE_UP);

			observed = any_quantized(s, &experts);
			free(experts.layer);
		}
		stage.to = (enum projection_name)p;
		run_stage(s, f, &list, observed, &stage);
		free(list.layer);
	}
	stage.to = PROJECTIONS;
	forward_stage(f, stage, &in_groups);
	if (s->original.forward)
		forward_stage(s->original.forward, stage, &in_groups);
	quantize_release(s->quantize);
}

/* Quantizes embeddings, which have no input, before the model runs. */
static void quantize_embeddings(struct sequential *s)
{
	struct quantize *q = s->quantize;
	struct layer_list list = layers_of(s, s->filter->config->blocks, PROJECTION_NONE);

	quantize_layers(q, s->filter, list.n, list.layer);
	s->run->forward->embedding = q->made ? &q->layer[0]->layer.linear : NULL;
	free(list.layer);
}

static void quantize_head(struct sequential *s)
{
	struct layer_list list = layers_of(s, s->filter->config->blocks, PROJECTION_HEAD);

	if (any_quantized(s, &list))
		calibrate_head(&s->calibration, s->run->forward, s->filter->part);
	quantize_layers(s->quantize, s->filter, list.n, list.layer);
	free(list.layer);
}

static void walk(void *arg, const struct filter *f, const struct layer_list *list)
{
	struct sequential *s = arg;
	struct layer_list patch;

	s->filter = f;
	s->list = list;
	s->calibration = calibrate_begin(f->part, f->config, &s->run->execution, s->quantize->layers, true);
	if (s->original.forward) {
		s->original.part = f->part;
		calibrate_pair(&s->calibration, &s->original);
	}
	patch = layers_of(s, f->config->blocks, PROJECTION_PATCH);
	for (size_t i = 0; i < list->n && !s->run->windows.images; i++)
		if (layer_ref_is_visual(f->config, &list->layer[i]) &&
		    !quantize_keeps(s->quantize, list->layer[i].path))
			die("%s: %s: no token reaches the layer: %s has no images in its windows, expected "
				"--layers that leave it out ('/model/layers/*')", part_name(f->part),
				list->layer[i].path, s->name);
	if (patch.n)
		die("%s: --sequential does not quantize the embedding of patches, dpq-run without it does",
			patch.layer[0].path);
	free(patch.layer);
	quantize_embeddings(s);
	calibrate_blocks(&s->calibration, s->run->forward, f->part, run_block, s);
	quantize_head(s);
	quantize_release(s->quantize);
	s->run->forward->embedding = NULL;
	calibrate_end(&s->calibration);
	s->calibration = (struct calibration){ 0 };
}

/* Runs a part that an earlier run has quantized, since the next parts need its outputs. */
static void pass(void *arg, const struct filter *f)
{
	struct sequential *s = arg;

	forward_part(s->run->forward, f->result, &in_groups);
	if (s->original.forward)
		forward_part(s->original.forward, f->part, &in_groups);
}

struct moments_source sequential_source(struct sequential *s, struct quantize *q, const char *tokens)
{
	*s = (struct sequential){ .quantize = q, .name = tokens };
	q->walk = walk;
	q->pass = pass;
	q->arg = s;
	return (struct moments_source){ find_moments, peek, drop, s, tokens, NULL };
}

struct cross_search { const struct quantize *q; bool crosses; };

static void look_for_cross(void *arg, const struct layer_ref *layer, size_t in)
{
	struct cross_search *w = arg;

	(void)in;
	w->crosses |= quantize_needs_cross(w->q, layer);
}

/* Begins a run of the unquantized layers if a layer needs cross moments. */
static void open_original(struct sequential *s, const struct calibrate_text *t, const struct filter *f)
{
	struct cross_search search = { s->quantize, false };
	struct run *r = &s->original;

	layer_each(f->config, s->quantize->layers, look_for_cross, &search);
	if (!search.crosses)
		return;
	if (s->run->execution.device)
		die("%s: cross moments are summed on the processor only (--device cpu), not on %s",
			input_name(f->in), s->run->execution.device->name);
	r->config = f->config;
	r->execution = s->run->execution;
	r->execution.cache = cache_use(f->config, f->part, &(struct cache_format){ 0 });
	r->forward = forward_open(f->config, &r->execution, &s->run->windows, t->memory);
}

void sequential_open(struct sequential *s, const struct calibrate_text *t, const struct filter *f)
{
	if (!f->config)
		die("%s: /config: is missing; --sequential runs the model, which needs its config.json",
			input_name(f->in));
	s->run = calibrate_open(t, f->config, f->part);
	open_original(s, t, f);
	s->quantize->tokens = s->run->tokens;
	s->quantize->calibration = s->run->calibration;
}

void sequential_close(struct sequential *s)
{
	if (s->original.forward)
		forward_close(s->original.forward);
	calibrate_close(s->run);
}
