/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrate.c -- Hessians of linear layers from what a model feeds them; see calibrate.h */
#include "forward/calibrate.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/half.h"

enum { ROWS_AT_ONCE = 4096 };	/* of raw activations, where windows are shorter */

/* ---- of a model ---- */

/* The shared input of a layer, or SIZE_MAX: embeddings have none. */
static size_t input_of(const struct config *c, const char *layer)
{
	size_t block, row;
	const struct stack *s = config_find(c, layer, &block, &row);

	if (s)
		return (s->first + block) * PROJECTIONS + s->arch->linear[row].projection;
	return strcmp(layer, c->arch->head) ? SIZE_MAX : c->blocks * PROJECTIONS;
}

struct wish { const struct config *config; bool any; };

static void wish_for(void *arg, const char *path, size_t in)
{
	struct wish *w = arg;

	(void)in;
	w->any |= input_of(w->config, path) < SIZE_MAX;
}

void calibrate_check(const struct config *c, const struct selection *layers, const char *name)
{
	struct wish w = { c, false };

	layer_each(c, layers, wish_for, &w);
	if (!w.any)
		die("%s: holds no linear layer with inputs that --layers selects", name);
}

struct calibration calibrate_begin(const struct image *image, const struct config *c,
	const struct selection *layers)
{
	struct calibration k = { .config = c, .list = layer_list(image, c, layers) };

	k.projection = xalloc(c->blocks * PROJECTIONS + 1, sizeof *k.projection);
	k.told = xalloc(c->blocks * PROJECTIONS + 1, sizeof *k.told);
	for (size_t i = 0; i < k.list.n; i++) {
		const size_t s = input_of(c, k.list.path[i]);
		size_t block, row;
		const struct stack *stack = config_find(c, k.list.path[i], &block, &row);

		if (s < SIZE_MAX && !k.projection[s].in)
			k.projection[s] = moments_make(!stack ? config_last(c)->hidden :
				stack_in(stack, stack->arch->linear[row].projection));
	}
	return k;
}

/* Sequences from s on that have one length. */
static size_t equals(const struct batch *batch, size_t s)
{
	size_t n = 1;

	while (s + n < batch->sequences && batch->sequence[s + n].length == batch->sequence[s].length)
		n++;
	return n;
}

static void see(void *arg, size_t block, enum projection_name p, const struct batch *batch, size_t in,
	const float *x)
{
	struct calibration *k = arg;
	const bool head = p == PROJECTION_HEAD;
	struct moments *h = &k->projection[(head ? k->config->blocks : block) * PROJECTIONS + (head ? 0 : p)];
	const enum half_type type = compute_half(k->config->compute_type);
	const bool half = h->in && type != HALF_NONE;
	uint16_t *narrow = half ? xalloc(batch->rows, in * sizeof *narrow) : NULL;

	#pragma omp parallel for num_threads(threads) if (half) schedule(static)
	for (size_t t = 0; t < (half ? batch->rows : 0); t++)
		half_narrow(in, narrow + t * in, x + t * in, type);
	for (size_t s = 0, n; h->in && s < batch->sequences; s += n) {
		size_t tokens = batch->sequence[s].length, from = batch->sequence[s].first * in;

		n = equals(batch, s);
		if (half)
			moments_add_bf16(h, n, tokens,
				(const uint16_t (*)[tokens][in])(narrow + from));
		else
			moments_add(h, n, tokens, (const float (*)[tokens][in])(x + from));
	}
	free(narrow);
}

struct observer calibrate_observer(struct calibration *k)
{
	return (struct observer){ see, k };
}

const struct moments *calibrate_find(const struct calibration *k, const char *layer)
{
	size_t s = input_of(k->config, layer);

	return s < SIZE_MAX && k->projection[s].in ? &k->projection[s] : NULL;
}

/* The sums in float, in memory of their own. */
static struct hessian finish(const struct moments *h, const char *file, const char *layer)
{
	const size_t n = h->in;

	return moments_hessian(h, file, layer, xalloc(n * n, sizeof(float)), xalloc(n, sizeof(float)));
}

static void forget(struct hessian *h)
{
	free((void *)(uintptr_t)h->sum);
	free((void *)(uintptr_t)h->mean_abs);
	*h = (struct hessian){ 0 };
}

static void write_moments(struct output *out, const char *file, const char *layer, const struct moments *h)
{
	struct hessian y = finish(h, file, layer);

	hessian_write(out, layer, &y);
	forget(&y);
}

