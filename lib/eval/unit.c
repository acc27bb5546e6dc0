/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unit.c -- see unit.h */
#include "eval/unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/layer.h"
#include "num/scale_type.h"

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
static void add(struct units *u, const struct layer_ref *layer, size_t block, enum unit_kind kind)
{
	char *glob = glob_of(layer, kind);
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
		u->unit[i] = (struct unit){ .glob = glob, .block = block };
	}
	layer_list_add(&u->unit[i].list, layer);
}

static double bits_of(const struct part *part, const char *path, size_t out, size_t in)
{
	struct layer l = layer_outline(part, path);
	double bits;

	if ((out || in) && (l.linear.out != out || l.linear.in != in))
		die("%s: %s: has %zu x %zu weights, expected %zu x %zu", part_name(part), path, l.linear.out,
			l.linear.in, out, in);
	bits = member_bits(members, &l.linear) * (double)l.linear.out * (double)l.linear.in;
	layer_free(&l);
	return bits;
}

static void measure(struct units *u, size_t i)
{
	const struct unit *unit = &u->unit[i];

	for (size_t c = 0; c < u->candidates; c++) {
		double bits = 0;

		for (size_t j = 0; j < unit->list.n; j++) {
			const char *path = unit->list.layer[j].path;
			struct layer l = layer_outline(u->model, path);
			const size_t out = l.linear.out, in = l.linear.in;

			layer_free(&l);
			if (!layer_exists(u->candidate[c], path))
				die("%s: %s: is missing; %s has it", part_name(u->candidate[c]), path,
					part_name(u->model));
			bits += bits_of(u->candidate[c], path, out, in);
			u->weights += c ? 0 : (double)out * (double)in;
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

/* Adds a dataset outside of the units; one with several names once. */
static void add_other(void *arg, const char *path, const char *type, int rank, const size_t dim[])
{
	struct units *u = arg;
	const char *slash = strrchr(path, '/');
	char *group = xformat("%.*s", (int)(slash - path), path);
	char *same = *group ? part_same(u->model, group) : NULL;
	struct tensor t;

	(void)type, (void)dim;
	if (rank > 0 && (!same || !strcmp(same, group)) && strcmp(type, "string") != 0 &&
	    !is_planned(u, path) && part_shape(u->model, path, TENSOR_ANY, rank, NULL, &t))
		u->other += 8 * (double)tensor_count(&t) * (double)tensor_size(t.type);
	free(same), free(group);
}

struct units units_of(const struct part *model, const struct config *c, size_t candidates,
	struct part *const candidate[candidates], enum unit_kind kind, const struct selection *layers)
{
	struct units u = { .model = model, .candidates = candidates, .candidate = candidate };
	struct layer_list list = layer_list(model, c, layers);

	for (size_t i = 0; i < list.n; i++) {
		const struct layer_ref *l = &list.layer[i];

		if (l->stack == config_last(c) && layer_ref_row(l) && any_quantizes(&u, l->path))
			add(&u, l, layer_ref_block(c, l), kind);
	}
	layer_list_free(&list);
	if (!u.n)
		die("%s: has no quantized linear layer%s in a block of the language model",
			part_name(*candidate), selection_text(layers));
	u.size = xalloc(u.n, candidates * sizeof *u.size);
	for (size_t i = 0; i < u.n; i++)
		measure(&u, i);
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

/* The settings of a layer as words of a plan; free() it. */
static char *settings(const struct part *part, const char *path)
{
	struct layer l = layer_outline(part, path);
	const struct linear *x = &l.linear;
	char *group = x->group > 0 ? xformat("%ld", x->group) : xformat(x->group ? "tensor" : "channel");
	char *y = x->weight ? xformat("keep") : xformat("storage=%s group=%s scale-dtype=%s compute=%s",
		x->storage.name, group, scale_types[x->storage.scales],
		x->compute.kind ? x->compute.name : "none");

	free(group);
	layer_free(&l);
	return y;
}

void unit_lines(FILE *to, const struct units *u, size_t unit, size_t candidate, const char *note)
{
	const struct layer_list *list = &u->unit[unit].list;
	const struct part *part = u->candidate[candidate];
	char *first = settings(part, list->layer->path);
	bool same = true;

	for (size_t j = 1; j < list->n; j++) {
		char *own = settings(part, list->layer[j].path);

		same &= !strcmp(own, first);
		free(own);
	}
	for (size_t j = 0; j < (same ? 1 : list->n); j++) {
		char *own = settings(part, list->layer[j].path);

		fprintf(to, "%s %s%s%s\n", same ? u->unit[unit].glob : list->layer[j].path, own,
			j ? "" : "  # ", j ? "" : note);
		free(own);
	}
	free(first);
}
