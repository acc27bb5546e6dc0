/* SPDX-License-Identifier: GPL-3.0-or-later */
/* accumulate.c -- Hessians from files of activations or of Hessians; see accumulate.h */
#include "calib/accumulate.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "calib/sums.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/layer_list.h"
#include "model/shard_file.h"
#include "model/shard_set.h"
#include "num/half.h"

enum { ROWS_AT_ONCE = 4096 };	/* of activations, if windows are shorter */

struct search {
	const struct part *part;
	const char *member;
	const struct selection *layers;
	struct layer_list list;
};

static void visit(void *arg, const char *group)
{
	struct search *w = arg;
	char *path = xformat("%s/%s", group, w->member);

	if (selection_has(w->layers, group) && !hessian_is_prior(group) && part_has(w->part, path))
		layer_list_add(&w->list, &(struct layer_ref){ .path = group });
	free(path);
}

static struct layer_list groups_with(const struct part *part, const char *member,
	const struct selection *layers)
{
	struct search w = { .part = part, .member = member, .layers = layers };

	part_groups(part, visit, &w);
	return w.list;
}

/* Number of modalities of the group's sums, which must be the same in all n files. */
static size_t modalities_of(size_t n, const struct filter file[n], const char *group)
{
	const size_t y = hessian_modalities(file->part, group);

	for (size_t k = 1; k < n; k++)
		if (hessian_modalities(file[k].part, group) != y)
			die("%s: %s/hessian: has %zu modalities, %s has %zu: the tokens differ",
				part_name(file[k].part), group, hessian_modalities(file[k].part, group),
				part_name(file->part), y);
	return y;
}

static bool all_have(size_t n, const struct filter file[n], const char *group)
{
	for (size_t k = 0; k < n; k++)
		if (!hessian_exists(file[k].part, group))
			return false;
	return true;
}

/* A sum of files, and the groups of the first file that are in the output. */
struct merge {
	size_t n, places;
	const struct filter *file;
	struct output *out;
	struct place { char *from, *to; } *place;
};

/*
 * Writes the sum of a group, or a link if the group is a link in the first file and its target was written.
 * If the total count is below n, each file's count is too, so each file has a prior.
 */
static void write_sum(struct merge *s, const char *group)
{
	const struct part *part = s->file->part;
	char *same = part_same(part, group), *prior = hessian_prior(group);
	size_t modalities;
	struct sums y;
	bool has_prior;

	for (size_t i = 0; i < s->places; i++)
		if (!strcmp(s->place[i].from, same)) {
			output_link(s->out, group, s->place[i].to);
			free(same), free(prior);
			return;
		}
	s->place = xgrow(s->place, s->places + 1, sizeof *s->place);
	s->place[s->places++] = (struct place){ same, xformat("%s", group) };
	modalities = modalities_of(s->n, s->file, group);
	y = sums_make(hessian_find(part, group, 0).in, modalities, true);
	if (hessian_modality(part, group, 0, 0).cross)
		sums_pair(&y);
	for (size_t k = 0; k < s->n; k++)
		sums_add_hessian(&y, s->file[k].part, group);
	has_prior = y.partial = y.moments->count < y.in && all_have(s->n, s->file, prior);
	sums_write(&y, s->out, part_name(part), group);
	if (has_prior)
		write_sum(s, prior);
	sums_free(&y);
	free(prior);
}

/* Writes a link if the group is a link in the file and its target was written. Returns whether the link
 * was written. */
static bool linked(struct output *out, const struct part *part, const struct layer_list *list, size_t i)
{
	char *same = part_same(part, list->layer[i].path);
	bool yes = strcmp(same, list->layer[i].path) && layer_listed(list, same);

	if (yes)
		output_link(out, list->layer[i].path, same);
	free(same);
	return yes;
}

/* Adds consecutive windows of m rows each. wide: workspace for f16 rows as f32. */
static void add_windows(struct moments *h, size_t windows, size_t m, const void *x, enum tensor_type type,
	float *wide)
{
	size_t n = h->in;

	if (type == TENSOR_BF16) {
		moments_add_bf16(h, windows, m, (const uint16_t (*)[m][n])x);
		return;
	}
	if (type == TENSOR_F16) {
		half_widen(windows * m * n, wide, x, HALF_F16);
		x = wide;
	}
	moments_add(h, windows, m, (const float (*)[m][n])x);
}

static void sum_layer(struct output *out, const struct part *part, const char *layer,
	const struct accumulate_cut *cut)
{
	char *path = xformat("%s/input", layer);
	struct tensor t = part_tensor(part, path, TENSOR_ANY, 2, NULL);
	const size_t n = t.dim[1], ctx = cut->ctx;
	const size_t skip = cut->skip, left = t.dim[0] - min(skip, t.dim[0]);
	size_t rows = cut->limit ? min(cut->limit, left) : left;
	size_t max = cut->shard.n == 1 && ctx < ROWS_AT_ONCE ? ROWS_AT_ONCE / ctx : 1;	/* windows at once */
	struct sums s = sums_make(n, 1, true);
	float *wide = t.type == TENSOR_F16 ? xalloc(min(max * ctx, rows) * n, sizeof *wide) : NULL;

	if (t.type != TENSOR_F32 && t.type != TENSOR_F16 && t.type != TENSOR_BF16)
		die("%s: %s: is %s, expected f32, f16 or bf16", part_name(part), path,
			tensor_name(t.type));
	if (skip && !left)
		die("%s: %s: --skip %zu leaves none of the %zu rows", part_name(part), path, skip,
			t.dim[0]);
	for (size_t i = (cut->shard.i - 1) * ctx, windows; i < rows; i += windows * cut->shard.n * ctx) {
		size_t m = min(ctx, rows - i);

		windows = min(max, (rows - i) / m);
		add_windows(s.moments, windows, m,
			(const char *)t.data + (skip + i) * n * tensor_size(t.type), t.type, wide);
	}
	sums_write(&s, out, part_name(part), layer);
	sums_free(&s);
	free(wide);
	free(path);
}

