/* SPDX-License-Identifier: GPL-3.0-or-later */
/* join.c -- see join.h */
#include "transform/join.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "forward/cache.h"
#include "io/output.h"
#include "io/same.h"
#include "io/tree.h"
#include "model/calibrated.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "model/shard_set.h"

enum { NAMED = 3 };	/* layers that a warning names */

/* Reads the next part of the other inputs. */
static void advance(const struct join *j)
{
	for (struct filter *f = j->file + 1; f < j->file + j->n; f++)
		f->part = input_matching(f->in, f->part, j->file->part);
}

static const struct part *part_of(const struct join *j, size_t k)
{
	return j->file[k].part;
}

static _Noreturn void inputs_differ(const struct join *j, size_t a, size_t b, const char *path,
	const char *why)
{
	die("%s: %s: %s %s", part_name(part_of(j, b)), path, why, part_name(part_of(j, a)));
}

static bool is_shape(const struct part *part, const char *path, const size_t dim[2])
{
	struct tensor t;

	return !layer_find(part, path, "codes", TENSOR_ANY, 2, NULL, &t) ||
		(t.dim[0] == dim[0] && t.dim[1] == dim[1]);
}

/* The input that a layer is taken from: the first in which it is quantized, else the first that has it. */
static size_t choose_layer(struct join *j, const char *path)
{
	size_t plain = j->n, quantized = j->n;

	for (size_t k = 0; k < j->n; k++) {
		const struct part *part = part_of(j, k);
		size_t *first;

		if (!layer_exists(part, path))
			continue;
		first = layer_quantized(part, path) ? &quantized : &plain;
		if (*first == j->n)
			*first = k;
		else if (!same_object(part_of(j, *first), part, path))
			inputs_differ(j, *first, k, path, first == &quantized ?
			"is quantized, but differently from" :
				"is of another model, its weight differs from");
	}
	if (quantized < j->n && plain < j->n) {
		char *weight = layer_member(path, "weight");
		const struct tensor t = part_tensor(part_of(j, plain), weight, TENSOR_ANY, 2, NULL);

		free(weight);
		if (!is_shape(part_of(j, quantized), path, t.dim))
			inputs_differ(j, plain, quantized, path,
			"has codes of another shape than the weight of");
	}
	return quantized < j->n ? quantized : plain;
}

static void count_layer(struct join *j, const char *path, bool quantized)
{
	const struct config *c = j->file->config;
	struct layer_ref layer;
	char *before = j->plain;

	if (layer_ref_find(c, path, &layer) && layer_ref_row(&layer))
		j->of_block[layer_ref_block(c, &layer)]++;
	else if (c && !quantized)
		return;		/* an embedding, a head */
	j->layers++;
	j->quantized += quantized;
	if (quantized || j->layers - j->quantized > NAMED)
		return;
	j->plain = xformat("%s%s%s", before ? before : "", before ? ", " : "", path);
	free(before);
}

/* The linear layers of a part, and the input of each. */
struct choices { size_t n, *from; const char **path; };

/* Whether the path is that of a layer, or below one. */
static bool is_of_layer(const struct choices *c, const char *path)
{
	for (size_t i = c->n; i--;) {
		const size_t n = strlen(c->path[i]);

		if (!strncmp(path, c->path[i], n) && (path[n] == '/' || !path[n]))
			return true;
	}
	return false;
}

static bool is_layer(const struct join *j, const char *path)
{
	for (size_t k = 0; k < j->n; k++)
		if (part_has(part_of(j, k), path) && layer_exists(part_of(j, k), path))
			return true;
	return false;
}

/* Fatal error unless an object outside of layers is the same in all inputs that have it. */
static void check_object(const struct join *j, size_t first, const char *path, bool group)
{
	for (size_t k = first + 1; k < j->n; k++) {
		const struct part *a = part_of(j, first), *b = part_of(j, k);

		if (part_has(b, path) && !(group ? same_attributes : same_object)(a, b, path))
			inputs_differ(j, first, k, path, "is of another model, it differs from");
	}
}

/* Chooses the layers of the part of input k, and checks its other objects, unless an earlier input has them.
 */
