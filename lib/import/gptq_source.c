/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gptq_source.c -- see gptq_source.h */
#include "import/gptq_source.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"

enum { WORD = 32, LANES = 8 };
enum said { SAID_NOTHING, SAID_NO, SAID_YES };

/* The configuration, which is the same for all layers. */
struct gptq {
	bool awq;
	int bits;
	long group;			/* 0: whole rows */
	bool less;			/* zero points are stored as z - 1 */
	enum said symmetric, reordered;
};

/* A layer while it is read. */
struct reading {
	struct packed_layer *l;
	const struct gptq *how;
	size_t dim[2];
	struct source_layer y;
};

#define REFUSE(text, ...) die("%s: %s" text, p->config_name, p->key, __VA_ARGS__)

/* --- quantization_config --- */

static long integer_at(const struct packed *p, const char *key)
{
	const json_t *v = json_object_get(p->config, key);

	if (!json_is_integer(v) || json_integer_value(v) < -1 || json_integer_value(v) > LINEAR_MAX)
		REFUSE("%s: expected a whole number", key);
	return (long)json_integer_value(v);
}

static enum said said_at(const struct packed *p, const char *key)
{
	const json_t *v = json_object_get(p->config, key);

	if (v && !json_is_boolean(v) && !json_is_null(v))
		REFUSE("%s: expected true or false", key);
	return json_is_true(v) ? SAID_YES : json_is_false(v) ? SAID_NO : SAID_NOTHING;
}

/* The text of the first of these keys that has one; NULL: none. */
static const char *text_at(const struct packed *p, const char *const keys[])
{
	const char *y = NULL;

	for (; *keys && !y; keys++)
		y = json_string_value(json_object_get(p->config, *keys));
	return y;
}

static struct gptq *open_both(struct packed *p)
{
	struct gptq *c = p->data = xalloc(1, sizeof *c);

	c->bits = (int)integer_at(p, "bits");
	c->group = integer_at(p, "group_size");
	if (!c->group)
		REFUSE("group_size is %ld, expected -1 or a number of columns", c->group);
	if (c->group < 0)
		c->group = 0;
	return c;
}

/* Refuses settings for single layers, except "-:...", which leaves layers plain. */
static void check_dynamic(const struct packed *p)
{
	json_t *dynamic = json_object_get(p->config, "dynamic"), *value;
	const char *pattern;

	json_object_foreach(dynamic, pattern, value)
		if (strncmp(pattern, "-:", 2) && json_object_size(value))
			REFUSE("dynamic: '%s': settings for single layers are not supported, expected one "
				"for all layers", pattern);
}

static void open_gptq(struct packed *p)
{
	static const char *const formats[] = { "checkpoint_format", "format", NULL };
	static const char *const words[] = { "pack_dtype", NULL };
	const char *format = text_at(p, formats), *word = text_at(p, words);
	struct gptq *c = open_both(p);

	if (c->bits != 2 && c->bits != 3 && c->bits != 4 && c->bits != 8)
		REFUSE("bits is %d, expected 2, 3, 4 or 8", c->bits);
	if (format && strcmp(format, "gptq") && strcmp(format, "gptq_v2"))
		REFUSE("checkpoint_format is '%s', expected 'gptq' or 'gptq_v2'", format);
	if (said_at(p, "is_marlin_format") == SAID_YES)
		REFUSE("is_marlin_format is %s, expected codes in GPTQ's order", "true");
	if (word && strcmp(word, "int32"))
		REFUSE("pack_dtype is '%s', expected 'int32'", word);
	check_dynamic(p);
	c->less = !format || !strcmp(format, "gptq");
	c->symmetric = said_at(p, "sym");
	c->reordered = said_at(p, "desc_act");
}

static void open_awq(struct packed *p)
{
	static const char *const versions[] = { "version", "checkpoint_format", "format", NULL };
	const char *version = text_at(p, versions);
	struct gptq *c = open_both(p);

	if (c->bits != 4)
		REFUSE("bits is %d, expected 4", c->bits);
	if (version && strcasecmp(version, "gemm"))
		REFUSE("version is '%s', expected 'gemm'", version);
	c->awq = true;
	c->symmetric = said_at(p, "zero_point") == SAID_NO ? SAID_YES : SAID_NOTHING;
}

static void close_config(struct packed *p)
{
	free(p->data);
}

static void shape_of(struct packed_layer *l, size_t dim[2])
{
	const struct gptq *c = l->p->data;
	const struct safetensors_raw t = packed_member_data(l, "qweight", "I32", 2, (size_t[]){ 0, 0 });
	const size_t bits = (size_t)c->bits;

	dim[0] = c->awq ? t.dim[1] * LANES : t.dim[1];
	dim[1] = c->awq ? t.dim[0] : t.dim[0] * WORD / bits;
	if (!dim[0] || !dim[1] || dim[0] > LINEAR_MAX || dim[1] > LINEAR_MAX ||
	    (!c->awq && t.dim[0] * WORD % bits))
		packed_refuse(l, "qweight", "its shape is [%zu, %zu], expected words filled by codes of %d "
			"bits", t.dim[0], t.dim[1], c->bits);
}

/* --- a layer --- */

