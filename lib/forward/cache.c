/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cache.c -- the KV cache; see cache.h */
#include "forward/cache.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "model/setting.h"
#include "quant/round.h"

enum { ROWS = 16, FEW = 1 << 14 };	/* FEW: numbers, up to which one thread is faster */

static const char attribute[] = "kv_format";

static void read_attribute(struct cache_format *f, const struct part *first)
{
	char *text = part_text(first, "/", attribute);

	if (text && !setting_kv_parse(f, text))
		die("%s: /: attribute %s is '%s', expected a format, alone or with a colon and a number of "
			"channels, such as uint4:32", part_name(first), attribute, text);
	free(text);
}

struct cache_format cache_use(const struct config *c, const struct part *first,
	const struct cache_format *option)
{
	const size_t head_dim = config_last(c)->head_dim;
	struct cache_format f = *option;

	if (!option->given)
		read_attribute(&f, first);
	if (f.group && head_dim % f.group)
		die("%s: /config: heads have %zu channels; %s is %s:%zu, expected a group that divides "
			"them", part_name(first), head_dim, option->given ? "--kv-format" : attribute,
			f.format.name, f.group);
	if (option->given && f.format.kind)
		setting_hint(&f.format, "kv-format");
	return f;
}

void cache_check(const struct filter *f, const struct cache_format *option)
{
	if (!option->given)
		return;
	if (!f->config)
		die("%s: /config: is missing; --kv-format needs its width of heads",
			input_name(f->in));
	cache_use(f->config, f->part, option);
}

void cache_write(struct output *out, const struct cache_format *option)
{
	char *text = setting_kv_form(option);

	if (option->given && option->format.kind)
		output_text(out, "/", attribute, text);
	else if (option->given)
		output_drop(out, "/", attribute);
	free(text);
}

void cache_match(size_t n, const struct part *const first[n])
{
	char *one = n ? part_text(first[0], "/", attribute) : NULL;

	for (size_t i = 1; i < n; i++) {
		char *other = part_text(first[i], "/", attribute);

		if (!one != !other || (one && strcmp(one, other)))
			die("%s: /: attribute %s is '%s', expected '%s' as in %s", part_name(first[i]),
				attribute, other ? other : "none", one ? one : "none", part_name(first[0]));
		free(other);
	}
	free(one);
}

double cache_bits(const struct config *c, const struct cache_format *f)
{
	const struct format *x = &f->format;
	const double scale = scale_kinds[x->scales].bits + (x->asymmetric ? x->bits : 0);
	const size_t group = f->group ? f->group : config_last(c)->head_dim;

	return x->kind ? x->bits + scale / (double)group : 0;
}

/* x - x is 0, or NaN for NaN and infinity. */
static bool is_finite(size_t n, const float x[n])
{
	float sum = 0;

	#pragma omp simd reduction(+:sum)
	for (size_t i = 0; i < n; i++)
		sum += x[i] - x[i];
	return sum == 0;
}

void cache_round(const struct cache_format *f, size_t head_dim, size_t rows, size_t stride, size_t n,
	float *x)
{
	const size_t group = f->group ? f->group : head_dim;

	#pragma omp parallel num_threads(threads) if (rows * n > FEW)
	{
		uint8_t *code = xalloc(n, 1), *zero = xalloc(n / group, 1);
		float *scale = xalloc(n / group, sizeof *scale);

		#pragma omp for schedule(static, ROWS)
		for (size_t t = 0; t < rows; t++) {
			float *row = x + t * stride;

			if (!is_finite(n, row))
				continue;
			round_row(&f->format, n, group, code, scale, zero, row);
			round_values(&f->format, n, group, row, code, scale, zero);
		}
		free(code), free(zero), free(scale);
	}
}

size_t cache_bytes(const struct stack *s, size_t capacity)
{
	return 2 * s->blocks * capacity * s->kv_heads * s->head_dim * sizeof(float);
}

struct cache cache_make(const struct stack *s, size_t sequences, size_t capacity)
{
	size_t width = s->kv_heads * s->head_dim;
	struct cache c = { .sequences = sequences, .capacity = capacity, .width = width };

	c.k = xalloc(s->blocks * sequences * capacity, width * sizeof *c.k);
	c.v = xalloc(s->blocks * sequences * capacity, width * sizeof *c.v);
	return c;
}

void cache_free(struct cache *c)
{
	free(c->k);
	free(c->v);
	*c = (struct cache){ 0 };
}

void cache_copy(struct cache *c, size_t n, const struct cache *from, size_t blocks, size_t tokens)
{
	const size_t bytes = tokens * c->width * sizeof *c->k;

	for (size_t i = 0; i < blocks; i++) {
		const size_t to = (i * c->sequences + n) * c->capacity * c->width;
		const size_t at = i * from->sequences * from->capacity * from->width;

		memcpy(c->k + to, from->k + at, bytes);
		memcpy(c->v + to, from->v + at, bytes);
	}
}

struct attention_keys cache_put(struct cache *c, size_t block, size_t n, const struct sequence *q,
	size_t stride, const float *rows)
{
	const size_t width = c->width, slot = c->slot ? c->slot[n] : n;
	const size_t from = (block * c->sequences + slot) * c->capacity * width;
	float *k = c->k + from, *v = c->v + from;

	for (size_t i = 0; i < q->length; i++, rows += stride) {
		memcpy(k + (q->past + i) * width, rows, width * sizeof *rows);
		memcpy(v + (q->past + i) * width, rows + width, width * sizeof *rows);
	}
	return (struct attention_keys){ q->past + q->length, width, k, v, NULL };
}
