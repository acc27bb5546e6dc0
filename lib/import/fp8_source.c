/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fp8_source.c -- see fp8_source.h */
#include "import/fp8_source.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

struct fp8 {
	size_t block[2];
	bool is_static;
};

static void read_block(const struct packed *p, struct fp8 *c)
{
	const json_t *block = json_object_get(p->config, "weight_block_size");

	for (size_t i = 0; i < 2; i++) {
		const json_t *v = json_array_get(block, i);

		c->block[i] = 128;
		if (!block || json_is_null(block))
			continue;
		if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > LINEAR_MAX)
			die("%s: 'quantization_config': weight_block_size: expected two whole numbers from 1",
				p->config_name);
		c->block[i] = (size_t)json_integer_value(v);
	}
}

static void open_config(struct packed *p)
{
	const char *scheme = json_string_value(json_object_get(p->config, "activation_scheme"));
	const char *fmt = json_string_value(json_object_get(p->config, "fmt"));
	struct fp8 *c = p->data = xalloc(1, sizeof *c);

	if (fmt && strcmp(fmt, "e4m3"))
		die("%s: 'quantization_config': fmt is '%s', expected 'e4m3'", p->config_name, fmt);
	if (scheme && strcmp(scheme, "static") && strcmp(scheme, "dynamic"))
		die("%s: 'quantization_config': activation_scheme is '%s', expected 'static' or 'dynamic'",
			p->config_name, scheme);
	c->is_static = scheme && !strcmp(scheme, "static");
	if (!c->is_static)
		warn("%s: 'quantization_config': dynamic scales of groups of inputs or of all tokens are not "
			"supported: inputs are not rounded", p->config_name);
	read_block(p, c);
}

static void close_config(struct packed *p)
{
	free(p->data);
}

static void shape_of(struct packed_layer *l, size_t dim[2])
{
	const struct safetensors_raw t = packed_member_data(l, "weight", "F8_E4M3", 2, (size_t[]){ 0, 0 });

	dim[0] = t.dim[0], dim[1] = t.dim[1];
	if (!dim[0] || !dim[1])
		packed_refuse(l, "weight", "has no elements");
}

static void read_inputs(struct packed_layer *l, struct source_layer *y)
{
	const char *member = packed_has(l, "activation_scale") ? "activation_scale" : "input_scale";
	float *scale = packed_floats(l, member, -1, (size_t[]){ 1 }, NULL);

	y->input.mode = INPUT_STATIC_TENSOR;
	y->input.format = y->codes.storage;
	format_scales(&y->input.format, SCALE_F32);
	y->input_scale = *scale;
	free(scale);
}

static struct source_layer read_layer(struct packed_layer *l, const size_t dim[2])
{
	const struct fp8 *c = l->p->data;
	const char *member = packed_has(l, "weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
	const bool tensor = packed_numbers(l, member) == 1;
	struct source_layer y;
	struct format f;

	format_parse(&f, "e4m3fn");
	y = packed_scaled(l, member, dim, f, tensor ? -1 : (long)c->block[1], c->block[0]);
	memcpy(y.codes.codes, packed_member_data(l, "weight", "F8_E4M3", 2, dim).data, dim[0] * dim[1]);
	if (c->is_static)
		read_inputs(l, &y);
	return y;
}

static const char *const marks[] = { "weight_scale_inv", "weight_scale", NULL };
static const char *const names[] = { "weight", "weight_scale_inv", "weight_scale", "input_scale",
	"activation_scale", NULL };

const struct packed_kind fp8_source = { "fp8", marks, names, open_config, close_config, shape_of,
	read_layer };
