/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gptq_target.c -- see gptq_target.h */
#include "export/gptq_target.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "export/export_codes.h"
#include "export/export_scales.h"
#include "export/folder_target.h"
#include "export/layer_scheme.h"
#include "model/layer_ref.h"
#include "num/code_form.h"

enum { WORD = 32, COLUMNS = LINEAR_COLUMNS };

/* Settings of all layers, which end() writes. */
struct gptq {
	char *first;			/* the first quantized layer; NULL: none */
	int bits;
	/* The first layer with several groups per row, and the first with one; columns of a group; whether
	 * layers of the same kind have other columns. */
	struct sizes { char *name; size_t columns; bool differ; } several, one;
	bool asymmetric, reordered, head;	/* whether any layer is */
	struct zeros { char *name; size_t groups, words; } *symmetric;	/* layers with qzeros written last */
	size_t symmetrics;
	struct export_change change;
};

#define REFUSE(text, ...) die("%s: %s: " text, e->from, w->layer->path, __VA_ARGS__)

/* --- checks --- */

static void check_format(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	const struct format *f = &l->storage;

	if (l->compute.kind && !e->options.skip_compute)
		REFUSE("is rounded to %s, which GPTQ cannot express; --to %s writes "
			"it, --skip-compute with --allow-rounding leaves it out", l->compute.name,
			layer_scheme_has(&l->compute) ? "compressed-tensors" : "hf");
	if (!f->integers || (f->bits != 2 && f->bits != 3 && f->bits != 4 && f->bits != 8))
		REFUSE("is %s, which GPTQ cannot express: it has int and uint of 2, 3, 4 and 8 bits; "
			"--to %s holds it", f->name, code_has_scales(f) ? "gguf" : !code_is_single(f) ? "hf" :
			f->integers || f->group ? "compressed-tensors" :
			"compressed-tensors or gguf may hold it, --to hf");
	if (w->columns * (size_t)f->bits % WORD || w->rows * (size_t)f->bits % WORD)
		REFUSE("has %zu rows and %zu columns: a row or column of codes of %d bits does not fill "
			"words of %d bits, as --to gptq needs; --to compressed-tensors pads them", w->rows,
			w->columns, f->bits, WORD);
}

/* Loaders sort columns by group. Checks that all groups then have the same number of columns. */
static void check_order(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	const size_t group = (size_t)l->group;
	size_t *count = xalloc(l->groups, sizeof *count);

	for (size_t i = 0; i < l->in; i++)
		count[linear_group(l, i)]++;
	for (size_t g = 0; g < l->groups; g++)
		if (count[g] != group)
			REFUSE("its group %zu has %zu columns (group_index), --to gptq needs %zu in each; "
				"--to hf writes it plainly", g, count[g], group);
	free(count);
	for (size_t i = 1; i < w->n; i++)
		for (size_t k = 0; k < l->in; k++)
			if (linear_group(&w->layer[i].linear, k) != linear_group(l, k))
				die("%s: %s: is one tensor of the checkpoint with %s, but has other groups "
					"(group_index); dpq-run --reorder gar or none makes the same",
					e->from, w->layer[i].path, w->layer->path);
}

static bool has_order(const struct export_weight *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->layer[i].linear.group > 0 && !export_neighbours(&w->layer[i].linear))
			return true;
	return false;
}

/* Checks that all layers have one group size, or whole rows (-1). */
static void check_groups(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	struct gptq *q = e->data;
	struct sizes *s = l->groups > 1 ? &q->several : &q->one;
	const size_t columns = l->groups > 1 ? (size_t)l->group : l->in;

	if (l->groups > 1 && l->in % columns)
		REFUSE("has %zu columns, not a multiple of its group of %zu, as --to gptq needs; expected "
			"another group, or dpq-run --group channel", l->in, columns);
	if (!s->name)
		*s = (struct sizes){ xformat("%s", w->layer->path), columns, false };
	s->differ |= s->columns != columns;
	if (q->several.name && (q->several.differ || (q->one.name &&
	    (q->one.differ || q->one.columns != q->several.columns))))
		REFUSE("has groups of %zu columns, unlike %s: this target writes one size for all layers; "
			"--to compressed-tensors supports several sizes", columns,
			s->differ || !q->one.name ? s->name : s == &q->one ? q->several.name : q->one.name);
}

