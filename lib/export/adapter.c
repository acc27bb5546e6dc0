/* SPDX-License-Identifier: GPL-3.0-or-later */
/* adapter.c -- see adapter.h */
#include "export/adapter.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/folder.h"
#include "export/folder_target.h"
#include "export/safetensors_output.h"

struct adapter {
	struct folder folder;
	struct safetensors_output *out;
	json_t *names, *ranks;		/* of layers; name: rank */
	size_t rank;			/* the largest */
	bool same;			/* all layers have this rank */
};

struct adapter *adapter_open(const struct export *e, const char *path)
{
	struct adapter *a = xalloc(1, sizeof *a);

	if (e->config->vision.class)
		die("%s: --adapter: modules of a %s have other names than tensors of its checkpoints; "
			"--to hf without it merges branches into weights", e->from, config_class(e->config));
	*a = (struct adapter){ .folder = folder_open(path), .names = json_array(), .ranks = json_object(),
		.same = true };
	a->out = safetensors_create(&a->folder, "adapter_model", SIZE_MAX, export_header_room(e));
	return a;
}

static void check(const struct export *e, const struct layer *layer)
{
	const struct linear *l = &layer->linear;

	if (l->rotation_in.hadamard || linear_two_sided(l))
		die("%s: %s: its branch is between rotations, which an adapter cannot express; --to hf "
			"without --adapter merges both into the weight", e->from, layer->path);
	if (linear_rounds(l->branch_a) && !e->options.weights_only)
		die("%s: %s/branch_a: rounds its inputs, which an adapter cannot express; --weights-only "
			"leaves their rounding out", e->from, layer->path);
}

static void put(const struct adapter *a, const struct export *e, const char *layer, char which, size_t rows,
	size_t columns, float *x)
{
	char *name = xformat("base_model.model.%s.lora_%c.weight", layer, which);

	folder_add_plain(e, a->out, name, 2, (const size_t[]){ rows, columns }, x);
	free(name);
}

/* Writes B of layer i to the columns from `first` on of the B of all layers. */
static void fill_b(const struct export_weight *w, size_t i, size_t first, size_t rank,
	float b[w->rows][rank])
{
	const struct linear *l = &w->layer[i].linear;

	for (size_t row = 0; row < w->rows; row++) {
		size_t of_layer;

		if (export_row(w, row, &of_layer) == i)
			linear_weight(l->branch_b, of_layer, 1, (float (*)[l->rank])(b[row] + first));
	}
}

void adapter_add(struct adapter *a, const struct export *e, const struct export_weight *w)
{
	size_t rank = 0, first = 0;
	float *x, *y;

	for (size_t i = 0; i < w->n; i++)
		rank += w->layer[i].linear.rank;
	if (!rank)
		return;
	x = xalloc(rank * w->columns, sizeof *x);
	y = xalloc(w->rows * rank, sizeof *y);
	for (size_t i = 0; i < w->n; i++) {
		const struct linear *l = &w->layer[i].linear;

		if (!l->rank)
			continue;
		check(e, &w->layer[i]);
		linear_weight(l->branch_a, 0, l->rank, (float (*)[w->columns])(x + first * w->columns));
		fill_b(w, i, first, rank, (float (*)[rank])y);
		first += l->rank;
	}
	put(a, e, w->name, 'A', rank, w->columns, x);
	put(a, e, w->name, 'B', w->rows, rank, y);
	a->same &= !a->rank || a->rank == rank;
	a->rank = a->rank > rank ? a->rank : rank;
	json_array_append_new(a->names, json_string(w->name));
	json_object_set_new(a->ranks, w->name, json_integer((json_int_t)rank));
	free(x);
	free(y);
}

void adapter_finish(struct adapter *a, const struct export *e)
{
	json_t *config;
	char *text;

	if (!a->rank)
		die("%s: --adapter: no layer has a low-rank branch", e->from);
	config = json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:s, s:b, s:b, s:o, s:O, s:o}",
		"peft_type", "LORA", "task_type", "CAUSAL_LM", "base_model_name_or_path", e->to,
		"r", (json_int_t)a->rank, "lora_alpha", (json_int_t)a->rank, "lora_dropout", 0.,
		"bias", "none", "fan_in_fan_out", false, "inference_mode", true, "target_modules", a->names,
		"rank_pattern", a->ranks, "alpha_pattern", a->ranks);
	if (a->same)
		json_object_clear(json_object_get(config, "rank_pattern"));
	text = json_dumps(config, JSON_INDENT(2));
	safetensors_finish(a->out);
	folder_write(&a->folder, "adapter_config.json", strlen(text), text);
	free(text);
	json_decref(config);
}

void adapter_close(struct adapter *a)
{
	folder_done(&a->folder);
	free(a);
}
