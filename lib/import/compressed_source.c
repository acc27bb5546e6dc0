/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_source.c -- see compressed_source.h */
#include "import/compressed_source.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "import/compressed_config.h"

enum { WORD = 32 };

/* A layer while it is read. */
struct reading {
	struct packed_layer *l;
	const struct compressed_rule *rule;
	size_t dim[2];
	bool dense;			/* codes lie across borders of words */
	struct source_layer y;
};

static void open_config(struct packed *p)
{
	p->data = compressed_config_open(p->config_name, p->config);
}

static void close_config(struct packed *p)
{
	compressed_config_close(p->data);
}

static const struct compressed_rule *rule_of(const struct packed_layer *l)
{
	const struct compressed_rule *r = compressed_config_rule(l->p->data, l->name);

	if (!r)
		die("%s: %s: is stored packed, but is in no group of quantization_config, or is in 'ignore'",
			l->p->config_name, l->name);
	return r;
}

/* A checkpoint that is not compressed has scales, but its weights are floats. */
static void check_stored(const struct packed_layer *l)
{
	static const char *const floats[] = { "F32", "F16", "BF16" };
	const char *status = json_string_value(json_object_get(l->p->config, "quantization_status"));

	for (size_t i = 0; !packed_has(l, "weight_packed") && i < sizeof floats / sizeof *floats; i++)
		if (packed_is(l, "weight", floats[i]))
			packed_refuse(l, "weight", "is stored as %s, expected codes; quantization_status is "
				"'%s'", floats[i], status ? status : "");
}

static void shape_of(struct packed_layer *l, size_t dim[2])
{
	const struct compressed_format *f = rule_of(l)->scheme.format;
	struct safetensors_raw t;

	check_stored(l);
	if (f->layout == COMPRESSED_WORDS) {
		const int64_t *shape = packed_member_data(l, "weight_shape", "I64", 1, (size_t[]){ 2 }).data;

		if (shape[0] < 1 || shape[1] < 1 || shape[0] > LINEAR_MAX || shape[1] > LINEAR_MAX)
			packed_refuse(l, "weight_shape", "is [%jd, %jd], expected rows and columns",
				(intmax_t)shape[0], (intmax_t)shape[1]);
		dim[0] = (size_t)shape[0], dim[1] = (size_t)shape[1];
		return;
	}
	t = packed_member_data(l, f->member, f->dtype, 2, (size_t[]){ 0, 0 });
	dim[0] = t.dim[0];
	dim[1] = f->layout == COMPRESSED_PAIRS ? 2 * t.dim[1] : t.dim[1];
	if (!dim[0] || !dim[1])
		die("%s: %s: has no elements", l->p->config_name, l->name);
}

/* --- parameters --- */

static long group_of(const struct compressed_rule *r)
{
	switch (r->scheme.strategy) {
	case COMPRESSED_TENSOR:		return -1;
	case COMPRESSED_CHANNEL:	return 0;
	case COMPRESSED_GROUP:		return (long)r->scheme.group;
	default:			return (long)r->block[1];
	}
}

static struct format format_of(const struct compressed_scheme *s)
{
	struct format f;
	char *name = s->format->codes ? xformat("%s", s->format->codes) : xformat("uint%d", s->bits);

	format_parse(&f, name);
	if (s->format->group)
		format_scales(&f, s->format->scales);
	free(name);
	return f;
}

static void scale_extents(const struct reading *r, size_t dim[2])
{
	dim[0] = r->dim[0];
	dim[1] = linear_groups(r->dim[1], group_of(r->rule));
}

static void read_divisor(struct reading *r)
{
	float *divisor = packed_floats(r->l, "weight_global_scale", -1, (size_t[]){ 1 }, NULL);

	r->y.codes.scale_tensor = *divisor;
	free(divisor);
}

