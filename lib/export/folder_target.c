/* SPDX-License-Identifier: GPL-3.0-or-later */
/* folder_target.c -- see folder_target.h */
#include "export/folder_target.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "export/export_config.h"
#include "io/file.h"
#include "model/dense.h"

struct folder_target {
	struct folder folder;
	struct safetensors_output *out;
};

void folder_begin(struct export *e)
{
	struct folder_target *r = e->folder = xalloc(1, sizeof *r);

	r->folder = folder_open(e->to);
	r->out = safetensors_create(&r->folder, "model", e->options.shard_bytes, export_header_room(e));
}

void folder_put(struct export *e, const char *name, const char *member, struct safetensors_data t)
{
	char *whole = xformat("%s.%s", name, member);

	safetensors_add(e->folder->out, whole, t);
	free(whole);
}

void folder_put_text(struct export *e, const char *file, const char *text)
{
	folder_write(&e->folder->folder, file, strlen(text), text);
}

void *folder_narrow(const struct export *e, const char *name, enum half_type dtype, size_t n, float *x)
{
	uint16_t *y;

	if (dtype == HALF_NONE)
		return x;
	y = xalloc(n, sizeof *y);
	half_narrow(n, y, x, dtype);
	if (!half_finite(n, y, dtype))
		die("%s: %s: has a number beyond the range of f16, expected --dtype bf16 or f32", e->from,
			name);
	return y;
}

/* Adds a tensor of numbers that are in the dtype already. */
static void add(const struct export *e, struct safetensors_output *out, const char *name, int rank,
	const size_t dim[], const void *x)
{
	static const char *const dtypes[] = { [HALF_NONE] = "F32", [HALF_F16] = "F16",
		[HALF_BF16] = "BF16" };
	struct safetensors_data t = { .dtype = dtypes[e->options.dtype],
		.element = half_size(e->options.dtype), .rank = rank, .data = x };

	memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
	safetensors_add(out, name, t);
}

void folder_add_plain(const struct export *e, struct safetensors_output *out, const char *name, int rank,
	const size_t dim[], float *x)
{
	size_t n = 1;
	void *y;

	for (int i = 0; i < rank; i++)
		n *= dim[i];
	y = folder_narrow(e, name, e->options.dtype, n, x);
	add(e, out, name, rank, dim, y);
	if (y != x)
		free(y);
}

void folder_put_plain(struct export *e, const char *name, int rank, const size_t dim[], float *x)
{
	folder_add_plain(e, e->folder->out, name, rank, dim, x);
}

/* [m, n] to [n, m]; frees x. */
static float *transpose(size_t m, size_t n, float *x)
{
	enum { TILE = 32 };
	float *y = xalloc(m * n, sizeof *y);

	for (size_t i0 = 0; i0 < m; i0 += TILE)
		for (size_t j0 = 0; j0 < n; j0 += TILE)
			for (size_t i = i0; i < m && i < i0 + TILE; i++)
				for (size_t j = j0; j < n && j < j0 + TILE; j++)
					y[j * m + i] = x[i * n + j];
	free(x);
	return y;
}

void folder_check_inputs(const struct export *e, const struct export_weight *w)
{
	for (const struct layer *l = w->layer; l < w->layer + w->n && !e->options.weights_only; l++) {
		const struct linear *a = l->linear.branch_a;

		if (linear_rounds(&l->linear) || (a && linear_rounds(a)))
			die("%s: %s: rounds its inputs, which --to %s does not write; --weights-only "
				"leaves their rounding out", e->from, l->path, e->target->name);
	}
}

void folder_weight(struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	char *name = xformat("%s.weight", w->name);
	float *x;

	folder_check_inputs(e, w);
	if (w->n == 1 && !w->transposed && linear_is_dense(l) && l->weight_type == e->options.dtype) {
		add(e, e->folder->out, name, w->rank, w->dim, l->weight);
		free(name);
		return;
	}
	x = export_dense(w);
	if (w->transposed)
		x = transpose(w->rows, w->columns, x);
	folder_put_plain(e, name, w->rank, w->dim, x);
	free(x);
	free(name);
}

void folder_tensor(struct export *e, const char *name, const struct tensor *t)
{
	const size_t n = tensor_count(t);
	float *x = xalloc(n, sizeof *x);

	half_widen(n, x, t->data, tensor_half(t->type));
	folder_put_plain(e, name, t->rank, t->dim, x);
	free(x);
}

/* Newer versions write the processor as an object of a file with other processors. */
static const char *text_file(const struct export *e, int i)
{
	json_t *root = text_rows[i].also ? json_loads(e->text[i], 0, NULL) : NULL;
	const bool new = json_object_get(root, "image_processor");

	json_decref(root);
	return new ? text_rows[i].also : text_rows[i].file;
}

void folder_end(struct export *e, json_t *quantization)
{
	struct folder_target *r = e->folder;
	char *config = export_config(e, quantization);

	safetensors_finish(r->out);
	folder_write(&r->folder, text_rows[TEXT_CONFIG].file, strlen(config), config);
	for (int i = TEXT_CONFIG + 1; i < TEXTS; i++)
		if (e->text[i])
			folder_write(&r->folder, text_file(e, i), strlen(e->text[i]), e->text[i]);
	file_check();
	ignore_signals();
	folder_done(&r->folder);
	free(config);
	free(r);
}

static void end(struct export *e)
{
	folder_end(e, NULL);
}

const struct target hf_target = { "hf", "a folder of plain weights, for transformers",
	"allow-rounding skip-compute blocks unify-scales report", folder_begin, folder_weight, folder_tensor,
	end };