static size_t add_activations(struct output *out, const struct part *part, const struct selection *layers,
	const struct accumulate_cut *cut)
{
	struct layer_list list = groups_with(part, "input", layers);
	const size_t found = list.n;

	for (size_t i = 0; i < list.n; i++)
		if (!linked(out, part, &list, i))
			sum_layer(out, part, list.layer[i].path, cut);
	layer_list_free(&list);
	return found;
}

static size_t add_hessians(struct output *out, size_t n, const struct filter file[n],
	const struct selection *layers)
{
	const struct part *part = file->part;
	struct layer_list list = groups_with(part, "hessian", layers);
	struct merge s = { .n = n, .file = file, .out = out };
	const size_t found = list.n;

	for (size_t k = 1; k < n; k++) {
		struct layer_list other = groups_with(file[k].part, "hessian", layers);

		if (other.n != list.n)
			die("%s: has %zu layers in part %zu, %s has %zu", part_name(file[k].part),
				other.n, part_index(part), part_name(part), list.n);
		layer_list_free(&other);
	}
	for (size_t i = 0; i < list.n; i++)
		write_sum(&s, list.layer[i].path);
	for (size_t i = 0; i < s.places; i++)
		free(s.place[i].from), free(s.place[i].to);
	free(s.place);
	layer_list_free(&list);
	return found;
}

/* n files; the first is the filter's input. */
struct sum {
	size_t n, done;
	struct filter *file;
	bool hessian;
	const struct selection *layers;
	const struct accumulate_cut *cut;
};

/* Reads the next part of the other files. */
static void advance(struct sum *s)
{
	for (struct filter *f = s->file + 1; f < s->file + s->n; f++)
		f->part = input_matching(f->in, f->part, s->file->part);
}

/* Warns if ids are counted twice. Shards of a run are not checked: their ranges of ids are the same. */
static void warn_twice(size_t n, const struct filter file[n])
{
	const struct part **from = xalloc(n, sizeof *from);

	for (size_t i = 0; i < n; i++)
		from[i] = file[i].part;
	if (part_number(*from, "/", "shards", 0) == 0)
		calibrated_twice(n, from);
	free(from);
}

/* Writes the attributes of the root of a sum that name its inputs. */
static void begin_sum(const struct sum *s, struct output *out)
{
	const struct part **from = xalloc(s->n, sizeof *from);

	for (size_t i = 0; i < s->n; i++) {
		char *input = i ? xformat("input%zu", i + 1) : NULL;

		from[i] = s->file[i].part;
		if (input)
			output_history(out, input, from[i]);
		free(input);
	}
	shard_drop(out, s->n, s->file);
	calibrated_write(out, s->n, from, NULL);
	free(from);
}

static void begin_activations(const struct sum *s, const struct filter *f)
{
	basis_copy(f->out, f->part);
	if (s->cut->shard.n > 1)	/* several files may have activations of one model */
		shard_write(f->out, &s->cut->shard,
			(const char *[SHARD_INPUTS]){ [SHARD_MODEL] = input_name(f->in) });
}

static void add_part(void *arg, const struct filter *f)
{
	struct sum *s = arg;
	const bool first = !part_index(f->part);

	advance(s);
	output_begin(f->out, f->part);
	if (first && s->hessian)
		begin_sum(s, f->out);
	else if (first)
		begin_activations(s, f);
	if (first && part_has(f->part, "/config"))
		output_copy(f->out, f->part, "/config", NULL);
	s->done += s->hessian ? add_hessians(f->out, s->n, s->file, s->layers) :
		add_activations(f->out, f->part, s->layers, s->cut);
	output_end(f->out);
}

/* Skips a part that an earlier run has written. */
static void pass_part(void *arg, const struct filter *f)
{
	struct sum *s = arg;
	struct layer_list list = groups_with(f->part, s->hessian ? "hessian" : "input", s->layers);

	advance(s);
	s->done += list.n;
	layer_list_free(&list);
}

void accumulate_files(size_t n, struct filter file[n], const struct selection *layers,
	const struct accumulate_cut *cut)
{
	struct sum s = { n, 0, file, !strcmp(part_kind(file->part), "hessian"), layers, cut };

	if (s.hessian)
		warn_twice(n, file);
	file->finished = pass_part;
	model_filter(file, add_part, &s);
	if (!s.done)
		die("%s: holds no layer with %s%s", input_name(file->in),
			s.hessian ? "a hessian" : "an input", selection_text(layers));
}