/* Checks the settings that GPTQ has once for all layers. */
static void check_same(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	struct gptq *q = e->data;

	if (!q->first) {
		q->first = xformat("%s", w->layer->path);
		q->bits = l->storage.bits;
	}
	if (q->bits != l->storage.bits)
		REFUSE("is %s, but %s has %d bits: this target writes one width for all layers; "
			"--to compressed-tensors supports several", l->storage.name, q->first, q->bits);
	check_groups(e, w);
}

/* Whether loaders expect codes for this layer. */
static bool in_block(const struct export *e, const struct export_weight *w)
{
	struct layer_ref ref;
	const struct linear_row *row = layer_ref_find(e->config, w->layer->path, &ref) ?
		layer_ref_row(&ref) : NULL;

	return row && !layer_ref_is_visual(e->config, &ref) && row->role != ROLE_ROUTER &&
		row->role != ROLE_SHARED_SWITCH;
}

static void check(const struct export *e, const struct export_weight *w)
{
	struct gptq *q = e->data;

	export_check_codes(e, w);
	folder_check_inputs(e, w);
	check_format(e, w);
	if (!in_block(e, w) && !export_is_head(e, w))
		REFUSE("is quantized, but --to gptq has no codes for this layer; dpq-run --layers %s",
			"leaves it unquantized");
	check_same(e, w);
	if (has_order(w)) {
		check_order(e, w);
		q->reordered = true;
	}
	q->head |= export_is_head(e, w);
}

/* --- tensors --- */

/* columns 0: a vector of `rows` elements */
static void put(struct export *e, const char *name, const char *member, size_t rows, size_t columns,
	const void *data)
{
	folder_put(e, name, member, (struct safetensors_data){ .dtype = "I32", .element = 4,
		.rank = columns ? 2 : 1, .dim = { rows, columns }, .data = data });
}

static void put_codes(struct export *e, const struct export_scales *s)
{
	const struct export_weight *w = s->w;
	const size_t bits = (size_t)s->view->storage.bits, words = w->columns * bits / WORD;
	uint32_t *y = xalloc(words * w->rows, sizeof *y);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t row = 0; row < w->rows; row++) {
		size_t of_layer;
		const struct linear *l = export_scales_layer(s, row, &of_layer);

		for (size_t i = 0; i < w->columns; i += COLUMNS) {
			const size_t n = min(w->columns - i, COLUMNS);
			uint8_t unpacked[COLUMNS + WORD];
			const uint8_t *code = linear_codes(l, of_layer, i, n, unpacked);

			for (size_t j = 0; j < n; j++)
				export_put_bits(y + row, w->rows, (i + j) * bits, (int)bits,
					(uint8_t)(code[j] + export_code_offset(l)));
		}
	}
	put(e, w->name, "qweight", words, w->rows, y);
	free(y);
}

static void put_scales(struct export *e, const struct export_scales *s)
{
	struct gptq *q = e->data;
	const size_t rows = s->rows, groups = s->groups;
	float *rounded = export_scales_round(s, HALF_F16, "--to compressed-tensors --dtype f32 holds it",
		&q->change);
	uint16_t *half = xalloc(rows * groups, sizeof *half), *y = xalloc(rows * groups, sizeof *y);

	half_narrow(rows * groups, half, rounded, HALF_F16);
	for (size_t row = 0; row < rows; row++)
		for (size_t g = 0; g < groups; g++)
			y[g * rows + row] = half[row * groups + g];
	folder_put(e, s->w->name, "scales", (struct safetensors_data){ .dtype = "F16", .element = 2,
		.rank = 2, .dim = { groups, rows }, .data = y });
	free(y);
	free(half);
	free(rounded);
}

