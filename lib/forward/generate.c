/* SPDX-License-Identifier: GPL-3.0-or-later */
/* generate.c -- see generate.h */
#include "forward/generate.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/sample.h"

/* Constants, not options. TOKENS: of a prompt in one step; results depend on it. PREFIX: fewest common tokens
 * that are computed once. */
enum { TOKENS = 512, PREFIX = 32 };

struct job {
	const struct resident *model;
	const struct generate *g;
	const struct prompt *prompt;	/* [n] */
	struct generated *y;		/* [n] */
	struct cache prefix;		/* of the first `common` tokens of every prompt */
	size_t n, next, done, common, together, capacity;
	bool placed;			/* prompts have positions of several axes */
};

/* The prompts that one thread, or all threads, run together. */
struct group {
	struct job *job;
	struct work work;
	struct cache cache;
	size_t active;
	size_t *slot;			/* [together] of each running prompt, then the free ones */
	size_t *prompt;			/* [together] numbers of the running prompts */
	struct sequence *sequence;	/* [together] */
	int32_t *id;			/* [together] */
	int32_t (*position)[AXES];	/* [together] */
	float *logits;
};

static struct group group_make(struct job *j)
{
	const struct config *c = j->model->config;
	const struct stack *last = config_last(c);
	const size_t n = j->together, rows = max(n, TOKENS);
	struct group y = { .job = j, .work = work_make(last, rows, rows, j->capacity),
		.cache = cache_make(last, n, j->capacity), .slot = xalloc(n, sizeof *y.slot),
		.prompt = xalloc(n, sizeof *y.prompt), .sequence = xalloc(n, sizeof *y.sequence),
		.id = xalloc(n, sizeof *y.id), .position = xalloc(n, sizeof *y.position),
		.logits = xalloc(resident_rows(n), c->vocab * sizeof *y.logits) };

	for (size_t i = 0; i < n; i++)
		y.slot[i] = i;
	return y;
}

static void group_free(struct group *y)
{
	work_free(&y->work);
	cache_free(&y->cache);
	free(y->slot), free(y->prompt), free(y->sequence), free(y->id), free(y->position), free(y->logits);
}

/* Runs tokens [from, to) of a prompt by themselves. The cache has the tokens before them. logits NULL: not
 * computed. */
static void read_tokens(const struct job *j, const struct prompt_tokens *s, size_t from, size_t to,
	struct work *w, struct cache *cache, float *logits)
{
	const struct hidden *h = j->g->feature;
	const float *feature[TOKENS];
	uint8_t modality[TOKENS];

	for (size_t at = from, n; at < to; at += n) {
		const struct sequence one = { .length = n = min(TOKENS, to - at), .past = at };
		const struct batch batch = { .rows = n, .sequences = 1, .sequence = &one,
			.position = s->position ? s->position + at * AXES : NULL, .axes = AXES,
			.modality = s->feature ? modality : NULL };

		for (size_t i = 0; s->feature && i < n; i++) {
			const int64_t k = s->feature[at + i];

			modality[i] = k >= 0;
			feature[i] = k >= 0 ? h->x + (size_t)k * h->width : NULL;
		}
		resident_step(j->model, w, cache, &batch, at + n < to ? NULL : (void *)logits, s->id + at,
			s->feature ? feature : NULL);
	}
}

static bool ends_texts(const struct generate *g, int32_t id)
{
	for (size_t i = 0; i < g->ends; i++)
		if (id == g->end[i])
			return true;
	return false;
}

/* Appends the most likely id to the text of a prompt. Returns whether the text has ended. */
static bool append(const struct job *j, size_t prompt, const float *logit)
{
	const struct generate *g = j->g;
	const size_t positions = j->model->config->positions, vocab = j->model->config->vocab;
	struct generated *y = &j->y[prompt];
	int32_t id;

	sample_check(g->name, vocab, logit);
	id = sample_one(vocab, logit, 0, 0);
	if (ends_texts(g, id)) {
		y->end = GENERATED_EOS;
		return true;
	}
	y->id[y->n++] = id;
	if (g->stop && g->stop(g->arg, prompt, y->n, y->id))
		y->end = GENERATED_STOP;
	else if (y->n == g->max)
		y->end = GENERATED_MAX;
	else if (positions && j->prompt[prompt].context.n + y->n >= positions)
		y->end = GENERATED_POSITIONS;
	else
		return false;
	return true;
}

static void finished(struct job *j)
{
	#pragma omp critical
	progress("generating", ++j->done, j->n);
}

