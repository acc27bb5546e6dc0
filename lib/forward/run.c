/* SPDX-License-Identifier: GPL-3.0-or-later */
/* run.c -- see run.h */
#include "forward/run.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "forward/cache.h"
#include "forward/logits.h"
#include "forward/states.h"
#include "model/shard_file.h"

static struct run *open_kind(const char *path, const char *kind, enum compute_type type,
	const struct cache_format *kv)
{
	struct run *r = xalloc(1, sizeof *r);

	r->in = input_open(path, model_layout, kind);
	r->part = input_next(r->in);
	r->stored = states_in(r->part);
	shard_refuse(r->part);
	r->config = config_open(r->part);
	r->execution.compute_type = type;
	r->execution.cache = cache_use(r->config, r->part, kv);
	return r;
}

struct run *run_open(const char *path, enum compute_type type, const struct cache_format *kv)
{
	return open_kind(path, "model", type, kv);
}

struct run *run_open_reference(const char *path, enum compute_type type)
{
	return open_kind(path, "model|result", type, &(struct cache_format){ 0 });
}

void run_store(struct run *r, struct output *out, const struct windows *w)
{
	r->states = out;
	states_begin(out, r->part, w);
}

void run_match(const struct run *model, const struct run *reference)
{
	if (model->config->vocab != reference->config->vocab)
		die("%s: /config: has a vocabulary of %zu, the vocabulary of %s has %zu: "
			"only likelihoods can be compared, by -o and --paired", input_name(reference->in),
			reference->config->vocab, input_name(model->in), model->config->vocab);
}

void run_begin(struct run *r, const struct windows *w, size_t memory)
{
	r->execution.rows = w->rows;
	r->execution.modalities = w->modalities;
	r->forward = forward_open(r->config, &r->execution, w, memory);
	if (r->stored)
		states_read(r->forward, r->part);
}

/* Runs the current part; reads the head if the part has it, else the next part. */
static void advance(struct run *r)
{
	if (!r->part)
		die("%s: %s: is missing; the model has no head", input_name(r->in),
			config_end(r->config));
	r->ended = forward_part(r->forward, r->part, NULL);
	if (r->ended) {
		r->head = head_read(r->part, r->config, &r->execution, false);
		if (r->states)
			states_write(r->states, r->forward, r->part);
	} else
		r->part = input_next(r->in);
}

void run_to_heads(size_t models, struct run *const r[models])
{
	for (size_t left = models; left;)
		for (size_t k = left = 0; k < models; k++) {
			if (!r[k]->ended)
				advance(r[k]);
			left += !r[k]->ended;
		}
}

void run_close(struct run *r)
{
	head_free(&r->head);
	while ((r->part = input_next(r->in)))
		forward_part(r->forward, r->part, NULL);
	forward_close(r->forward);
	config_close(r->config);
	input_close(r->in);
	free(r);
}

void run_score(struct run *r, const struct windows *w, size_t memory, double nll[w->targets],
	uint8_t *likeliest)
{
	run_begin(r, w, memory);
	run_to_heads(1, &r);
	logits_score(r->forward, &r->head, nll, likeliest);
	run_close(r);
	progress_clear();
}