/* The position of the code of an output among the codes of its words. */
static size_t place_of(const struct gptq *c, size_t row)
{
	static const size_t lane[LANES] = { 0, 4, 1, 5, 2, 6, 3, 7 };

	return c->awq ? row / LANES * LANES + lane[row % LANES] : row;
}

static void read_scales(struct reading *r)
{
	const size_t dim[] = { linear_groups(r->dim[1], r->how->group), r->dim[0] };
	char *format = xformat("uint%d", r->how->bits);
	enum scale_type type;
	float *scale = packed_floats(r->l, "scales", 2, dim, &type);
	struct format f;

	format_parse(&f, format);
	format_scales(&f, type);
	r->y = source_layer_make(r->dim[0], r->dim[1], &f, r->how->group);
	for (size_t row = 0; row < dim[1]; row++)
		for (size_t g = 0; g < dim[0]; g++)
			r->y.codes.scale[row * dim[0] + g] = scale[g * dim[1] + row];
	free(scale);
	free(format);
}

/* Checks that all zero points are the middle code, if the configuration specifies symmetric codes. */
static void check_symmetric(const struct reading *r)
{
	const struct codes *c = &r->y.codes;
	const unsigned middle = 1U << (r->how->bits - 1);
	size_t wrong = c->scales, moved = 0;

	for (size_t k = c->scales; k--; ) {
		if (c->zero[k] != middle)
			wrong = k;
		moved += c->zero[k] == (r->how->less ? middle + 1 : middle - 1);
	}
	if (wrong == c->scales)
		return;
	packed_refuse(r->l, "qzeros", "the zero point of row %zu, group %zu is %u, expected %u of "
		"symmetric codes; %s would fit", wrong / c->groups, wrong % c->groups, c->zero[wrong],
		middle, r->how->awq ? "'zero_point': true" : moved < c->scales ? "'sym': false" :
		r->how->less ? "checkpoint_format 'gptq_v2'" : "checkpoint_format 'gptq'");
}

static void read_zeros(struct reading *r)
{
	const struct codes *c = &r->y.codes;
	const size_t bits = (size_t)r->how->bits, words = ceil_div(c->out * bits, WORD);
	const uint32_t *word = packed_member_data(r->l, "qzeros", "I32", 2,
		(size_t[]){ c->groups, words }).data;

	for (size_t k = 0; k < c->scales; k++) {
		const size_t row = k / c->groups, g = k % c->groups;
		const unsigned z = packed_field(word + g * words, 1, place_of(r->how, row) * bits,
			r->how->bits) + r->how->less;

		if (z >> bits)
			packed_refuse(r->l, "qzeros", "the zero point of row %zu, group %zu is %u, "
				"beyond codes of %d bits; checkpoint_format 'gptq_v2' would fit", row, g, z,
				r->how->bits);
		c->zero[k] = (uint8_t)z;
	}
	if (r->how->symmetric == SAID_YES)
		check_symmetric(r);
}

static void read_codes(struct reading *r)
{
	const struct codes *c = &r->y.codes;
	const size_t bits = (size_t)r->how->bits;
	const bool awq = r->how->awq;
	const size_t dim[] = { awq ? c->in : c->in * bits / WORD, awq ? c->out / LANES : c->out };
	const uint32_t *word = packed_member_data(r->l, "qweight", "I32", 2, dim).data;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t row = 0; row < c->out; row++) {
		const size_t at = place_of(r->how, row) * bits;

		for (size_t i = 0; i < c->in; i++)
			c->codes[row * c->in + i] = (uint8_t)(awq ?
				packed_field(word + i * dim[1], 1, at, r->how->bits) :
				packed_field(word + row, dim[1], i * bits, r->how->bits));
	}
}

static void read_order(struct reading *r)
{
	struct codes *c = &r->y.codes;
	const int32_t *index;

	if (!packed_has(r->l, "g_idx") && r->how->reordered != SAID_YES)
		return;
	index = packed_member_data(r->l, "g_idx", "I32", 1, &c->in).data;
	for (size_t i = 0; i < c->in; i++) {
		const size_t usual = c->group ? i / (size_t)c->group : 0;

		if (index[i] < 0 || (size_t)index[i] >= c->groups)
			packed_refuse(r->l, "g_idx", "column %zu is in group %d of %zu", i, index[i],
				c->groups);
		if ((size_t)index[i] != usual && r->how->reordered == SAID_NO)
			packed_refuse(r->l, "g_idx", "column %zu is in group %d, expected %zu where "
				"'desc_act' is false", i, index[i], usual);
		c->group_index[i] = index[i];
		c->needs_group_index |= (size_t)index[i] != usual;
	}
}

static struct source_layer read_layer(struct packed_layer *l, const size_t dim[2])
{
	struct reading r = { .l = l, .how = l->p->data, .dim = { dim[0], dim[1] } };

	read_scales(&r);
	read_zeros(&r);
	read_codes(&r);
	if (!r.how->awq)
		read_order(&r);
	return r.y;
}

static const char *const marks[] = { "qweight", NULL };
static const char *const names[] = { "weight", "qweight", "qzeros", "scales", "g_idx", NULL };

const struct packed_kind gptq_source = { "gptq", marks, names, open_gptq, close_config, shape_of,
	read_layer };
const struct packed_kind awq_gemm_source = { "awq", marks, names, open_awq, close_config, shape_of,
	read_layer };
