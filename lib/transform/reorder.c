/* SPDX-License-Identifier: GPL-3.0-or-later */
/* reorder.c -- see reorder.h */
#include "transform/reorder.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

/* A part on its way. */
struct walk {
	const struct reorder *r;
	const struct filter *f;
	size_t n;
	char **written;		/* [n] groups that have their order already */
};

static void write_order(struct walk *w, const char *layer, const char *path)
{
	char *source = xformat("%s/hessian", layer);
	struct tensor h = image_tensor(w->f->image, source, TENSOR_F32, 2, NULL);
	size_t n = h.dim[0], bad;
	const float (*hessian)[n] = h.data;
	float *diag = xalloc(n, sizeof *diag);
	int32_t *order = xalloc(n, sizeof *order);
	void *work = xalloc(order_work(n), 1);
	const size_t group = w->r->group > 0 ? (size_t)w->r->group : 0;

	if (h.dim[1] != n)
		die("%s: %s: has %zu rows and %zu columns, expected a square",
			image_name(w->f->image), source, n, h.dim[1]);
	for (size_t i = 0; i < n; i++)
		diag[i] = hessian[i][i];
	bad = order_columns(n, order, diag, w->r->kind, w->r->key, group, work);
	if (bad)
		die("%s: %s: diagonal element %zu is %g, expected a sum of squares",
			image_name(w->f->image), source, bad - 1, (double)diag[bad - 1]);
	output_write(w->f->out, path, tensor_1d(TENSOR_I32, order, n));
	free(work), free(order), free(diag), free(source);
}

static bool is_written(const struct walk *w, const char *group)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->written[i], group))
			return true;
	return false;
}

static void visit(void *arg, const char *group)
{
	struct walk *w = arg;
	char *source = xformat("%s/hessian", group), *path = xformat("%s/order", group), *same;

	if (selection_has(w->r->layers, group) && image_has(w->f->image, source)) {
		same = image_same(w->f->image, group);
		if (is_written(w, same))
			output_link(w->f->out, group, same);
		else
			write_order(w, group, path);
		w->written = xgrow(w->written, w->n + 1, sizeof *w->written);
		w->written[w->n++] = xformat("%s", group);
		free(same);
	}
	free(source), free(path);
}

void reorder_part(void *arg, const struct filter *f)
{
	struct reorder *r = arg;
	struct walk w = { .r = r, .f = f };
	char *config = image_part(f->image) ? NULL : image_config(f->image);

	output_begin(f->out, f->image);
	if (!image_part(f->image)) {
		output_text(f->out, "/", "order", order_kinds[r->kind]);
		if (r->kind == ORDER_GAR) {
			output_text(f->out, "/", "key", order_keys[r->key]);
			output_integer(f->out, "/", "group", r->group);
		}
		if (config)
			output_string(f->out, "/config", config);
	}
	image_groups(f->image, visit, &w);
	output_end(f->out);
	r->done += w.n;
	for (size_t i = 0; i < w.n; i++)
		free(w.written[i]);
	free(w.written);
	free(config);
}