static struct second_moments in_memory(void *arg, const char *layer, size_t n, bool must)
{
	struct calibration *k = arg;
	const struct moments *h = calibrate_find(k, layer);
	struct hessian *told;

	if (!h && must)
		die("%s: %s: was not calibrated", k->name, layer);
	if (!h)
		return (struct second_moments){ 0 };
	if (h->in != n)
		die("%s: %s: has %zu inputs, %zu were calibrated", k->name, layer, n, h->in);
	told = &k->told[h - k->projection];
	if (!told->sum)
		*told = finish(h, k->name, layer);
	return (struct second_moments){ .hessian = told->sum, .absmax = told->absmax };
}

static void drop_memory(void *arg)
{
	struct calibration *k = arg;

	for (size_t i = 0; i <= k->config->blocks * PROJECTIONS; i++)
		forget(&k->told[i]);
}

struct moments_source calibrate_source(struct calibration *k, const char *name)
{
	k->name = name;
	return (struct moments_source){ in_memory, drop_memory, k, name, NULL };
}

void calibrate_write(struct calibration *k, struct output *out, const char *file)
{
	const char **first = xalloc(k->config->blocks * PROJECTIONS + 1, sizeof *first);

	for (size_t i = 0; i < k->list.n; i++) {
		size_t s = input_of(k->config, k->list.path[i]);

		if (s == SIZE_MAX)
			continue;
		if (first[s]) {
			output_link(out, k->list.path[i], first[s]);
			continue;
		}
		write_moments(out, file, k->list.path[i], &k->projection[s]);
		first[s] = k->list.path[i];
	}
	free(first);
}

void calibrate_end(struct calibration *k)
{
	drop_memory(k);
	for (size_t i = 0; i <= k->config->blocks * PROJECTIONS; i++)
		moments_free(&k->projection[i]);
	free(k->projection), free(k->told);
	layer_list_free(&k->list);
}

void calibrate_part(void *arg, const struct filter *f)
{
	const struct calibrate *c = arg;
	struct forward *run = c->forward;
	const struct image *image = f->image;
	struct calibration k = calibrate_begin(image, run->config, c->layers);
	struct observer observer = calibrate_observer(&k);

	output_begin(f->out, image);
	if (!image_part(image)) {
		output_copy(f->out, image, "/config", NULL);
		output_history(f->out, "tokens", c->tokens);
	}
	if (forward_part(run, image, &observer) && calibrate_find(&k, run->config->arch->head)) {
		struct head head = head_read(image, run->config, false);

		forward_head(run, &head, &observer);
		head_free(&head);
	}
	calibrate_write(&k, f->out, image_name(image));
	output_end(f->out);
	calibrate_end(&k);
}

/* ---- of files ---- */

struct wanted {
	const struct image *image;
	const char *member;
	const struct selection *layers;
	struct layer_list list;
};

static void visit(void *arg, const char *group)
{
	struct wanted *w = arg;
	char *path = xformat("%s/%s", group, w->member);

	if (selection_has(w->layers, group) && image_has(w->image, path)) {
		w->list.path = xgrow(w->list.path, w->list.n + 1, sizeof *w->list.path);
		w->list.path[w->list.n++] = xformat("%s", group);
	}
	free(path);
}

static struct layer_list groups_with(const struct image *image, const char *member,
	const struct selection *layers)
{
	struct wanted w = { .image = image, .member = member, .layers = layers };

	image_groups(image, visit, &w);
	return w.list;
}

/* Writes a link where the group stands in the file under an earlier name that is written already. */
static bool linked(struct output *out, const struct image *image, const struct layer_list *list, size_t i)
{
	char *same = image_same(image, list->path[i]);
	bool yes = strcmp(same, list->path[i]) && layer_listed(list, same);

	if (yes)
		output_link(out, list->path[i], same);
	free(same);
	return yes;
}

/* Adds windows of m rows each that follow each other; wide: workspace for them as f32 where they are f16. */
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

