/* SPDX-License-Identifier: GPL-3.0-or-later */
/* order.c -- see transform/reorder.h */
#include "transform/reorder.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

struct job {
	struct output *out;
	const struct image *image;
	const struct selection *layers;
	enum order_kind kind;
	enum order_key key;
	size_t group, done;
	char **written;		/* groups that have their order already */
};

static void write_order(struct job *j, const char *group, const char *path)
{
	char *source = xformat("%s/hessian", group);
	struct tensor h = image_tensor(j->image, source, TENSOR_F32, 2, NULL);
	size_t n = h.dim[0], bad;
	const float (*hessian)[n] = h.data;
	float *diag = xalloc(n, sizeof *diag);
	int32_t *order = xalloc(n, sizeof *order);
	void *work = xalloc(order_workspace(n), 1);

	if (h.dim[1] != n)
		die("%s: %s: has %zu rows and %zu columns, a square was wanted", image_name(j->image), source, n, h.dim[1]);
	for (size_t i = 0; i < n; i++)
		diag[i] = hessian[i][i];
	bad = order_columns(n, order, diag, j->kind, j->key, j->group, work);
	if (bad)
		die("%s: %s: diagonal element %zu is %g, a sum of squares was wanted", image_name(j->image), source, bad - 1,
			(double)diag[bad - 1]);
	output_write(j->out, path, tensor_1d(TENSOR_I32, order, n));
	free(work), free(order), free(diag), free(source);
}

static bool is_written(const struct job *j, const char *group)
{
	for (size_t i = 0; i < j->done; i++)
		if (!strcmp(j->written[i], group))
			return true;
	return false;
}

static void visit(void *arg, const char *group)
{
	struct job *j = arg;
	char *source = xformat("%s/hessian", group), *path = xformat("%s/order", group), *same;

	if (selection_has(j->layers, group) && image_has(j->image, source)) {
		same = image_same(j->image, group);
		if (is_written(j, same))
			output_link(j->out, group, same);
		else
			write_order(j, group, path);
		j->written = realloc(j->written, (j->done + 1) * sizeof *j->written);
		if (!j->written)
			die("out of memory");
		j->written[j->done++] = xformat("%s", group);
		free(same);
	}
	free(source), free(path);
}

size_t order_part(struct output *out, const struct image *image, const struct selection *layers,
	enum order_kind kind, enum order_key key, size_t group)
{
	struct job j = { out, image, layers, kind, key, group, 0, NULL };

	image_groups(image, visit, &j);
	for (size_t i = 0; i < j.done; i++)
		free(j.written[i]);
	free(j.written);
	return j.done;
}
