/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrate.c -- Hessians of linear layers from what a model feeds them; see calibrate.h */
#include "model/calibrate.h"
#include "base/error.h"
#include "base/option.h"
#include "base/thread.h"
#include "num/bf16.h"
#include "num/half.h"
#include "num/linalg.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 512, ROWS = 4096, FEW = 1 << 16 };	/* numbers, below which one thread is quicker */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct hessian hessian_make(size_t in)
{
	return (struct hessian){ .in = in, .sum = xalloc(in * in, sizeof(double)),
		.absolute = xalloc(in, sizeof(double)), .absmax = xalloc(in, sizeof(float)) };
}

void hessian_free(struct hessian *h)
{
	free(h->sum);
	free(h->absolute);
	free(h->absmax);
	*h = (struct hessian){ 0 };
}

static void add_magnitudes(struct hessian *h, size_t rows, const void *x, enum half_type type)
{
	size_t n = h->in;

	#pragma omp parallel for num_threads(threads) schedule(static) if (rows * n > FEW)
	for (size_t j = 0; j < n; j += COLUMNS)
		for (size_t i = 0; i < rows; i++) {
			size_t columns = least(COLUMNS, n - j);
			const float *row = (const float *)x + i * n + j;
			float wide[COLUMNS];

			if (type == HALF_BF16) {
				half_widen(columns, wide, (const uint16_t *)x + i * n + j, type);
				row = wide;
			}
			linalg_magnitude(columns, &h->absolute[j], &h->absmax[j], row);
		}
	h->count += rows;
}

void hessian_add(struct hessian *h, size_t windows, size_t tokens, const float x[windows][tokens][h->in])
{
	linalg_gram(windows, tokens, h->in, (double (*)[h->in])h->sum, x);
	add_magnitudes(h, windows * tokens, x, HALF_NONE);
}

void hessian_add_bf16(struct hessian *h, size_t windows, size_t tokens, const uint16_t x[windows][tokens][h->in])
{
	bf16_gram(windows, tokens, h->in, (double (*)[h->in])h->sum, x);
	add_magnitudes(h, windows * tokens, x, HALF_BF16);
}

void hessian_add_file(struct hessian *h, const struct image *image, const char *layer)
{
	size_t n = h->in, square[2] = { n, n };
	char *path[4] = { xformat("%s/hessian", layer), xformat("%s/count", layer), xformat("%s/absmax", layer),
		xformat("%s/mean_abs", layer) };
	const float *sum = image_tensor(image, path[0], TENSOR_F32, 2, square).data;
	struct tensor t = image_tensor(image, path[1], TENSOR_I64, -1, NULL);
	const float *absmax = image_tensor(image, path[2], TENSOR_F32, 1, &n).data;
	const float *mean = image_tensor(image, path[3], TENSOR_F32, 1, &n).data;
	int64_t count = tensor_count(&t) == 1 ? *(const int64_t *)t.data : 0;

	if (count < 1)
		die("%s: %s: must be one positive number", image_name(image), path[1]);
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i; j < n; j++)
			h->sum[i * n + j] += (double)sum[i * n + j];
		h->absolute[i] += (double)mean[i] * (double)count;
		h->absmax[i] = absmax[i] > h->absmax[i] ? absmax[i] : h->absmax[i];
	}
	h->count += (uint64_t)count;
	for (int i = 0; i < 4; i++)
		free(path[i]);
}

void hessian_finish(const struct hessian *h, const char *layer, float hessian[h->in][h->in], float mean_abs[h->in])
{
	if (!h->count)
		die("%s: has seen no tokens", layer);
	for (size_t i = 0; i < h->in; i++) {
		if (!isfinite((float)h->sum[i * h->in + i]))
			die("%s: input %zu overflows: the sum of its squares is not finite", layer, i);
		mean_abs[i] = (float)(h->absolute[i] / (double)h->count);
	}
	linalg_mirror(h->in, hessian, (const double (*)[h->in])h->sum);
}

void hessian_write(struct output *out, const char *layer, const struct hessian *h)
{
	size_t n = h->in;
	float *hessian = xalloc(n * n, sizeof *hessian), *mean = xalloc(n, sizeof *mean);
	int64_t count = (int64_t)h->count;
	struct tensor scalar = tensor_of(TENSOR_I64, &count, 0, NULL);
	char *path[4] = { xformat("%s/hessian", layer), xformat("%s/count", layer), xformat("%s/absmax", layer),
		xformat("%s/mean_abs", layer) };

	hessian_finish(h, layer, (float (*)[n])hessian, mean);
	output_write(out, path[0], tensor_2d(TENSOR_F32, hessian, n, n));
	output_write(out, path[1], scalar);
	output_write(out, path[2], tensor_1d(TENSOR_F32, h->absmax, n));
	output_write(out, path[3], tensor_1d(TENSOR_F32, mean, n));
	for (int i = 0; i < 4; i++)
		free(path[i]);
	free(hessian);
	free(mean);
}

/* ---- of a model ---- */

/* The shared input of a layer, or SIZE_MAX: embeddings have none. */
static size_t site_of(const struct config *c, const char *layer)
{
	size_t block, row;

	if (config_find(c, layer, &block, &row) && block < c->blocks)
		return block * SITES + c->arch->linear[row].site;
	return strcmp(layer, c->arch->head) ? SIZE_MAX : c->blocks * SITES;
}

struct calibration calibrate_begin(const struct image *image, const struct config *c)
{
	struct calibration k = { .config = c, .list = layer_list(image, c) };