static void choose_layers(struct join *j, size_t k, struct choices *c)
{
	const struct part *part = part_of(j, k);
	size_t n;
	char **path = same_objects(part, &n);

	for (size_t i = 0; i < n; i++) {
		const bool group = tree_info(part, path[i]).type == H5O_TYPE_GROUP;

		if (is_of_layer(c, path[i]))
			continue;
		if (!group || !is_layer(j, path[i])) {
			check_object(j, k, path[i], group);
			continue;
		}
		c->path = xgrow(c->path, c->n + 2, sizeof *c->path);
		c->from = xgrow(c->from, c->n + 1, sizeof *c->from);
		c->path[c->n] = xformat("%s", path[i]);
		c->from[c->n] = choose_layer(j, path[i]);
		count_layer(j, path[i], layer_quantized(part_of(j, c->from[c->n]), path[i]));
		c->path[++c->n] = NULL;
	}
	tree_free_paths(path, n);
}

static void count_in_block(void *arg, const struct layer_ref *layer, size_t in)
{
	const struct join *j = arg;

	(void)in;
	if (layer_ref_row(layer))	/* a negative number of layers is missing */
		j->of_block[layer_ref_block(j->file->config, layer)]--;
}

/* Called for the last part, before it is written. */
static void check_missing(struct join *j)
{
	const struct config *c = j->file->config;

	layer_each(c, &(struct selection){ 0 }, count_in_block, j);
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			if (j->of_block[s->first + i] < 0)
				die("%s: %d linear layers of this block are in no input, expected each "
					"in one: is the result of a job missing?", stack_block_path(s, i),
					-j->of_block[s->first + i]);
}

static void begin_join(const struct join *j, const struct filter *f)
{
	const struct part **from;

	output_begin(f->out, f->part);
	if (part_index(f->part))
		return;
	from = xalloc(j->n, sizeof *from);
	for (size_t k = 0; k < j->n; k++)
		from[k] = part_of(j, k);
	cache_match(j->n, from);
	if (j->shards)
		shard_drop(f->out, 0, NULL);
	calibrated_write(f->out, j->n, from, NULL);
	free(from);
	for (size_t k = 1; k < j->n; k++) {
		char *input = xformat("input%zu", k + 1);

		output_history(f->out, input, part_of(j, k));
		free(input);
	}
}

void join_part(void *arg, const struct filter *f)
{
	struct join *j = arg;
	struct choices c = { .path = xalloc(1, sizeof *c.path) };

	if (f->config && !j->of_block)
		j->of_block = xalloc(f->config->blocks, sizeof *j->of_block);
	advance(j);
	begin_join(j, f);
	progress("part", part_index(f->part), part_count(f->part));
	for (size_t k = 0; k < j->n; k++)
		choose_layers(j, k, &c);
	for (size_t k = 0; k < j->n; k++) {
		for (size_t i = 0; i < c.n; i++)
			if (c.from[i] == k)
				output_copy(f->out, part_of(j, k), c.path[i], NULL);
		output_rest(f->out, part_of(j, k), c.path);
		links_free(&f->out->links);	/* addresses are valid in one file only */
	}
	if (f->config && part_index(f->part) + 1 == part_count(f->part))
		check_missing(j);
	output_end(f->out);
	for (size_t i = 0; i < c.n; i++)
		free((char *)(uintptr_t)c.path[i]);
	free(c.path), free(c.from);
}

void join_end(struct join *j)
{
	for (struct filter *f = j->file + 1; f < j->file + j->n; f++)
		if (input_next(f->in))
			die("%s: has data after its last part", input_name(f->in));
	if (j->quantized && j->plain)
		warn("%zu of %zu linear layers are quantized in no input: %s%s", j->layers - j->quantized,
			j->layers, j->plain, j->layers - j->quantized > NAMED ? ", ..." : "");
	if (!quiet)
		fprintf(stderr, "%s: %zu linear layers of %zu inputs, %zu quantized\n", program, j->layers,
			j->n, j->quantized);
	free(j->plain), free(j->of_block);
}
