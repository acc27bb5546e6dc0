/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layers.c -- see layers.h */
#include "transform/layers.h"
#include <string.h>
#include "base/error.h"
#include "num/half.h"

size_t layers_each(const struct filter *f, const struct selection *layers,
	void (*visit)(void *arg, const struct layer_ref *layer, size_t in), void *arg)
{
	struct layer_list list;
	size_t n;

	if (f->config)
		return layer_each(f->config, layers, visit, arg);
	list = layer_list(f->part, NULL, layers);
	n = list.n;
	for (size_t i = 0; i < n; i++)
		visit(arg, &list.layer[i], 0);
	layer_list_free(&list);
	return n;
}

bool layers_whole(const struct filter *f)
{
	const size_t parts = part_count(f->part);

	return f->config ? parts > f->config->blocks : parts == 1;
}

void layers_none_selected(const char *name, const struct selection *layers)
{
	die("%s: holds no linear layer%s", name, selection_text(layers));
}

float *layers_moments(struct second_moments *moments, const char *file, const char *path,
	const struct linear *l)
{
	const size_t n = l->in, sums = moments->hessian ? n * n : 0;
	float *own, *absmax;

	if (moments->hessian)
		hessian_check(file, path, n, moments->hessian);
	if (moments->cross && !half_finite(n * n, moments->cross, HALF_NONE))
		die("%s: %s/cross: holds a number that is not finite", file, path);
	if (moments->cross && l->splits)
		die("%s: has split columns, which cross moments do not correct, expected a layer before "
			"rms-suppress", path);
	if (!l->splits || !(moments->hessian || moments->absmax))
		return NULL;
	own = xalloc(sums + n, sizeof *own);
	absmax = own + sums;
	if (sums)
		memcpy(own, moments->hessian, sums * sizeof *own);
	if (moments->absmax)
		memcpy(absmax, moments->absmax, n * sizeof *absmax);
	for (size_t k = 0; k < l->splits; k++) {
		const size_t i = (size_t)l->split_index[k];

		for (size_t j = 0; sums && j < n; j++)
			own[i * n + j] = own[j * n + i] = 0;
		absmax[i] = 0;
	}
	if (sums)
		moments->hessian = own;
	if (moments->absmax)
		moments->absmax = absmax;
	return own;
}

void layers_codes(struct codes *c)
{
	codes_lay_out(c, xalloc(codes_lay_out(c, NULL), 1));
}

/* The cause of a status: the file, and the member of the layer in it. */
static const struct blame { enum { MODEL, HESSIAN, ORDER } file; const char *member; } blames[] = {
	[STATUS_BAD_WEIGHT] = { MODEL, "/weight" },
	[STATUS_BAD_MAIN] = { MODEL, "" },
	[STATUS_BAD_ORDER] = { ORDER, "/order" },
	[STATUS_BAD_DIAGONAL] = { HESSIAN, "/hessian" },
	[STATUS_BAD_HESSIAN] = { HESSIAN, "/hessian" },
	[STATUS_NOT_POSITIVE] = { HESSIAN, "/hessian" },
	[STATUS_OVERFLOW] = { MODEL, "" },
	[STATUS_BEYOND_HALF] = { MODEL, "/weight" },
	[STATUS_NO_CONVERGENCE] = { MODEL, "" },
};

void layers_fail(enum status status, size_t index, const char *path, const struct part *model,
	const struct moments_source *source)
{
	const struct blame b = blames[status];
	const char *file = b.file == MODEL ? part_name(model) : b.file == ORDER ? source->order_name :
		source->name, *text = status_text(status);

	if (status == STATUS_OVERFLOW)
		die("%s: %s: %s; --branch-format bf16 and f32 have a larger range", file, path, text);
	if (status == STATUS_NO_CONVERGENCE)
		die("%s: %s: %s", file, path, text);
	die("%s: %s%s: %s (at %zu)", file, path, b.member, text, index);
}
