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

/* A layer on its way. */
struct reading {
	struct packed *p;
	const char *name;
	const struct compressed_rule *rule;
	size_t dim[2];
	bool dense;			/* codes cross words */
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

static const struct compressed_rule *rule_of(const struct packed *p, const char *name)
{
	const struct compressed_rule *r = compressed_config_rule(p->data, name);

	if (!r)
		die("%s: %s: is stored packed, but no group of quantization_config has it, or 'ignore' does",
			p->config_name, name);
	return r;
}

/* Of a checkpoint that is not compressed weights have scales, but are floats. */
static void check_stored(const struct packed *p, const char *name)
{
	static const char *const floats[] = { "F32", "F16", "BF16" };
	const char *status = json_string_value(json_object_get(p->config, "quantization_status"));

	for (size_t i = 0; !packed_has(p, name, "weight_packed") && i < sizeof floats / sizeof *floats; i++)
		if (packed_is(p, name, "weight", floats[i]))
			packed_refuse(p, name, "weight",
				"is stored as %s, expected codes; quantization_status is '%s'", floats[i],
				status ? status : "");
}

static void shape_of(const struct packed *p, const char *name, size_t dim[2])
{
	const enum compressed_format format = rule_of(p, name)->scheme.format;
	struct packed peek = *p;
	struct safetensors_raw t;

	check_stored(p, name);
	if (format == COMPRESSED_PACK) {
		const int64_t *shape = packed_take(&peek, name, "weight_shape", "I64", 1,
			(size_t[]){ 2 }).data;

		if (shape[0] < 1 || shape[1] < 1 || shape[0] > LINEAR_MAX || shape[1] > LINEAR_MAX)
			packed_refuse(p, name, "weight_shape", "is [%jd, %jd], expected rows and columns",
				(intmax_t)shape[0], (intmax_t)shape[1]);
		dim[0] = (size_t)shape[0], dim[1] = (size_t)shape[1];
		return;
	}
	t = format == COMPRESSED_INT || format == COMPRESSED_FLOAT ?
		packed_take(&peek, name, "weight", format == COMPRESSED_INT ? "I8" : "F8_E4M3", 2,
			(size_t[]){ 0, 0 }) :
		packed_take(&peek, name, "weight_packed", "U8", 2, (size_t[]){ 0, 0 });
	dim[0] = t.dim[0];
	dim[1] = format > COMPRESSED_FLOAT ? 2 * t.dim[1] : t.dim[1];
	if (!dim[0] || !dim[1])
		die("%s: %s: has no elements", p->config_name, name);
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

static struct format integers(const struct compressed_rule *r)
{
	struct format f;
	char *name = xformat("uint%d", r->scheme.bits);

	format_parse(&f, name);
	free(name);
	return f;
}

static void scale_extents(const struct reading *r, size_t dim[2])
{
	dim[0] = r->dim[0];
	dim[1] = linear_groups(r->dim[1], group_of(r->rule));
}

/* Makes the layer with its scales. */
static void read_scales(struct reading *r, struct format f)
{
	const size_t rows = r->rule->scheme.strategy == COMPRESSED_BLOCK ? r->rule->block[0] : 1;

	r->y = packed_scaled(r->p, r->name, "weight_scale", r->dim, f, group_of(r->rule), rows);
}

static void set_zeros(struct reading *r)
{
	memset(r->y.codes.zero, 1 << (r->rule->scheme.bits - 1), r->y.codes.scales);
}

static void read_order(struct reading *r)
{
	struct codes *c = &r->y.codes;
	const int32_t *index;

	if (!r->rule->indexed)
		return;
	index = packed_take(r->p, r->name, "weight_g_idx", "I32", 1, &r->dim[1]).data;
	memcpy(c->group_index, index, r->dim[1] * sizeof *index);
	for (size_t i = 0; i < r->dim[1]; i++)
		c->moved |= c->group < 1 || (size_t)index[i] != i / (size_t)c->group;
}

static void read_inputs(struct reading *r)
{
	static const char *const left[] = { "input_scale", "input_zero_point", "input_global_scale" };
	const enum compressed_inputs how = r->rule->scheme.inputs;
	float *scale;

	for (size_t i = 0; r->rule->inputs_left && i < sizeof left / sizeof *left; i++)
		if (packed_has(r->p, r->name, left[i]))
			packed_skip(r->p, left[i]);
	if (how == COMPRESSED_PLAIN)
		return;
	format_parse(&r->y.input.format, r->rule->inputs_float ? "e4m3fn" : "int8");
	r->y.input.mode = how == COMPRESSED_TOKEN ? INPUT_DYNAMIC_TOKEN : INPUT_STATIC_TENSOR;
	if (how == COMPRESSED_TOKEN)
		return;
	scale = packed_floats(r->p, r->name, "input_scale", -1, (size_t[]){ 1 }, NULL);
	r->y.input_scale = *scale;
	free(scale);
}

/* --- codes --- */

/* Words of n fields. Before version 0.17 none went across words. */
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

/* Signed integers of n values as ours; dies where one is beyond the bits. */
static void shift(const struct reading *r, const char *member, size_t n, uint8_t to[], const int8_t from[])
{
	const int middle = 1 << (r->rule->scheme.bits - 1);

	for (size_t i = 0; i < n; i++) {
		if (from[i] < -middle || from[i] >= middle)
			packed_refuse(r->p, r->name, member, "holds %d, expected integers of %d bits",
				from[i],
				r->rule->scheme.bits);
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
	shift(r, "weight_zero_point", c->scales, c->zero, packed_take(r->p, r->name, "weight_zero_point",
		"I8", tensor ? 1 : 2, tensor ? one : dim).data);
}

/* Packed down the rows; in old versions a byte each. */
static void read_packed_zeros(struct reading *r)
{
	const struct codes *c = &r->y.codes;
	const size_t words = words_of(r, c->out);
	const uint32_t *word;

	if (packed_is(r->p, r->name, "weight_zero_point", "I8")) {
		read_byte_zeros(r);
		return;
	}
	word = packed_take(r->p, r->name, "weight_zero_point", "I32", 2, (size_t[]){ words, c->groups }).data;
	for (size_t row = 0; row < c->out; row++)
		for (size_t g = 0; g < c->groups; g++)
			c->zero[row * c->groups + g] = field(r, word + g, c->groups, row);
}

static void set_dense(struct reading *r)
{
	const struct safetensors_raw t = packed_take(r->p, r->name, "weight_packed", "I32", 2,
		(size_t[]){ r->dim[0], 0 });

	r->dense = compressed_config_dense(r->p->data, r->dim[1], r->rule->scheme.bits, t.dim[1]);
}

static void read_packed(struct reading *r)
{
	const uint32_t *word;
	size_t words;

	if (r->rule->scheme.strategy == COMPRESSED_TENSOR || r->rule->scheme.strategy == COMPRESSED_BLOCK)
		die("%s: 'quantization_config': %s: pack-quantized has scales of groups or channels, "
			"expected one "
			"of these", r->p->config_name, r->rule->name);
	read_scales(r, integers(r->rule));
	set_dense(r);
	words = words_of(r, r->dim[1]);
	word = packed_take(r->p, r->name, "weight_packed", "I32", 2, (size_t[]){ r->dim[0], words }).data;
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t row = 0; row < r->dim[0]; row++)
		for (size_t i = 0; i < r->dim[1]; i++)
			r->y.codes.codes[row * r->dim[1] + i] = field(r, word + row * words, 1, i);
	set_zeros(r);
	if (r->rule->scheme.asymmetric)
		read_packed_zeros(r);
	read_order(r);
}

static void read_integers(struct reading *r)
{
	const struct codes *c;

	read_scales(r, integers(r->rule));
	c = &r->y.codes;
	shift(r, "weight", c->out * c->in, c->codes, packed_take(r->p, r->name, "weight", "I8", 2,
		r->dim).data);
	set_zeros(r);
	if (r->rule->scheme.asymmetric)
		read_byte_zeros(r);
	read_order(r);
}

static void read_floats(struct reading *r)
{
	struct format f;

	format_parse(&f, "e4m3fn");
	read_scales(r, f);
	memcpy(r->y.codes.codes, packed_take(r->p, r->name, "weight", "F8_E4M3", 2, r->dim).data,
		r->dim[0] * r->dim[1]);
}

/* Two codes a byte, that of the even column low. */
static void read_pairs(struct reading *r)
{
	const size_t n = r->dim[0] * r->dim[1];
	const uint8_t *pair = packed_take(r->p, r->name, "weight_packed", "U8", 2,
		(size_t[]){ r->dim[0], r->dim[1] / 2 }).data;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n / 2; i++) {
		r->y.codes.codes[2 * i] = pair[i] & 15;
		r->y.codes.codes[2 * i + 1] = pair[i] >> 4;
	}
}

static void read_fp4(struct reading *r, const char *format, const char *dtype)
{
	struct format f, fp8;
	const uint8_t *code;
	size_t dim[2];

	format_parse(&f, format);
	format_parse(&fp8, "e4m3fn");
	if (r->rule->scheme.strategy != COMPRESSED_GROUP || r->rule->scheme.group != (size_t)f.group)
		die("%s: 'quantization_config': %s: %s has groups of %ld, expected these", r->p->config_name,
			r->rule->name, format, f.group);
	r->y = source_layer_make(r->dim[0], r->dim[1], &f, group_of(r->rule));
	read_pairs(r);
	scale_extents(r, dim);
	code = packed_take(r->p, r->name, "weight_scale", dtype, 2, dim).data;
	for (size_t i = 0; i < r->y.codes.scales; i++) {
		const bool exponent = f.scales == SCALE_E8M0;

		if (code[i] == 255 || (!exponent && code[i] == 127))
			packed_refuse(r->p, r->name, "weight_scale", "holds code %u, which is NaN", code[i]);
		r->y.codes.scale[i] = exponent ? ldexpf(1, code[i] - 127) : fp8.grid[code[i]];
	}
}

static void read_nvfp4(struct reading *r)
{
	float *divisor;

	read_fp4(r, "nvfp4", "F8_E4M3");
	divisor = packed_floats(r->p, r->name, "weight_global_scale", -1, (size_t[]){ 1 }, NULL);
	r->y.codes.scale_tensor = *divisor;
	free(divisor);
}

static struct source_layer read_layer(struct packed *p, const char *name)
{
	struct reading r = { .p = p, .name = name, .rule = rule_of(p, name) };

	shape_of(p, name, r.dim);
	switch (r.rule->scheme.format) {
	case COMPRESSED_PACK:	read_packed(&r); break;
	case COMPRESSED_INT:	read_integers(&r); break;
	case COMPRESSED_FLOAT:	read_floats(&r); break;
	case COMPRESSED_MXFP4:	read_fp4(&r, "mxfp4", "U8"); break;
	case COMPRESSED_NVFP4:	read_nvfp4(&r); break;
	}
	if (r.rule->scheme.format == COMPRESSED_PACK)
		packed_take(p, name, "weight_shape", "I64", 1, (size_t[]){ 2 });
	read_inputs(&r);
	return r.y;
}

static const char *const marks[] = { "weight_packed", "weight_scale", NULL };
static const char *const names[] = { "weight", "weight_packed", "weight_shape", "weight_scale",
	"weight_global_scale", "weight_zero_point", "weight_g_idx", "input_scale", "input_zero_point",
	"input_global_scale", NULL };

const struct packed_kind compressed_source = { "compressed-tensors", marks, names, open_config, close_config,
	shape_of, read_layer };