/* Scales stored as codes of 8 bits. */
static void read_coded_scales(struct reading *r, const struct format *f)
{
	const struct compressed_format *how = r->rule->scheme.format;
	const bool exponents = how->scales == SCALE_E8M0;
	struct format fp8;
	const uint8_t *code;
	size_t dim[2];

	format_parse(&fp8, "e4m3fn");
	r->y = source_layer_make(r->dim[0], r->dim[1], f, group_of(r->rule));
	scale_extents(r, dim);
	code = packed_member_data(r->l, "weight_scale", how->scale_dtype, 2, dim).data;
	for (size_t i = 0; i < r->y.codes.scales; i++) {
		if (code[i] == 255 || (!exponents && code[i] == 127))
			packed_refuse(r->l, "weight_scale", "holds code %u, which is NaN", code[i]);
		r->y.codes.scale[i] = exponents ? ldexpf(1, code[i] - 127) : fp8.grid[code[i]];
	}
	if (how->divided)
		read_divisor(r);
}

/* Makes the layer with its scales. */
static void read_scales(struct reading *r)
{
	const size_t rows = r->rule->scheme.strategy == COMPRESSED_BLOCK ? r->rule->block[0] : 1;
	const struct format f = format_of(&r->rule->scheme);

	if (r->rule->scheme.format->group)
		read_coded_scales(r, &f);
	else
		r->y = packed_scaled(r->l, "weight_scale", r->dim, f, group_of(r->rule), rows);
}

static void read_order(struct reading *r)
{
	struct codes *c = &r->y.codes;
	const int32_t *index;

	if (!r->rule->indexed)
		return;
	index = packed_member_data(r->l, "weight_g_idx", "I32", 1, &r->dim[1]).data;
	memcpy(c->group_index, index, r->dim[1] * sizeof *index);
	for (size_t i = 0; i < r->dim[1]; i++)
		c->needs_group_index |= c->group < 1 || (size_t)index[i] != i / (size_t)c->group;
}

static void read_inputs(struct reading *r)
{
	static const char *const left[] = { "input_scale", "input_zero_point", "input_global_scale" };
	const enum compressed_inputs how = r->rule->scheme.inputs;
	float *scale;

	for (size_t i = 0; r->rule->inputs_ignored && i < sizeof left / sizeof *left; i++)
		if (packed_has(r->l, left[i]))
			packed_skip(r->l, left[i]);
	if (how == COMPRESSED_PLAIN)
		return;
	format_parse(&r->y.input.format, r->rule->inputs_float ? "e4m3fn" : "int8");
	r->y.input.mode = how == COMPRESSED_TOKEN ? INPUT_DYNAMIC_TOKEN : INPUT_STATIC_TENSOR;
	if (how == COMPRESSED_TOKEN)
		return;
	scale = packed_floats(r->l, "input_scale", -1, (size_t[]){ 1 }, NULL);
	r->y.input_scale = *scale;
	free(scale);
}

/* --- codes --- */

/* The number of words of n fields. Before version 0.17 no field was across words. */
static size_t words_of(const struct reading *r, size_t n)
{
	const size_t bits = (size_t)r->rule->scheme.bits;

	return r->dense ? ceil_div(n * bits, WORD) : ceil_div(n, WORD / bits);
}

static uint8_t field(const struct reading *r, const uint32_t *word, size_t stride, size_t i)
{
	const int bits = r->rule->scheme.bits;
	const size_t each = WORD / (size_t)bits;

	return (uint8_t)packed_field(word, stride, r->dense ? i * (size_t)bits :
		i / each * WORD + i % each * (size_t)bits, bits);
}

/* Converts n signed integers to unsigned codes. An integer beyond the bits is a fatal error. */
static void shift(const struct reading *r, const char *member, size_t n, uint8_t to[], const int8_t from[])
{
	const int middle = 1 << (r->rule->scheme.bits - 1);

	for (size_t i = 0; i < n; i++) {
		if (from[i] < -middle || from[i] >= middle)
			packed_refuse(r->l, member, "holds %d, expected integers of %d bits",
				from[i], r->rule->scheme.bits);
		to[i] = (uint8_t)(from[i] + middle);
	}
}

