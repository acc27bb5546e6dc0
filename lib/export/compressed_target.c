/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_target.c -- see compressed_target.h */
#include "export/compressed_target.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "export/compressed_name.h"
#include "export/export_codes.h"
#include "export/export_scales.h"
#include "export/folder_target.h"
#include "export/layer_scheme.h"
#include "model/layer_ref.h"

enum { WORD = 32, COLUMNS = LINEAR_COLUMNS };

/* Settings of all layers, which end() writes. */
struct compressed {
	struct group { struct compressed_scheme scheme; json_t *names; } *group;
	size_t groups;
	json_t *ignore;			/* names of linear layers that are not quantized */
	bool head;			/* the head is quantized */
	struct format fp8;
	struct export_change change;
	/* For each input that layers share (model/layer_ref.h): the first layer that a loader fuses. */
	struct fused { char *name; size_t group; float divisor; } *fused;
	struct fused *experts;		/* for each block: the first layer of an expert */
	struct clash { char *first; size_t n; } schemes, divisors;	/* pairs of layers that differ */
};

enum { PLAIN = 0 };		/* of fused.group, which counts groups from 1 */

/* A tensor while it is written. */
struct packing {
	struct export *e;
	const struct export_weight *w;
	const struct compressed_scheme *scheme;
	struct export_scales scales;
};

/* columns 0: a vector of `rows` elements */
static void put(const struct packing *p, const char *member, const char *dtype, size_t element, size_t rows,
	size_t columns, const void *data)
{
	folder_put(p->e, p->w->name, member, (struct safetensors_data){ .dtype = dtype, .element = element,
		.rank = columns ? 2 : 1, .dim = { rows, columns }, .data = data });
}

/* --- scales --- */

static void put_scales(const struct packing *p)
{
	const size_t dim[] = { p->scales.rows, p->scales.groups };
	struct compressed *c = p->e->data;
	float *rounded = export_scales_round(&p->scales, p->e->options.dtype, "--dtype f32 holds it",
		&c->change);
	char *name = xformat("%s.weight_scale", p->w->name);

	folder_put_plain(p->e, name, 2, dim, rounded);
	free(name);
	free(rounded);
}

/* Scales of 8-bit formats. vLLM reads them as floats for any dtype of the model. */
static void put_wide_scales(const struct packing *p)
{
	const bool tensor = p->scheme->strategy == COMPRESSED_TENSOR;
	struct compressed *c = p->e->data;
	float *scale = export_scales_round(&p->scales, HALF_NONE, "", &c->change);

	put(p, "weight_scale", "F32", 4, p->scales.rows, tensor ? 0 : p->scales.groups, scale);
	free(scale);
	if (p->scheme->inputs == COMPRESSED_STATIC)
		put(p, "input_scale", "F32", 4, 1, 0, p->w->layer->linear.input.scale);
}

/* Scales that are powers of two, as exponents. */
static void put_exponents(const struct packing *p)
{
	const size_t n = p->scales.rows * p->scales.groups;
	uint8_t *y = xalloc(n, 1);

	for (size_t i = 0; i < n; i++)
		y[i] = (uint8_t)(ilogbf(p->scales.scale[i]) + 127);
	put(p, "weight_scale", p->scheme->format->scale_dtype, 1, p->scales.rows, p->scales.groups, y);
	free(y);
}

/* Scales of e4m3fn, and their divisor. */
static void put_divided(const struct packing *p)
{
	const struct compressed *c = p->e->data;
	const size_t n = p->scales.rows * p->scales.groups;
	uint8_t *y = xalloc(n, 1);

	format_encode_group(&c->fp8, n, y, p->scales.scale, 1, 0);
	put(p, "weight_scale", p->scheme->format->scale_dtype, 1, p->scales.rows, p->scales.groups, y);
	put(p, "weight_global_scale", "F32", 4, 1, 0, p->w->layer->linear.scale_tensor);
	free(y);
}

static void put_all_scales(const struct packing *p)
{
	const struct compressed_scheme *s = p->scheme;

	if (s->format->divided)
		put_divided(p);
	else if (s->format->group)
		put_exponents(p);
	else if (s->format->layout == COMPRESSED_BYTES && s->bits == 8)
		put_wide_scales(p);
	else
		put_scales(p);
}

/* --- codes --- */

/* Packs signed values + 2^(b-1). These are the codes of uint<b>; codes of int<b> are one less. */
static void pack_row(const struct packing *p, size_t row, uint32_t *y)
{
	const int bits = p->scheme->bits;
	size_t of_layer;
	const struct linear *l = export_scales_layer(&p->scales, row, &of_layer);
	const uint8_t more = export_code_offset(l);

	for (size_t i = 0; i < p->w->columns; i += COLUMNS) {
		const size_t n = min(p->w->columns - i, COLUMNS);
		uint8_t unpacked[COLUMNS + WORD];
		const uint8_t *code = linear_codes(l, of_layer, i, n, unpacked);

		for (size_t j = 0; j < n; j++)
			export_put_bits(y, 1, (i + j) * (size_t)bits, bits, (uint8_t)(code[j] + more));
	}
}

