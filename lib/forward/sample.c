/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sample.c -- token ids drawn from a model; see sample.h */
#include "forward/sample.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/resident.h"

/* Constants, not options: most sequences that are run together, and most bytes of their keys and values. */
enum { SEQUENCES = 32 };
static const size_t CACHE = (size_t)1 << 30;

void sample_check(const char *name, size_t vocab, const float logit[vocab])
{
	float not_finite = 0;		/* x - x is 0, or NaN for NaN and infinity */

	#pragma omp simd reduction(+:not_finite)
	for (size_t i = 0; i < vocab; i++)
		not_finite += logit[i] - logit[i];
	if (not_finite != 0)
		die("%s: logits are not finite: numbers of the model overflow", name);
}

int32_t sample_one(size_t vocab, const float logit[vocab], double temperature, double u)
{
	double sum = 0, part = 0;
	size_t top = 0, last = 0;

	for (size_t i = 1; i < vocab; i++)
		if (logit[i] > logit[top])
			top = i;
	if (!(temperature > 0))
		return (int32_t)top;
	for (size_t i = 0; i < vocab; i++)
		sum += exp(((double)logit[i] - (double)logit[top]) / temperature);
	for (size_t i = 0; i < vocab; i++) {
		double p = exp(((double)logit[i] - (double)logit[top]) / temperature);

		part += p;
		if (p > 0)
			last = i;
		if (p > 0 && part > u * sum)
			return (int32_t)i;
	}
	return (int32_t)last;
}

static void draw(const char *name, const struct config *c, size_t sequences,
	float logits[sequences][c->vocab], int32_t next[sequences], double temperature,
	const struct random_stream *random, size_t first, size_t stride)
{
	for (size_t s = 0; s < sequences; s++) {
		float *y = logits[s];

		sample_check(name, c->vocab, y);
		if (c->bos >= 0)
			y[c->bos] = -INFINITY;
		if (c->vision.class)	/* it would need an image */
			y[c->vision.placeholder] = -INFINITY;
		for (size_t i = 0; i < c->eos_count; i++)
			if (c->eos[i] >= 0 && (size_t)c->eos[i] < c->vocab)
				y[c->eos[i]] = -INFINITY;
		next[s] = sample_one(c->vocab, y, temperature, random_uniform(random, first + s * stride));
	}
}

struct job {
	const char *name;		/* of the model's file */
	const struct config *c;
	const struct resident *model;
	struct random_stream random;
	double temperature;
	size_t length, sequences, together, n, done;
	int32_t *id;
};

/* Draws sequences first .. first + together - 1, token by token. One thread runs it. */
static void draw_sequences(struct job *j, size_t first, struct work *work, struct cache *cache, float *logits,
	int32_t *next)
{
	const struct config *c = j->c;
	size_t here = min(j->together, j->sequences - first);
	size_t steps = min(j->length, j->n - first * j->length);
	struct sequence sequence[SEQUENCES];
	const struct batch batch = { .rows = here, .sequences = here, .sequence = sequence };

	for (size_t s = 0; s < here; s++)
		next[s] = (int32_t)c->bos;
	for (size_t p = 0; p < steps; p++) {
		for (size_t s = 0; s < here; s++)
			sequence[s] = (struct sequence){ .first = s, .length = 1, .past = p };
		resident_step(j->model, work, cache, &batch, (float (*)[c->vocab])logits, next,
			NULL);
		draw(j->name, c, here, (float (*)[c->vocab])logits, next, j->temperature, &j->random,
			first * j->length + p, j->length);
		for (size_t s = 0; s < here; s++)
			if ((first + s) * j->length + p < j->n)
				j->id[(first + s) * j->length + p] = next[s];
		#pragma omp critical
		{
			j->done += here;
			progress("drawing", min(j->done, j->n), j->n);
		}
	}
}

void sample_tokens(const struct part *part, const struct config *c, const struct execution *e, size_t ctx,
	double temperature, uint64_t seed, size_t n, int32_t id[n])
{
	size_t length = ctx - 1, sequences = (n + length - 1) / length;
	const struct stack *last = config_last(c);
	size_t one, max, batches, together;
	struct resident model = resident_open(part, c, e);
	struct job j = { .name = part_name(part), .c = c, .model = &model, .temperature = temperature,
		.random = random_open(seed, "sample-tokens"), .length = length, .sequences = sequences,
		.n = n, .id = id };

	one = cache_bytes(last, ctx);
	max = one && one < CACHE ? min(SEQUENCES, CACHE / one) : 1;
	batches = (sequences + max - 1) / max;
	together = j.together = (sequences + batches - 1) / batches;
	/* One thread per batch. All threads share the products of a single batch. */
	#pragma omp parallel num_threads(threads_for(batches))
	{
		struct work work = work_make(last, together, together, ctx);
		struct cache cache = cache_make(last, together, ctx);
		float *logits = xalloc(together * c->vocab, sizeof *logits);
		int32_t *next = xalloc(together, sizeof *next);

		#pragma omp for schedule(dynamic)
		for (size_t first = 0; first < sequences; first += together)
			draw_sequences(&j, first, &work, &cache, logits, next);
		cache_free(&cache);
		work_free(&work);
		free(logits);
		free(next);
	}
	resident_close(&model);
}
