/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unit.c -- see unit.h */
#include "eval/unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/candidate.h"
#include "model/layer.h"

const char *const unit_kinds[] = { "block", "layer", NULL };

/* The path with * for the number of the expert; a block: "PATH/ *" without the blank. */
static char *glob_of(const struct layer_ref *layer, enum unit_kind kind)
{
	char *path = kind == UNIT_BLOCK ? stack_block_path(layer->stack, layer->block) :
		stack_path(layer->stack, layer->block, layer_ref_row(layer)->name);
	char *hash = strchr(path, '#'), *y = kind == UNIT_BLOCK ? xformat("%s/*", path) :
		xformat("%s", path);

	if (hash)
		y[hash - path] = '*';
	free(path);
	return y;
}

static bool any_quantizes(const struct units *u, const char *path)
{
	bool any = false;

	for (size_t c = 0; c < u->candidates; c++)
		any |= layer_exists(u->candidate[c], path) && layer_quantized(u->candidate[c], path);
	return any;
}

/* Adds the layer to the last unit if it belongs there, else to a new one. */
static void add(struct units *u, const struct layer_ref *layer, size_t block)
{
	char *glob = glob_of(layer, u->kind);
	size_t i = 0;

	for (i = u->n; i && u->unit[i - 1].block == block; i--)
		if (!strcmp(u->unit[i - 1].glob, glob))
			break;
	if (i && u->unit[i - 1].block == block) {
		free(glob);
		i--;
	} else {
		i = u->n++;
		u->unit = xgrow(u->unit, u->n, sizeof *u->unit);
		u->unit[i] = (struct unit){ .glob = glob, .block = block, .whole = true };
	}
	layer_list_add(&u->unit[i].list, layer);
}

/* Fatal error if layers of two candidates were rotated with other signs: one run of dpq-run has one seed. */
static void check_signs(const struct units *u, size_t candidate, const char *path, size_t in)
{
	struct tensor own, first;

	if (!layer_find(u->candidate[candidate], path, "input_signs", TENSOR_I8, 1, &in, &own))
		return;
	for (size_t c = 0; c < candidate; c++)
		if (layer_find(u->candidate[c], path, "input_signs", TENSOR_I8, 1, &in, &first)) {
			if (memcmp(own.data, first.data, in))
				die("%s: %s: is rotated with other signs than in %s, expected candidates of "
					"one --seed", part_name(u->candidate[candidate]), path,
					part_name(u->candidate[c]));
			return;
		}
}

/* Fatal error if a plan that takes a rotated layer l from the candidate could not run, or its KL could not be
 * measured. all: layers of all units. */
static void check_rotation(const struct units *u, const struct layer_list *all, size_t candidate,
	const struct layer_ref *layer, const struct linear *l)
{
	const struct part *part = u->candidate[candidate];

	check_signs(u, candidate, layer->path, l->in);
	if (u->kind == UNIT_BLOCK) {
		candidate_check_input(u->model, part, part, all, layer,
			"both quantized, and both in --layers");
		return;
	}
	for (size_t c = 0; c < u->candidates; c++)
		candidate_check_input(u->model, part, u->candidate[c], all, layer,
			"all of them in --layers, and rotated in all candidates or in none");
	if (l->input.mode != INPUT_AS_IS && candidate_shares_input(layer))
		die("%s: %s: rounds its rotated inputs, and --by layer measures only inputs that are not "
			"rounded: expected --by block, or candidates without --act-mode", part_name(part),
			layer->path);
}

/* Bits of a layer of a candidate, which is checked against that of the model. */
static double bits_of(const struct units *u, const struct layer_list *all, size_t candidate,
	const struct layer_ref *layer, const struct linear *model)
{
	const struct part *part = u->candidate[candidate];
	const char *path = layer->path;
	struct layer l;
	double bits;

	if (!layer_exists(part, path))
		die("%s: %s: is missing; %s has it", part_name(part), path, part_name(u->model));
	l = layer_outline(part, path);
	if (l.linear.out != model->out || l.linear.in != model->in)
		die("%s: %s: has %zu x %zu weights, expected %zu x %zu", part_name(part), path, l.linear.out,
			l.linear.in, model->out, model->in);
	candidate_check(part, path, model, &l.linear);
	if (!l.linear.weight && !candidate_same_rotation(model, &l.linear))
		check_rotation(u, all, candidate, layer, &l.linear);
	bits = member_bits(members, &l.linear) * (double)l.linear.out * (double)l.linear.in;
	layer_free(&l);
	return bits;
}