static uint32_t *pack_codes(const struct packing *p, size_t words)
{
	uint32_t *y = xalloc(p->w->rows * words, sizeof *y);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t row = 0; row < p->w->rows; row++)
		pack_row(p, row, y + row * words);
	return y;
}

static void put_zeros(const struct packing *p)
{
	const int bits = p->scheme->bits;
	const size_t words = ceil_div(p->scales.rows * (size_t)bits, WORD);
	uint32_t *y = xalloc(words * p->scales.groups, sizeof *y);

	for (size_t row = 0; row < p->scales.rows; row++)
		for (size_t g = 0; g < p->scales.groups; g++) {
			size_t of_layer;
			const struct linear *l = export_scales_layer(&p->scales, row, &of_layer);

			export_put_bits(y + g, p->scales.groups, row * (size_t)bits, bits,
				export_zero(l, of_layer, g));
		}
	put(p, "weight_zero_point", "I32", 4, words, p->scales.groups, y);
	free(y);
}

static void put_words(const struct packing *p)
{
	const size_t words = ceil_div(p->w->columns * (size_t)p->scheme->bits, WORD);
	const int64_t shape[] = { (int64_t)p->w->rows, (int64_t)p->w->columns };
	uint32_t *y = pack_codes(p, words);

	put(p, "weight_packed", "I32", 4, p->w->rows, words, y);
	put(p, "weight_shape", "I64", 8, 2, 0, shape);
	if (p->scheme->asymmetric)
		put_zeros(p);
	free(y);
}

/* Two codes per byte are eight codes per word. */
static void put_pairs(const struct packing *p)
{
	uint32_t *y = pack_codes(p, p->w->columns / 8);

	put(p, "weight_packed", "U8", 1, p->w->rows, p->w->columns / 2, y);
	free(y);
}

/* One byte per weight: an integer or FP8. */
static void put_bytes(const struct packing *p)
{
	const struct compressed *c = p->e->data;
	const struct compressed_format *f = p->scheme->format;
	const size_t columns = p->w->columns;
	uint8_t *y = xalloc(p->w->rows * columns, 1);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t row = 0; row < p->w->rows; row++) {
		size_t of_layer;
		const struct linear *l = export_scales_layer(&p->scales, row, &of_layer);

		for (size_t i = 0; i < columns; i += COLUMNS) {
			const size_t n = min(columns - i, COLUMNS);
			uint8_t *to = y + row * columns + i;
			float u[COLUMNS];

			linear_units(l, of_layer, i, n, u);
			if (f->codes)
				format_encode_group(&c->fp8, n, to, u, 1, 0);
			for (size_t j = 0; !f->codes && j < n; j++)
				to[j] = (uint8_t)(int8_t)u[j];
		}
	}
	put(p, f->member, f->dtype, 1, p->w->rows, columns, y);
	free(y);
}

/* --- the target --- */

static void begin(struct export *e)
{
	struct compressed *c = e->data = xalloc(1, sizeof *c);

	c->ignore = json_array();
	c->fused = xalloc(config_inputs(e->config), sizeof *c->fused);
	c->experts = xalloc(config_last(e->config)->blocks, sizeof *c->experts);
	format_parse(&c->fp8, "e4m3fn");
	folder_begin(e);
}

static bool same_scheme(const struct compressed_scheme *a, const struct compressed_scheme *b)
{
	return a->format == b->format && a->bits == b->bits && a->asymmetric == b->asymmetric &&
		a->strategy == b->strategy && a->group == b->group && a->inputs == b->inputs;
}

static void append_name(const struct export *e, json_t *names, const char *layer)
{
	char *name = compressed_name(e->config, layer);

	json_array_append_new(names, json_string(name));
	free(name);
}

/* The number of the scheme, from 1. */
static size_t remember(const struct export *e, const struct compressed_scheme *s, const char *name)
{
	struct compressed *c = e->data;
	size_t i = 0;

	while (i < c->groups && !same_scheme(&c->group[i].scheme, s))
		i++;
	if (i == c->groups) {
		c->group = xgrow(c->group, ++c->groups, sizeof *c->group);
		c->group[i] = (struct group){ *s, json_array() };
	}
	append_name(e, c->group[i].names, name);
	return i + 1;
}

/* Whether the layer is one that vLLM fuses: q, k and v, or gate and up. */
static bool is_fused(const struct linear_row *row)
{
	return row->role == ROLE_Q || row->role == ROLE_K || row->role == ROLE_V || row->role == ROLE_GATE ||
		row->role == ROLE_UP || row->role == ROLE_SHARED_GATE || row->role == ROLE_SHARED_UP ||
		row->role == ROLE_EXPERT_GATE || row->role == ROLE_EXPERT_UP;
}

static void clash(struct clash *c, const char *a, const char *b)
{
	if (!c->n++)
		c->first = xformat("%s and %s", a, b);
}

static void warn_clash(const struct export *e, struct clash *c, const char *what)
{
	if (c->n)
		warn("%s: vLLM fuses %s into one layer, but they %s (%zu such pairs)", e->to, c->first, what,
			c->n);
	free(c->first);
}

