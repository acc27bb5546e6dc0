/* SPDX-License-Identifier: GPL-3.0-or-later */
/* reorder.c -- see reorder.h */
#include "transform/reorder.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "calib/hessian.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/layer.h"

/* Argument of visit(), for one part. */
struct order_walk {
	const struct reorder *r;
	const struct filter *f;
	size_t n;
	char **written;		/* [n] groups whose order is written */
};

int32_t *reorder_columns(const char *file, const char *layer, size_t n, const float hessian[n][n],
	enum order_kind kind, enum order_key key, long group)
{
	float *diag = xalloc(n, sizeof *diag);
	int32_t *order = xalloc(n, sizeof *order);
	void *workspace = xalloc(order_workspace(n), 1);
	size_t bad;

	for (size_t i = 0; i < n; i++)
		diag[i] = hessian[i][i];
	bad = order_columns(n, order, diag, kind, key, group > 0 ? (size_t)group : 0, workspace);
	if (bad)
		die("%s: %s/hessian: diagonal element %zu is %g, expected a sum of squares", file, layer,
			bad - 1, (double)diag[bad - 1]);
	free(workspace), free(diag);
	return order;
}

static void write_order(struct order_walk *w, const char *layer)
{
	float *own;
	const struct hessian h = hessian_mixed(w->f->part, layer, 0, &own);
	int32_t *order = reorder_columns(part_name(w->f->part), layer, h.in,
		(const float (*)[h.in])h.sum, w->r->kind, w->r->key, w->r->group);

	layer_put(w->f->out, layer, "order", tensor_1d(TENSOR_I32, order, h.in));
	free(order), free(own);
}

static bool is_written(const struct order_walk *w, const char *group)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->written[i], group))
			return true;
	return false;
}

static void visit(void *arg, const char *group)
{
	struct order_walk *w = arg;
	char *same;

	if (!selection_has(w->r->layers, group) || hessian_is_prior(group) ||
	    !hessian_exists(w->f->part, group))
		return;
	same = part_same(w->f->part, group);
	if (is_written(w, same))
		output_link(w->f->out, group, same);
	else
		write_order(w, group);
	w->written = xgrow(w->written, w->n + 1, sizeof *w->written);
	w->written[w->n++] = xformat("%s", group);
	free(same);
}

void reorder_part(void *arg, const struct filter *f)
{
	struct reorder *r = arg;
	struct order_walk w = { .r = r, .f = f };
	char *config = part_index(f->part) ? NULL : part_config(f->part);

	output_begin(f->out, f->part);
	if (!part_index(f->part)) {
		basis_copy(f->out, f->part);
		calibrated_write(f->out, 1, (const struct part *[]){ f->part }, NULL);
		output_text(f->out, "/", "order", order_kinds[r->kind]);
		if (r->kind == ORDER_GAR) {
			output_text(f->out, "/", "key", order_keys[r->key]);
			output_integer(f->out, "/", "group", r->group);
		}
		if (config)
			output_string(f->out, "/config", config);
	}
	part_groups(f->part, visit, &w);
	output_end(f->out);
	r->done += w.n;
	for (size_t i = 0; i < w.n; i++)
		free(w.written[i]);
	free(w.written);
	free(config);
}