/* Reads the next prompt into a free slot. Returns false if none is left. */
static bool begin(struct group *y)
{
	struct job *j = y->job;
	const struct prompt_tokens *context;
	size_t prompt;

	#pragma omp atomic capture
	prompt = j->next++;
	if (prompt >= j->n)
		return false;
	context = &j->prompt[prompt].context;
	j->y[prompt].id = xalloc(j->g->max, sizeof *j->y[prompt].id);
	if (j->common)
		cache_copy(&y->cache, y->slot[y->active], &j->prefix, config_last(j->model->config)->blocks,
			j->common);
	y->cache.slot = y->slot + y->active;
	read_tokens(j, context, j->common, context->n, &y->work, &y->cache, y->logits);
	if (append(j, prompt, y->logits))
		finished(j);
	else
		y->prompt[y->active++] = prompt;
	return true;
}

/* Sets the next row of running prompt i. */
static void set_row(struct group *y, size_t i)
{
	const struct prompt *p = &y->job->prompt[y->prompt[i]];
	const struct generated *g = &y->job->y[y->prompt[i]];
	const size_t past = p->context.n + g->n - 1;
	const int32_t *place = p->context.position ? p->continuation->position + (g->n - 1) * AXES : NULL;

	y->id[i] = g->id[g->n - 1];
	y->sequence[i] = (struct sequence){ .first = i, .length = 1, .past = past };
	for (size_t a = 0; a < AXES; a++)
		y->position[i][a] = place ? place[a] : (int32_t)past;
}

/* Appends one id to each running prompt. */
static void step(struct group *y)
{
	const struct job *j = y->job;
	const size_t vocab = j->model->config->vocab;
	const struct batch batch = { .rows = y->active, .sequences = y->active, .sequence = y->sequence,
		.position = j->placed ? y->position[0] : NULL, .axes = AXES, .apart = true };

	for (size_t i = 0; i < y->active; i++)
		set_row(y, i);
	y->cache.slot = y->slot;
	resident_step(j->model, &y->work, &y->cache, &batch, (float (*)[vocab])y->logits, y->id, NULL);
	for (size_t i = y->active; i-- > 0;) {
		const size_t slot = y->slot[i], end = y->active - 1;

		if (!append(j, y->prompt[i], y->logits + i * vocab))
			continue;
		finished(y->job);
		y->prompt[i] = y->prompt[end], y->slot[i] = y->slot[end], y->slot[end] = slot;
		y->active--;
	}
}

/* Common tokens of all prompts: 0, if they are few or have images. The last token of a prompt is not one. */
static size_t common_tokens(size_t n, const struct prompt p[n])
{
	size_t y = n > 1 ? p->context.n - 1 : 0;

	for (size_t i = 0; i < n; i++) {
		const struct prompt_tokens *s = &p[i].context;
		size_t k = 0;

		while (k < min(y, s->n - 1) && s->id[k] == p->context.id[k] && !s->position &&
		       !(s->feature && s->feature[k] >= 0))
			k++;
		y = k;
	}
	return y < PREFIX ? 0 : y;
}

static void read_prefix(struct job *j)
{
	const struct stack *last = config_last(j->model->config);
	struct work work;

	if (!j->common)
		return;
	work = work_make(last, TOKENS, TOKENS, j->capacity);
	j->prefix = cache_make(last, 1, j->common);
	read_tokens(j, &j->prompt->context, 0, j->common, &work, &j->prefix, NULL);
	work_free(&work);
}

void generate(const struct resident *r, const struct generate *g, size_t n, const struct prompt p[n],
	struct generated y[n])
{
	const struct config *c = r->config;
	struct job j = { .model = r, .g = g, .prompt = p, .y = y, .n = n, .common = common_tokens(n, p) };
	size_t slots;
	int groups;

	memset(y, 0, n * sizeof *y);
	for (size_t i = 0; i < n; i++) {
		j.capacity = max(j.capacity, p[i].context.n + g->max);
		j.placed |= p[i].context.position != NULL;
	}
	if (c->positions)
		j.capacity = min(j.capacity, c->positions);
	read_prefix(&j);
	/* A thread runs a group if there are several; all threads share the products of one group. */
	slots = max(1, g->memory / cache_bytes(config_last(c), j.capacity));
	groups = threads_for(min(ceil_div(n, g->together), slots));
	j.together = min(min(g->together, n), max(1, slots / (size_t)groups));
	#pragma omp parallel num_threads(groups)
	{
		struct group one = group_make(&j);
		bool left = true;

		while (left || one.active) {
			while (left && one.active < j.together)
				left = begin(&one);
			if (one.active)
				step(&one);
		}
		group_free(&one);
	}
	if (j.common)
		cache_free(&j.prefix);
}