/* Whether the layer belongs to an expert: vLLM fuses all layers of the experts of a block. */
static bool is_expert(const struct linear_row *row)
{
	return row->role == ROLE_EXPERT_GATE || row->role == ROLE_EXPERT_UP || row->role == ROLE_EXPERT_DOWN;
}

/* Notes a layer that differs from the first of the layers that it is fused with. */
static void compare(struct compressed *c, struct fused *first, const struct export_weight *w, size_t group,
	float divisor)
{
	if (!first->name)
		*first = (struct fused){ xformat("%s", w->name), group, divisor };
	else if (first->group != group)
		clash(&c->schemes, first->name, w->name);
	else if (first->divisor != divisor)
		clash(&c->divisors, first->name, w->name);
}

/* divisor: of nvfp4, else 0. The down_proj of an expert may have a different divisor. */
static void check_fused(const struct export *e, const struct export_weight *w, size_t group, float divisor)
{
	struct compressed *c = e->data;
	struct layer_ref ref;
	const struct linear_row *row = layer_ref_find(e->config, w->layer->path, &ref) ?
		layer_ref_row(&ref) : NULL;

	if (row && is_expert(row))
		compare(c, c->experts + ref.block, w, group, 0);
	if (row && is_fused(row))
		compare(c, c->fused + layer_ref_input(e->config, &ref), w, is_expert(row) ? 0 : group,
			divisor);
}

static struct export_scales scales_of(struct export *e, const struct export_weight *w,
	const struct compressed_scheme *s)
{
	return export_scales(e, w, s->strategy == COMPRESSED_TENSOR ? 1 : w->rows,
		s->strategy == COMPRESSED_GROUP ? w->columns / s->group : 1, s->group,
		s->format->divided);
}

static void put_codes(struct export *e, const struct export_weight *w)
{
	const struct compressed_scheme scheme = layer_scheme(e, w);
	struct packing p = { .e = e, .w = w, .scheme = &scheme, .scales = scales_of(e, w, &scheme) };

	switch (scheme.format->layout) {
	case COMPRESSED_WORDS:	put_words(&p); break;
	case COMPRESSED_BYTES:	put_bytes(&p); break;
	case COMPRESSED_PAIRS:	put_pairs(&p); break;
	}
	put_all_scales(&p);
	check_fused(e, w, remember(e, &scheme, w->name),
		scheme.format->divided ? *w->layer->linear.scale_tensor : 0);
	export_scales_free(&p.scales);
}

static void weight(struct export *e, const struct export_weight *w)
{
	struct compressed *c = e->data;

	if (export_quantized(w)) {
		export_check_codes(e, w);
		export_check_neighbours(e, w);
		c->head |= export_is_head(e, w);
		put_codes(e, w);
		return;
	}
	if (!w->table && w->rank == 2 && strcmp(w->name, "lm_head"))
		append_name(e, c->ignore, w->name);
	check_fused(e, w, PLAIN, 0);
	folder_weight(e, w);
}

static json_t *quantization(struct export *e)
{
	struct compressed *c = e->data;
	json_t *groups = json_object();
	/* vision-language classes have layers that are not in the checkpoint */
	const bool by_name = c->groups > 1 || e->config->vision.class;
	bool mixed = false;

	/* A tied head is also a layer when the model runs. Newer classes name embed_out of GPT-NeoX
	 * lm_head. */
	if (!c->head)
		append_name(e, c->ignore, "lm_head");
	for (size_t i = 0; i < c->groups; i++) {
		char *name = xformat("group_%zu", i);
		json_t *names = c->group[i].names;

		mixed |= c->group[i].scheme.format != c->group[0].scheme.format;
		json_object_set_new(groups, name, layer_scheme_group(&c->group[i].scheme,
			by_name ? json_incref(names) : json_pack("[s]", "Linear")));
		json_decref(names);
		free(name);
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:n, s:n, s:{}, s:{}, s:o, s:o}",
		"quant_method", "compressed-tensors", "version", "0.20.0", "format",
		mixed ? "mixed-precision" : c->group[0].scheme.format->name,
		"quantization_status", "compressed",
		"global_compression_ratio", "kv_cache_scheme", "sparsity_config", "transform_config",
		"ignore", c->ignore, "config_groups", groups);
}

static void end(struct export *e)
{
	struct compressed *c = e->data;

	if (!c->groups)
		die("%s: has no quantized layer; --to hf writes plain ones", e->from);
	folder_end(e, quantization(e));
	export_change_warn(e, &c->change);
	warn_clash(e, &c->schemes, "have different schemes, or one is plain: vLLM refuses that");
	warn_clash(e, &c->divisors, "have different divisors of scales (weight_global_scale): vLLM uses "
		"one for both, which changes weights");
	for (size_t i = 0; i < config_inputs(e->config); i++)
		free(c->fused[i].name);
	for (size_t i = 0; i < config_last(e->config)->blocks; i++)
		free(c->experts[i].name);
	free(c->fused);
	free(c->experts);
	free(c->group);
	free(c);
}

const struct target compressed_target = { "compressed-tensors",
	"a folder of codes, for vLLM", "blocks", begin, weight, folder_tensor,
	end };
