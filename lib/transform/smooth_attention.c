/* SPDX-License-Identifier: GPL-3.0-or-later */
/* smooth_attention.c -- see smooth_attention.h */
#include "transform/smooth_attention.h"
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "model/layer.h"
#include "model/layer_ref.h"

enum { TILE = 64 };		/* rows of inputs that are multiplied at once */

/* Keys of a block: `n` channels of all heads. */
struct smoothed_keys {
	size_t n, in;
	float *weight;			/* [n][in], while the block is run */
	float *bias;			/* [n], or NULL */
	float *max;			/* [n] max|K| */
	double *factor;			/* [n] λ */
	char *path;			/* of the layer */
};

static const struct report_column columns[] = { { "key", REPORT_MAX }, { "smoothed", REPORT_MAX } };
enum { COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table table = { .column = columns, .columns = COLUMNS };

void smooth_attention_check(const struct config *c, const char *name)
{
	const struct architecture *a = config_last(c)->arch;

	if (architecture_norms_heads(a))
		die("%s: the attention of %s has norms of queries and keys, which would remove the factors; "
			"expected a model without", name, a->name);
}

/* Whether the layer computes keys, or queries, of the language model. */
static bool is_of(const struct config *c, const struct residual_layer *l, enum role role)
{
	return l->stack == config_last(c) && (l->role == role || l->role == ROLE_QKV);
}

static size_t key_channels(const struct stack *s)
{
	return s->kv_heads * s->head_dim;
}

/* Rows before the keys: of the queries in a layer with both. */
static size_t key_row(const struct residual_layer *l)
{
	return l->role == ROLE_QKV ? l->stack->heads * l->stack->head_dim : 0;
}

static struct smoothed_keys *keys_of(const struct smooth_attention *s, const char *path)
{
	struct layer_ref layer;

	if (!layer_ref_find(s->config, path, &layer))
		die("%s: is not a layer of the model", path);
	return &s->keys[layer.block];
}

static void read_keys(struct smoothed_keys *k, const struct part *part, const struct residual_layer *l)
{
	struct layer layer = layer_read(part, l->path, l->out, l->in);
	const size_t first = key_row(l);

	k->n = key_channels(l->stack), k->in = l->in;
	k->weight = xalloc(k->n * k->in, sizeof *k->weight);
	k->max = xalloc(k->n, sizeof *k->max);
	k->path = xformat("%s", l->path);
	linear_whole(&layer.linear, first, k->n, (float (*)[k->in])k->weight);
	if (layer.linear.bias) {
		k->bias = xalloc(k->n, sizeof *k->bias);
		memcpy(k->bias, layer.linear.bias + first, k->n * sizeof *k->bias);
	}
	layer_free(&layer);
}

static void drop_keys(struct smoothed_keys *k)
{
	free(k->weight), free(k->bias), free(k->max), free(k->factor), free(k->path);
	*k = (struct smoothed_keys){ 0 };
}

/* max = max(max, |y + bias|); NaN stays. */
static void widen(const struct smoothed_keys *k, size_t rows, const float y[rows][k->n], float max[k->n])
{
	for (size_t t = 0; t < rows; t++)
		for (size_t i = 0; i < k->n; i++) {
			const float v = fabsf(k->bias ? y[t][i] + k->bias[i] : y[t][i]);

			max[i] = isnan(max[i]) || v <= max[i] ? max[i] : v;
		}
}

static void on_input(void *arg, size_t block, enum projection_name projection, const struct batch *batch,
	size_t first, size_t rows, size_t in, const float *x)
{
	const struct smooth_attention *s = arg;
	const struct stack *last = config_last(s->config);
	const struct smoothed_keys *k;

	(void)batch, (void)first;
	if (projection != PROJECTION_QKV || block < last->first || block >= last->first + last->blocks)
		return;
	k = &s->keys[block - last->first];
	#pragma omp parallel num_threads(threads)
	{
		float *y = xalloc(TILE * k->n, sizeof *y), *max = xalloc(k->n, sizeof *max);

		#pragma omp for schedule(static)
		for (size_t t = 0; t < rows; t += TILE) {
			const size_t m = min(rows - t, TILE);

			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)k->n, (int)in, 1,
				x + t * in, (int)in, k->weight, (int)in, 0, y, (int)k->n);
			widen(k, m, (const float (*)[k->n])y, max);
		}
		#pragma omp critical (smooth_attention)
		for (size_t i = 0; i < k->n; i++)
			k->max[i] = isnan(k->max[i]) || max[i] <= k->max[i] ? k->max[i] : max[i];
		free(y), free(max);
	}
}