static void put_zeros(struct export *e, const struct export_scales *s)
{
	const size_t bits = (size_t)s->view->storage.bits, words = s->rows * bits / WORD;
	struct gptq *q = e->data;
	uint32_t *y;

	if (export_is_symmetric(s->w)) {
		q->symmetric = xgrow(q->symmetric, q->symmetrics + 1, sizeof *q->symmetric);
		q->symmetric[q->symmetrics++] = (struct zeros){ xformat("%s", s->w->name), s->groups, words };
		return;
	}
	q->asymmetric = true;
	y = xalloc(s->groups * words, sizeof *y);
	for (size_t row = 0; row < s->rows; row++) {
		size_t of_layer;
		const struct linear *l = export_scales_layer(s, row, &of_layer);

		for (size_t g = 0; g < s->groups; g++)
			export_put_bits(y + g * words, 1, row * bits, (int)bits, export_zero(l, of_layer, g));
	}
	put(e, s->w->name, "qzeros", s->groups, words, y);
	free(y);
}

static void put_symmetric(struct export *e, const struct zeros *z)
{
	const struct gptq *q = e->data;
	const uint32_t zero = (1U << (q->bits - 1)) - !q->asymmetric;
	const size_t bits = (size_t)q->bits;
	uint32_t *y = xalloc(z->groups * z->words, sizeof *y);

	for (size_t k = 0; k < z->groups * z->words * WORD / bits; k++)
		export_put_bits(y, 1, k * bits, q->bits, zero);
	put(e, z->name, "qzeros", z->groups, z->words, y);
	free(y);
}

static void put_groups(struct export *e, const struct export_weight *w)
{
	int32_t *y = xalloc(w->columns, sizeof *y);

	for (size_t i = 0; i < w->columns; i++)
		y[i] = (int32_t)linear_group(&w->layer->linear, i);
	put(e, w->name, "g_idx", w->columns, 0, y);
	free(y);
}

/* --- the target --- */

static void begin(struct export *e)
{
	e->data = xalloc(1, sizeof(struct gptq));
	folder_begin(e);
}

static void weight(struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	struct export_scales s;

	if (!export_quantized(w)) {
		if (in_block(e, w))
			REFUSE("is not quantized, but --to gptq needs all layers of blocks quantized; "
				"dpq-run without --layers or keep quantizes all, --to %s supports plain ones",
				"compressed-tensors");
		folder_weight(e, w);
		return;
	}
	check(e, w);
	s = export_scales(e, w, w->rows, l->group > 0 ? l->groups : 1, l->group > 0 ? (size_t)l->group : 0,
		false);
	put_codes(e, &s);
	put_zeros(e, &s);
	put_scales(e, &s);
	put_groups(e, w);
	export_scales_free(&s);
}

static json_t *quantization(struct export *e)
{
	const struct gptq *q = e->data;

	return json_pack("{s:s, s:s, s:i, s:I, s:b, s:b, s:b}", "quant_method", "gptq", "checkpoint_format",
		q->asymmetric ? "gptq_v2" : "gptq", "bits", q->bits, "group_size",
		q->several.name ? (json_int_t)q->several.columns : -1,
		"sym", !q->asymmetric, "desc_act", q->reordered, "lm_head", q->head);
}

static void end(struct export *e)
{
	struct gptq *q = e->data;
	json_t *config = quantization(e);
	char *text = json_dumps(config, JSON_INDENT(2));

	if (!q->first)
		die("%s: has no quantized layer; --to hf writes plain ones", e->from);
	for (size_t i = 0; i < q->symmetrics; i++) {
		put_symmetric(e, &q->symmetric[i]);
		free(q->symmetric[i].name);
	}
	folder_put_text(e, "quantize_config.json", text);
	folder_end(e, config);
	export_change_warn(e, &q->change);
	free(text);
	free(q->symmetric);
	free(q->several.name);
	free(q->one.name);
	free(q->first);
	free(q);
}

const struct target gptq_target = { "gptq",
	"a folder of codes, for GPTQModel and vLLM",
	"blocks unify-scales", begin, weight, folder_tensor, end };
