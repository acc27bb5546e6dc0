/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sums.c -- see sums.h */
#include "calib/sums.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "calib/histogram.h"

enum { FEW = 1 << 16 };		/* numbers, up to which one thread is faster */

struct sums sums_make(size_t in, size_t modalities, bool products)
{
	struct sums s = { .in = in, .modalities = modalities,
		.moments = xalloc(modalities, sizeof *s.moments) };

	for (size_t m = 0; m < modalities; m++)
		s.moments[m] = moments_make(in, products);
	return s;
}

void sums_pair(struct sums *s)
{
	for (size_t m = 0; m < s->modalities; m++)
		moments_pair(&s->moments[m]);
}

void sums_free(struct sums *s)
{
	sums_drop(s);
	for (size_t m = 0; m < s->modalities; m++)
		moments_free(&s->moments[m]);
	free(s->moments), free(s->written);
	*s = (struct sums){ 0 };
}

void sums_drop(struct sums *s)
{
	free((void *)(uintptr_t)s->mixed.sum);
	s->mixed = (struct hessian){ 0 };
	for (size_t m = 0; m < s->modalities; m++)
		moments_drop(&s->moments[m]);
}

/* ---- adding ---- */

/* Number of sequences from s on that have the same length. */
static size_t equals(const struct batch *batch, size_t s)
{
	size_t n = 1;

	while (s + n < batch->sequences && batch->sequence[s + n].length == batch->sequence[s].length)
		n++;
	return n;
}

static void add_batch(struct moments *h, enum half_type type, const struct batch *batch, const float *x,
	struct workspace *rounded)
{
	const size_t in = h->in;
	const bool half = type != HALF_NONE;
	uint16_t *narrow = half ? workspace_of(rounded, batch->rows * in * sizeof *narrow) : NULL;

	#pragma omp parallel for num_threads(threads) if (half) schedule(static)
	for (size_t t = 0; t < (half ? batch->rows : 0); t++)
		half_narrow(in, narrow + t * in, x + t * in, type);
	for (size_t s = 0, n; s < batch->sequences; s += n) {
		size_t tokens = batch->sequence[s].length, from = batch->sequence[s].first * in;

		n = equals(batch, s);
		if (half)
			moments_add_bf16(h, n, tokens,
				(const uint16_t (*)[tokens][in])(narrow + from));
		else
			moments_add(h, n, tokens, (const float (*)[tokens][in])(x + from));
	}
}

/* Copies the rows of a modality to y. Returns their sequences, whose memory is `sequence`. */
static struct batch rows_of(size_t m, size_t in, const struct batch *batch, float *y, const float *x,
	struct sequence *sequence)
{
	struct batch some = { .sequence = sequence };

	for (size_t i = 0; i < batch->sequences; i++) {
		const struct sequence *q = &batch->sequence[i];
		const size_t first = some.rows;

		for (size_t t = q->first; t < q->first + q->length; t++)
			if (batch->modality[t] == m)
				memcpy(y + some.rows++ * in, x + t * in, in * sizeof *y);
		if (some.rows > first)
			sequence[some.sequences++] =
				(struct sequence){ .first = first, .length = some.rows - first };
	}
	return some;
}

/* Adds the rows of each modality separately, sequence by sequence. */
static void add_by_modality(struct sums *s, enum half_type type, const struct batch *batch, const float *x,
	struct workspace *rounded)
{
	float *own = xalloc(batch->rows, s->in * sizeof *own);
	struct sequence *sequence = xalloc(batch->sequences, sizeof *sequence);

	for (size_t m = 0; m < s->modalities; m++) {
		const struct batch some = rows_of(m, s->in, batch, own, x, sequence);

		add_batch(&s->moments[m], type, &some, own, rounded);
	}
	free(own), free(sequence);
}

/* Adds the rows of a device, sequence by sequence. */
static void add_on_device(struct sums *s, enum half_type type, const struct batch *batch, const float *x)
{
	for (size_t i = 0; i < batch->sequences; i++)
		moments_add_on_device(s->moments, s->device, type, batch->sequence[i].length,
			x + batch->sequence[i].first * s->in);
}

void sums_add(struct sums *s, enum half_type type, const struct batch *batch, const float *x,
	struct workspace *rounded)
{
	if (s->in && s->device)
		add_on_device(s, type, batch, x);
	else if (s->modalities > 1 && batch->modality)
		add_by_modality(s, type, batch, x, rounded);
	else if (s->in)
		add_batch(s->moments, type, batch, x, rounded);
}

void sums_add_rows(struct sums *s, enum half_type type, size_t rows, const float *x)
{
	const struct sequence all = { .length = rows };
	struct workspace rounded = { 0 };	/* threads add rows at the same time */

	sums_add(s, type, &(struct batch){ .rows = rows, .sequences = 1, .sequence = &all }, x, &rounded);
	free(rounded.memory);
}

/* Rows rounded to the type, as f32; free() them. NULL for HALF_NONE. */
static float *rounded_rows(size_t in, enum half_type type, size_t rows, const float *x)
{
	float *y = type == HALF_NONE ? NULL : xalloc(rows, in * sizeof *y);

	#pragma omp parallel for num_threads(threads) if (rows * in > FEW) schedule(static)
	for (size_t t = 0; t < (y ? rows : 0); t++) {
		uint16_t *half = xalloc(in, sizeof *half);

		half_narrow(in, half, x + t * in, type);
		half_widen(in, y + t * in, half, type);
		free(half);
	}
	return y;
}