static void read_byte_zeros(struct reading *r)
{
	const struct codes *c = &r->y.codes;
	const bool tensor = c->group < 0;
	const size_t one[] = { 1 };
	size_t dim[2];

	scale_extents(r, dim);
	shift(r, "weight_zero_point", c->scales, c->zero, packed_member_data(r->l, "weight_zero_point",
		"I8", tensor ? 1 : 2, tensor ? one : dim).data);
}

/* Zero points are packed along the rows. */
static void read_packed_zeros(struct reading *r)
{
	const struct codes *c = &r->y.codes;
	const size_t words = words_of(r, c->out);
	const uint32_t *word = packed_member_data(r->l, "weight_zero_point", "I32", 2,
		(size_t[]){ words, c->groups }).data;

	for (size_t row = 0; row < c->out; row++)
		for (size_t g = 0; g < c->groups; g++)
			c->zero[row * c->groups + g] = field(r, word + g, c->groups, row);
}

static void read_zeros(struct reading *r)
{
	const struct compressed_scheme *s = &r->rule->scheme;

	if (!s->asymmetric)
		memset(r->y.codes.zero, 1 << (s->bits - 1), r->y.codes.scales);
	else if (s->format->layout == COMPRESSED_BYTES || packed_is(r->l, "weight_zero_point", "I8"))
		read_byte_zeros(r);	/* old versions also have them with packed codes */
	else
		read_packed_zeros(r);
}

static void read_words(struct reading *r, struct safetensors_raw t)
{
	const uint32_t *word = t.data;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t row = 0; row < r->dim[0]; row++)
		for (size_t i = 0; i < r->dim[1]; i++)
			r->y.codes.codes[row * r->dim[1] + i] = field(r, word + row * t.dim[1], 1, i);
}

static void read_bytes(struct reading *r, const void *byte)
{
	const size_t n = r->dim[0] * r->dim[1];

	if (r->rule->scheme.format->codes)
		memcpy(r->y.codes.codes, byte, n);
	else
		shift(r, "weight", n, r->y.codes.codes, byte);
}

static void read_pairs(struct reading *r, const uint8_t *pair)
{
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < r->dim[0] * r->dim[1] / 2; i++) {
		r->y.codes.codes[2 * i] = pair[i] & 15;
		r->y.codes.codes[2 * i + 1] = pair[i] >> 4;
	}
}

static void read_codes(struct reading *r)
{
	const struct compressed_scheme *s = &r->rule->scheme;
	const struct compressed_format *f = s->format;
	struct safetensors_raw t = packed_member_data(r->l, f->member, f->dtype, 2,
		(size_t[]){ r->dim[0], 0 });

	switch (f->layout) {
	case COMPRESSED_WORDS:
		r->dense = compressed_config_dense(r->l->p->data, r->dim[1], s->bits, t.dim[1]);
		t = packed_member_data(r->l, f->member, f->dtype, 2,
			(size_t[]){ r->dim[0], words_of(r, r->dim[1]) });
		read_words(r, t);
		break;
	case COMPRESSED_BYTES:	read_bytes(r, t.data); break;
	case COMPRESSED_PAIRS:	read_pairs(r, t.data); break;
	}
}

static struct source_layer read_layer(struct packed_layer *l, const size_t dim[2])
{
	struct reading r = { .l = l, .rule = rule_of(l), .dim = { dim[0], dim[1] } };

	read_scales(&r);
	read_codes(&r);
	if (!r.rule->scheme.format->codes) {
		read_zeros(&r);
		read_order(&r);
	}
	read_inputs(&r);
	return r.y;
}

static const char *const marks[] = { "weight_packed", "weight_scale", NULL };
static const char *const names[] = { "weight", "weight_packed", "weight_shape", "weight_scale",
	"weight_global_scale", "weight_zero_point", "weight_g_idx", "input_scale", "input_zero_point",
	"input_global_scale", NULL };

const struct packed_kind compressed_source = { "compressed-tensors", marks, names, open_config, close_config,
	shape_of, read_layer };