static void measure(struct units *u, const struct layer_list *all, size_t i)
{
	const struct unit *unit = &u->unit[i];

	for (size_t c = 0; c < u->candidates; c++) {
		double bits = 0;

		for (size_t j = 0; j < unit->list.n; j++) {
			struct layer l = layer_outline(u->model, unit->list.layer[j].path);

			if (!l.linear.weight)	/* a plan for it would be applied to weights that are gone */
				die("%s: %s: is quantized already, expected the model before quantization",
					part_name(u->model), l.path);
			bits += bits_of(u, all, c, &unit->list.layer[j], &l.linear);
			u->weights += c ? 0 : (double)l.linear.out * (double)l.linear.in;
			layer_free(&l);
		}
		u->size[i * u->candidates + c] = (uint64_t)ceil(bits);
	}
}

/* Whether a dataset is a weight of a unit, whose bits are those of a candidate. */
static bool is_planned(const struct units *u, const char *path)
{
	for (size_t i = 0; i < u->n; i++)
		for (size_t j = 0; j < u->unit[i].list.n; j++) {
			const char *layer = u->unit[i].list.layer[j].path;
			const size_t n = strlen(layer);

			if (!strncmp(path, layer, n) && path[n] == '/')
				return strcmp(path + n, "/bias") != 0;
		}
	return false;
}

/* Finds units that lack a layer of their block or name. */
static void note_lacking(struct units *u, const struct config *c)
{
	struct layer_list all = layer_list(u->model, c, &(struct selection){ 0 });

	for (size_t i = 0; i < all.n; i++) {
		const struct layer_ref *l = &all.layer[i];
		char *glob = layer_ref_row(l) ? glob_of(l, u->kind) : NULL;

		for (size_t j = 0; glob && j < u->n; j++)
			if (!strcmp(u->unit[j].glob, glob) && !layer_listed(&u->unit[j].list, l->path))
				u->unit[j].whole = false;
		free(glob);
	}
	layer_list_free(&all);
}

/* Whether the group or dataset has the same data under an earlier path. */
static bool is_repeated(const struct part *part, const char *path)
{
	char *first = part_same(part, path);
	const bool yes = strcmp(first, path) != 0;

	free(first);
	return yes;
}

/* Adds a dataset outside of the units; one with several names once. */
static void add_other(void *arg, const char *path, const char *type, int rank, const size_t dim[])
{
	struct units *u = arg;
	const char *slash = strrchr(path, '/');
	char *group = xformat("%.*s", (int)(slash - path), path);
	struct tensor t;

	(void)type, (void)dim;
	if (rank > 0 && strcmp(type, "string") != 0 && !is_planned(u, path) &&
	    !is_repeated(u->model, group) && !is_repeated(u->model, path) &&
	    part_shape(u->model, path, TENSOR_ANY, rank, NULL, &t))
		u->other += 8 * (double)tensor_count(&t) * (double)tensor_size(t.type);
	free(group);
}

struct units units_of(const struct part *model, const struct config *c, size_t candidates,
	struct part *const candidate[candidates], enum unit_kind kind, const struct selection *layers)
{
	struct units u = { .model = model, .kind = kind, .candidates = candidates, .candidate = candidate };
	struct layer_list list = layer_list(model, c, layers), all = { 0 };

	for (size_t i = 0; i < candidates; i++)
		candidate_check_file(model, candidate[i]);
	for (size_t i = 0; i < list.n; i++) {
		const struct layer_ref *l = &list.layer[i];

		if (l->stack == config_last(c) && layer_ref_row(l) && any_quantizes(&u, l->path))
			add(&u, l, layer_ref_block(c, l)), layer_list_add(&all, l);
	}
	layer_list_free(&list);
	if (!u.n)
		die("%s: has no quantized linear layer%s in a block of the language model",
			part_name(*candidate), selection_text(layers));
	u.size = xalloc(u.n, candidates * sizeof *u.size);
	for (size_t i = 0; i < u.n; i++)
		measure(&u, &all, i);
	layer_list_free(&all);
	note_lacking(&u, c);
	part_datasets(model, add_other, &u);
	return u;
}

void units_free(struct units *u)
{
	for (size_t i = 0; i < u->n; i++) {
		free(u->unit[i].glob);
		layer_list_free(&u->unit[i].list);
	}
	free(u->unit), free(u->size);
}

char *unit_lines(const struct units *u, size_t unit, size_t candidate, const char *note)
{
	const struct layer_list *list = &u->unit[unit].list;
	const size_t n = list->n;
	char **words = xalloc(n, sizeof *words), *y = xformat("%s", "");
	bool same = u->unit[unit].whole;

	for (size_t j = 0; j < n; j++) {
		words[j] = candidate_words(u->model, u->candidate[candidate], list->layer[j].path);
		same &= !strcmp(words[j], words[0]);
	}
	for (size_t j = 0; j < (same ? 1 : n); j++) {
		char *before = y;

		y = xformat("%s%s %s%s%s\n", before, same ? u->unit[unit].glob : list->layer[j].path,
			words[j], j || !*note ? "" : "  # ", j ? "" : note);
		free(before);
	}
	for (size_t j = 0; j < n; j++)
		free(words[j]);
	free(words);
	return y;
}