/* The channel that rotary positions pair with channel i of a head; i itself without a pair. */
static size_t partner(const struct stack *s, size_t i)
{
	const size_t half = s->rotary / 2;

	if (i >= s->rotary)
		return i;
	if (s->arch->rotary_interleaved)
		return i ^ 1;
	return i < half ? i + half : i - half;
}

static void set_factors(const struct smooth_attention *s, struct smoothed_keys *k)
{
	const struct stack *last = config_last(s->config);
	double most = 0, after = 0;

	k->factor = xalloc(k->n, sizeof *k->factor);
	for (size_t i = 0; i < k->n; i++) {
		const size_t d = last->head_dim, pair = i / d * d + partner(last, i % d);
		const double max = fmax((double)k->max[i], (double)k->max[pair]);

		if (!isfinite(k->max[i]))
			die("%s: %s: has keys that are not finite", s->run->forward->name, k->path);
		k->factor[i] = max > 0 ? pow(max, s->alpha) : 1;
		most = fmax(most, (double)k->max[i]);
		after = fmax(after, (double)k->max[i] / k->factor[i]);
	}
	report_row(s->report, &table, k->path, (double[COLUMNS]){ most, after });
}

void smooth_attention_begin(void *arg, const struct filter *f, const struct residual *here)
{
	struct smooth_attention *s = arg;
	const struct observer observer = { .on_input = on_input, .arg = s };

	if (!s->keys)
		s->keys = xalloc(config_last(s->config)->blocks, sizeof *s->keys);
	for (size_t b = 0; b < config_last(s->config)->blocks; b++)
		drop_keys(&s->keys[b]);
	for (const struct residual_layer *l = here->layer; l < here->layer + here->layers; l++)
		if (is_of(s->config, l, ROLE_K))
			read_keys(keys_of(s, l->path), f->part, l);
	forward_part(s->run->forward, f->part, &observer);
	for (const struct residual_layer *l = here->layer; l < here->layer + here->layers; l++)
		if (is_of(s->config, l, ROLE_K))
			set_factors(s, keys_of(s, l->path));
}

double *smooth_attention_outputs(void *arg, const struct part *part, const struct residual *here,
	size_t i)
{
	const struct smooth_attention *s = arg;
	const struct residual_layer *l = &here->layer[i];
	const bool queries = is_of(s->config, l, ROLE_Q), keys = is_of(s->config, l, ROLE_K);
	const size_t d = l->stack->head_dim;
	const double *factor;
	double *y;

	(void)part;
	if (!queries && !keys)
		return NULL;
	factor = keys_of(s, l->path)->factor;
	y = xalloc(l->out, sizeof *y);
	for (size_t o = 0; o < l->out; o++)
		y[o] = 1;
	for (size_t h = 0; queries && h < l->stack->heads; h++)
		for (size_t c = 0; c < d; c++)
			y[h * d + c] = 1 / factor[h / (l->stack->heads / l->stack->kv_heads) * d + c];
	for (size_t o = 0; keys && o < key_channels(l->stack); o++)
		y[key_row(l) + o] = factor[o];
	return y;
}

void smooth_attention_free(struct smooth_attention *s)
{
	for (size_t b = 0; s->keys && b < config_last(s->config)->blocks; b++)
		drop_keys(&s->keys[b]);
	free(s->keys);
	s->keys = NULL;
}
