/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrate.c -- Hessians of linear layers from what a model feeds them; see calibrate.h */
#include "forward/calibrate.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "num/half.h"

struct calibrate_run *calibrate_open(const struct calibrate_text *t, struct config *c,
	const struct image *first)
{
	struct calibrate_run *r = xalloc(1, sizeof *r);
	struct tokens tokens;

	r->tokens = image_open(t->tokens, "tokens");
	tokens = tokens_read(r->tokens, first, c->vocab, t->force_tokens, t->limit);
	r->windows = windows_cut(image_name(r->tokens), &tokens, t->convention,
		windows_ctx(t->ctx, c->positions));
	if (r->windows.modalities > 1)
		die("%s: /modality: holds other tokens than text; Hessians by modality are not made yet",
			t->tokens);
	windows_shard(&r->windows, t->shard);
	c->compute_type = t->compute_type;
	r->forward = forward_open(c, &r->windows, t->memory);
	return r;
}

void calibrate_close(struct calibrate_run *r)
{
	forward_close(r->forward);
	windows_free(&r->windows);
	image_close(r->tokens);
	free(r);
}

size_t calibrate_place(const struct config *c, const char *layer)
{
	size_t block, row;
	const struct stack *s = config_find(c, layer, &block, &row);

	if (s)
		return (s->first + block) * PROJECTIONS + s->arch->linear[row].projection;
	return strcmp(layer, c->arch->head) ? SIZE_MAX : c->blocks * PROJECTIONS;
}

struct search { const struct config *config; bool any; };

static void look_for(void *arg, const char *path, size_t in)
{
	struct search *w = arg;

	(void)in;
	w->any |= calibrate_place(w->config, path) < SIZE_MAX;
}

void calibrate_check(const struct config *c, const struct selection *layers, const char *name)
{
	struct search w = { c, false };

	layer_each(c, layers, look_for, &w);
	if (!w.any)
		die("%s: --layers selects no linear layer that has inputs", name);
}

struct calibration calibrate_begin(const struct image *image, const struct config *c,
	const struct selection *layers)
{
	struct calibration k = { .config = c, .list = layer_list(image, c, layers) };

	k.projection = xalloc(c->blocks * PROJECTIONS + 1, sizeof *k.projection);
	for (size_t i = 0; i < k.list.n; i++) {
		const size_t s = calibrate_place(c, k.list.path[i]);
		size_t block, row;
		const struct stack *stack = config_find(c, k.list.path[i], &block, &row);

		if (s < SIZE_MAX && !k.projection[s].in)
			k.projection[s] = moments_make(!stack ? config_last(c)->hidden :
				stack_in(stack, stack->arch->linear[row].projection));
	}
	return k;
}

/* Sequences from s on that have one length. */
static size_t equals(const struct batch *batch, size_t s)
{
	size_t n = 1;

	while (s + n < batch->sequences && batch->sequence[s + n].length == batch->sequence[s].length)
		n++;
	return n;
}

static void see(void *arg, size_t block, enum projection_name p, const struct batch *batch, size_t in,
	const float *x)
{
	struct calibration *k = arg;
	const bool head = p == PROJECTION_HEAD;
	struct moments *h = &k->projection[(head ? k->config->blocks : block) * PROJECTIONS + (head ? 0 : p)];
	const enum half_type type = compute_half(k->config->compute_type);
	const bool half = h->in && type != HALF_NONE;
	uint16_t *narrow = half ? xalloc(batch->rows, in * sizeof *narrow) : NULL;

	#pragma omp parallel for num_threads(threads) if (half) schedule(static)
	for (size_t t = 0; t < (half ? batch->rows : 0); t++)
		half_narrow(in, narrow + t * in, x + t * in, type);
	for (size_t s = 0, n; h->in && s < batch->sequences; s += n) {
		size_t tokens = batch->sequence[s].length, from = batch->sequence[s].first * in;

		n = equals(batch, s);
		if (half)
			moments_add_bf16(h, n, tokens,
				(const uint16_t (*)[tokens][in])(narrow + from));
		else
			moments_add(h, n, tokens, (const float (*)[tokens][in])(x + from));
	}
	free(narrow);
}

struct observer calibrate_observer(struct calibration *k)
{
	return (struct observer){ see, k };
}

const struct moments *calibrate_find(const struct calibration *k, const char *layer)
{
	size_t s = calibrate_place(k->config, layer);

	return s < SIZE_MAX && k->projection[s].in ? &k->projection[s] : NULL;
}

static struct second_moments in_memory(void *arg, const char *layer, size_t n, bool needed)
{
	const struct calibration *k = arg;
	const size_t i = calibrate_place(k->config, layer);
	struct hessian h;

	if (!calibrate_find(k, layer)) {
		if (needed)
			die("%s: %s: was not calibrated", k->name, layer);
		return (struct second_moments){ 0 };
	}
	h = moments_hessian(&k->projection[i], k->name, layer);
	if (h.in != n)
		die("%s: %s: has %zu inputs, %zu were calibrated", k->name, layer, n, h.in);
	return (struct second_moments){ .hessian = h.sum, .absmax = h.absmax };
}

static void drop_memory(void *arg)
{
	const struct calibration *k = arg;

	for (size_t i = 0; i <= k->config->blocks * PROJECTIONS; i++)
		moments_drop(&k->projection[i]);
}

struct moments_source calibrate_source(struct calibration *k, const char *name)
{
	k->name = name;
	return (struct moments_source){ in_memory, drop_memory, k, name, NULL };
}

void calibrate_write(struct calibration *k, struct output *out, const char *file)
{
	const char **first = xalloc(k->config->blocks * PROJECTIONS + 1, sizeof *first);

	for (size_t i = 0; i < k->list.n; i++) {
		size_t s = calibrate_place(k->config, k->list.path[i]);

		if (s == SIZE_MAX)
			continue;
		if (first[s]) {
			output_link(out, k->list.path[i], first[s]);
			continue;
		}
		moments_write(&k->projection[s], out, file, k->list.path[i]);
		first[s] = k->list.path[i];
	}
	free(first);
}

void calibrate_end(struct calibration *k)
{
	for (size_t i = 0; i <= k->config->blocks * PROJECTIONS; i++)
		moments_free(&k->projection[i]);
	free(k->projection);
	layer_list_free(&k->list);
}

void calibrate_part(void *arg, const struct filter *f)
{
	const struct calibrate *c = arg;
	struct forward *run = c->forward;
	const struct image *image = f->image;
	struct calibration k = calibrate_begin(image, run->config, c->layers);
	struct observer observer = calibrate_observer(&k);

	output_begin(f->out, image);
	if (!image_part(image)) {
		output_copy(f->out, image, "/config", NULL);
		output_history(f->out, "tokens", c->tokens);
	}
	if (forward_part(run, image, &observer) && calibrate_find(&k, run->config->arch->head)) {
		struct head head = head_read(image, run->config, false);

		forward_head(run, &head, &observer);
		head_free(&head);
	}
	calibrate_write(&k, f->out, image_name(image));
	output_end(f->out);
	calibrate_end(&k);
}