	k.site = xalloc(c->blocks * SITES + 1, sizeof *k.site);
	for (size_t i = 0; i < k.list.n; i++) {
		size_t s = site_of(c, k.list.path[i]);

		if (s < SIZE_MAX && !k.site[s].in)
			k.site[s] = hessian_make(s == c->blocks * SITES ? c->hidden : config_in(c, (enum site_name)(s % SITES)));
	}
	return k;
}

static void see(void *arg, size_t block, enum site_name site, size_t windows, size_t tokens, size_t in, const float *x)
{
	struct calibration *k = arg;
	struct hessian *h = &k->site[site == SITE_HEAD ? k->config->blocks * SITES : block * SITES + site];

	if (h->in)
		hessian_add(h, windows, tokens, (const float (*)[tokens][in])x);
}

struct observer calibrate_observer(struct calibration *k)
{
	return (struct observer){ see, k };
}

const struct hessian *calibrate_find(const struct calibration *k, const char *layer)
{
	size_t s = site_of(k->config, layer);

	return s < SIZE_MAX && k->site[s].in ? &k->site[s] : NULL;
}

void calibrate_write(struct calibration *k, struct output *out)
{
	const char **first = xalloc(k->config->blocks * SITES + 1, sizeof *first);

	for (size_t i = 0; i < k->list.n; i++) {
		size_t s = site_of(k->config, k->list.path[i]);

		if (s == SIZE_MAX)
			continue;
		if (first[s]) {
			output_link(out, k->list.path[i], first[s]);
			continue;
		}
		hessian_write(out, k->list.path[i], &k->site[s]);
		first[s] = k->list.path[i];
	}
	free(first);
}

void calibrate_end(struct calibration *k)
{
	for (size_t i = 0; i <= k->config->blocks * SITES; i++)
		hessian_free(&k->site[i]);
	free(k->site);
	layer_list_free(&k->list);
}

/* ---- of files ---- */

struct wanted { const struct image *image; const char *member; struct layer_list list; };

static void visit(void *arg, const char *group)
{
	struct wanted *w = arg;
	char *path = xformat("%s/%s", group, w->member);

	if (option_layer(group) && image_has(w->image, path)) {
		w->list.path = realloc(w->list.path, (w->list.n + 1) * sizeof *w->list.path);
		if (!w->list.path)
			die("out of memory");
		w->list.path[w->list.n++] = xformat("%s", group);
	}
	free(path);
}

static struct layer_list groups_with(const struct image *image, const char *member)
{
	struct wanted w = { .image = image, .member = member };

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

/* Adds windows of m rows each that follow each other; wide: room for them as f32 where they are f16. */
static void add_windows(struct hessian *h, size_t windows, size_t m, const void *x, enum tensor_type type, float *wide)
{
	size_t n = h->in;

	if (type == TENSOR_BF16) {
		hessian_add_bf16(h, windows, m, (const uint16_t (*)[m][n])x);
		return;
	}
	if (type == TENSOR_F16) {
		half_widen(windows * m * n, wide, x, HALF_F16);
		x = wide;
	}
	hessian_add(h, windows, m, (const float (*)[m][n])x);
}

static void activations_of(struct output *out, const struct image *image, const char *layer, size_t ctx, size_t limit,
	size_t shard, size_t shards)
{
	char *path = xformat("%s/input", layer);
	struct tensor t = image_tensor(image, path, TENSOR_ANY, 2, NULL);
	size_t rows = limit && limit < t.dim[0] ? limit : t.dim[0], n = t.dim[1];
	size_t most = shards == 1 && ctx < ROWS ? ROWS / ctx : 1;	/* windows at once */
	struct hessian h = hessian_make(n);
	float *wide = t.type == TENSOR_F16 ? xalloc(least(most * ctx, rows) * n, sizeof *wide) : NULL;

	if (t.type != TENSOR_F32 && t.type != TENSOR_F16 && t.type != TENSOR_BF16)
		die("%s: %s: is %s, f32, f16 or bf16 was wanted", image_name(image), path, tensor_name(t.type));
	for (size_t i = (shard - 1) * ctx, windows; i < rows; i += windows * shards * ctx) {
		size_t m = least(ctx, rows - i);

		windows = least(most, (rows - i) / m);
		add_windows(&h, windows, m, (const char *)t.data + i * n * tensor_size(t.type), t.type, wide);
	}
	hessian_write(out, layer, &h);
	hessian_free(&h);
	free(wide);
	free(path);
}

void calibrate_activations(struct output *out, const struct image *image, size_t ctx, size_t limit, size_t shard, size_t shards)
{
	struct layer_list list = groups_with(image, "input");

	for (size_t i = 0; i < list.n; i++)
		if (!linked(out, image, &list, i))
			activations_of(out, image, list.path[i], ctx, limit, shard, shards);
	layer_list_free(&list);
}

void calibrate_sum(struct output *out, size_t n, struct image *const image[n])
{
	struct layer_list list = groups_with(image[0], "hessian");

	for (size_t k = 1; k < n; k++) {
		struct layer_list other = groups_with(image[k], "hessian");

		if (other.n != list.n)
			die("%s: holds %zu layers in part %zu, %s has %zu", image_name(image[k]), other.n, image_part(image[0]),
				image_name(image[0]), list.n);
		layer_list_free(&other);
	}
	for (size_t i = 0; i < list.n; i++) {
		char *path = xformat("%s/hessian", list.path[i]);
		struct hessian h;

		if (!linked(out, image[0], &list, i)) {
			h = hessian_make(image_tensor(image[0], path, TENSOR_F32, 2, NULL).dim[0]);
			for (size_t k = 0; k < n; k++)
				hessian_add_file(&h, image[k], list.path[i]);
			hessian_write(out, list.path[i], &h);
			hessian_free(&h);
		}
		free(path);
	}
	layer_list_free(&list);
}