static void add_cross(struct moments *h, enum half_type type, const struct batch *batch, const float *z,
	const float *x)
{
	const size_t in = h->in;
	float *own[2] = { rounded_rows(in, type, batch->rows, z), rounded_rows(in, type, batch->rows, x) };

	z = own[0] ? own[0] : z;
	x = own[1] ? own[1] : x;
	for (size_t s = 0, n; s < batch->sequences; s += n) {
		const size_t tokens = batch->sequence[s].length, from = batch->sequence[s].first * in;

		n = equals(batch, s);
		moments_add_cross(h, n, tokens, (const float (*)[tokens][in])(z + from),
			(const float (*)[tokens][in])(x + from));
	}
	free(own[0]), free(own[1]);
}

void sums_add_cross(struct sums *s, enum half_type type, const struct batch *batch, const float *z,
	const float *x)
{
	const size_t in = s->in;
	struct sequence *sequence;
	float *own[2];

	if (s->modalities == 1 || !batch->modality) {
		add_cross(s->moments, type, batch, z, x);
		return;
	}
	sequence = xalloc(batch->sequences, sizeof *sequence);
	own[0] = xalloc(batch->rows, in * sizeof *z);
	own[1] = xalloc(batch->rows, in * sizeof *x);
	for (size_t m = 0; m < s->modalities; m++) {
		const struct batch some = rows_of(m, in, batch, own[0], z, sequence);

		rows_of(m, in, batch, own[1], x, sequence);
		add_cross(&s->moments[m], type, &some, own[0], own[1]);
	}
	free(own[0]), free(own[1]), free(sequence);
}

void sums_add_hessian(struct sums *s, const struct part *part, const char *group)
{
	for (size_t m = 0; m < s->modalities; m++) {
		const struct hessian h = hessian_modality(part, group, s->in, m);

		hessian_check(part_name(part), group, h.in, h.sum);
		moments_add_hessian(&s->moments[m], part_name(part), group, &h);
	}
}

/* ---- results ---- */

struct sums *sums_prior(const struct sums *s)
{
	return s->prior && s->moments->count < s->in ? s->prior : NULL;
}

struct moments *sums_total(struct sums *s)
{
	for (size_t m = 0; m < s->modalities; m++)
		moments_fetch(&s->moments[m]);
	for (size_t m = 1; m < s->modalities; m++) {
		moments_join(s->moments, &s->moments[m]);
		moments_free(&s->moments[m]);
	}
	s->modalities = 1;
	return s->moments;
}

/* Fatal error if no token was added. anyway: zero tokens are valid. */
static void check_seen(const struct sums *s, bool anyway, const char *file, const char *layer)
{
	for (size_t m = 0; m < s->modalities; m++)
		anyway |= s->moments[m].count > 0;
	if (!anyway)
		die("%s: %s: no token reached the layer; --layers leaves layers out, images-import makes "
			"tokens that reach an encoder", file, layer);
}

struct hessian sums_mixed(struct sums *s, const char *file, const char *layer)
{
	struct sums *prior = sums_prior(s);
	struct hessian own;

	check_seen(prior ? prior : s, false, file, layer);
	own = moments_hessian(sums_total(s), file, layer);
	if (prior && !s->mixed.sum) {
		const struct hessian other = moments_hessian(prior->moments, file, layer);

		s->mixed = hessian_mix(&own, &other);
	}
	return prior ? s->mixed : own;
}

/* max |x| of both sums, without split columns. An input that is not finite is a fatal error. */
static float largest_input(const struct moments *h, const struct moments *prior, const char *file,
	const char *layer)
{
	float top = 0;

	for (size_t j = 0, split = 0; j < h->in; j++) {
		if (!isfinite(h->absolute[j]))
			die("%s: %s: input %zu is not finite", file, layer, j);
		if (split < h->splits && (size_t)h->split[split] == j) {
			split++;
			continue;
		}
		top = fmaxf(top, prior ? fmaxf(h->absmax[j], prior->absmax[j]) : h->absmax[j]);
	}
	return top;
}

float sums_percentile(struct sums *s, size_t modality, double p, const char *file, const char *layer)
{
	const struct moments *h = modality == ALL_MODALITIES ? sums_total(s) : &s->moments[modality];
	const struct moments *prior = sums_prior(s) ? s->prior->moments : NULL;
	double more = prior ? ((double)h->in - (double)h->count) / (double)prior->count : 0;
	double *count = xalloc(HISTOGRAM_BINS, sizeof *count);
	float edge;

	if (!h->count && !(prior && prior->count))
		die("%s: %s: no token reached the layer", file, layer);
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		count[b] = (double)h->histogram[b] + (prior ? more * (double)prior->histogram[b] : 0);
	edge = histogram_percentile(count, p);
	free(count);
	return fminf(edge, largest_input(h, prior, file, layer));
}

void sums_write(struct sums *s, struct output *out, const char *file, const char *layer)
{
	struct hessian *y;

	if (s->written) {
		output_link(out, layer, s->written);
		return;
	}
	check_seen(s, s->partial || s->prior, file, layer);
	y = xalloc(s->modalities, sizeof *y);
	for (size_t m = 0; m < s->modalities; m++)
		y[m] = moments_hessian(&s->moments[m], file, layer);
	hessian_write(out, layer, s->modalities, y);
	s->written = xformat("%s", layer);
	sums_drop(s);
	free(y);
}