static void add_layer(struct output *out, const struct image *image, const char *layer,
	const struct calibrate_cut *cut)
{
	char *path = xformat("%s/input", layer);
	struct tensor t = image_tensor(image, path, TENSOR_ANY, 2, NULL);
	const size_t n = t.dim[1], ctx = cut->ctx;
	size_t rows = cut->limit && cut->limit < t.dim[0] ? cut->limit : t.dim[0];
	size_t most = cut->shards == 1 && ctx < ROWS_AT_ONCE ? ROWS_AT_ONCE / ctx : 1;	/* windows at once */
	struct moments h = moments_make(n);
	float *wide = t.type == TENSOR_F16 ? xalloc(least(most * ctx, rows) * n, sizeof *wide) : NULL;

	if (t.type != TENSOR_F32 && t.type != TENSOR_F16 && t.type != TENSOR_BF16)
		die("%s: %s: is %s, expected f32, f16 or bf16", image_name(image), path,
			tensor_name(t.type));
	for (size_t i = (cut->shard - 1) * ctx, windows; i < rows; i += windows * cut->shards * ctx) {
		size_t m = least(ctx, rows - i);

		windows = least(most, (rows - i) / m);
		add_windows(&h, windows, m, (const char *)t.data + i * n * tensor_size(t.type), t.type,
			wide);
	}
	write_moments(out, image_name(image), layer, &h);
	moments_free(&h);
	free(wide);
	free(path);
}

static size_t add_activations(struct output *out, const struct image *image, const struct selection *layers,
	const struct calibrate_cut *cut)
{
	struct layer_list list = groups_with(image, "input", layers);
	const size_t found = list.n;

	for (size_t i = 0; i < list.n; i++)
		if (!linked(out, image, &list, i))
			add_layer(out, image, list.path[i], cut);
	layer_list_free(&list);
	return found;
}

static size_t add_hessians(struct output *out, size_t n, const struct filter file[n],
	const struct selection *layers)
{
	const struct image *image = file->image;
	struct layer_list list = groups_with(image, "hessian", layers);
	const size_t found = list.n;

	for (size_t k = 1; k < n; k++) {
		struct layer_list other = groups_with(file[k].image, "hessian", layers);

		if (other.n != list.n)
			die("%s: holds %zu layers in part %zu, %s has %zu", image_name(file[k].image),
				other.n, image_part(image), image_name(image), list.n);
		layer_list_free(&other);
	}
	for (size_t i = 0; i < list.n; i++) {
		const char *layer = list.path[i];
		struct moments h;

		if (linked(out, image, &list, i))
			continue;
		h = moments_make(hessian_find(image, layer, 0).in);
		for (size_t k = 0; k < n; k++) {
			const struct hessian other = hessian_find(file[k].image, layer, h.in);

			moments_add_hessian(&h, image_name(file[k].image), layer, &other);
		}
		write_moments(out, image_name(image), layer, &h);
		moments_free(&h);
	}
	layer_list_free(&list);
	return found;
}

/* n files of which the first goes through the filter. */
struct sum {
	size_t n, done;
	struct filter *file;
	bool hessian;
	const struct selection *layers;
	const struct calibrate_cut *cut;
};

/* The other files' part that belongs to the first's. */
static void advance(struct sum *s)
{
	const struct filter *first = s->file;

	for (struct filter *f = s->file + 1; f < s->file + s->n; f++) {
		if (image_part(first->image))
			f->image = input_next(f->in);
		if (!f->image || image_parts(f->image) != image_parts(first->image))
			die("%s: holds Hessians of another model than %s: it has %zu parts, not %zu",
				input_name(f->in), input_name(first->in),
				f->image ? image_parts(f->image) : 0, image_parts(first->image));
	}
}

static void add_part(void *arg, const struct filter *f)
{
	struct sum *s = arg;
	const bool first = !image_part(f->image);

	advance(s);
	output_begin(f->out, f->image);
	for (size_t i = 1; first && i < s->n; i++) {
		char *input = xformat("input%zu", i + 1);

		output_history(f->out, input, s->file[i].image);
		free(input);
	}
	if (first && image_has(f->image, "/config"))
		output_copy(f->out, f->image, "/config", NULL);
	s->done += s->hessian ? add_hessians(f->out, s->n, s->file, s->layers) :
		add_activations(f->out, f->image, s->layers, s->cut);
	output_end(f->out);
}

void calibrate_files(size_t n, struct filter file[n], const struct selection *layers,
	const struct calibrate_cut *cut)
{
	struct sum s = { n, 0, file, !strcmp(image_kind(file->image), "hessian"), layers, cut };

	model_filter(file, add_part, &s);
	if (!s.done)
		die("%s: holds no layer with %s%s", input_name(file->in),
			s.hessian ? "a hessian" : "an input", selection_text(layers));
}
