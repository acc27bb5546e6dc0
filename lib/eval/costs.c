/* SPDX-License-Identifier: GPL-3.0-or-later */
/* costs.c -- see costs.h */
#include "eval/costs.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "calib/hessian.h"
#include "model/layer.h"
#include "quant/stats.h"

/* Σ tr(E H Eᵀ)/tr(W H Wᵀ) over the layers of a unit. */
static double output_error(const struct units *u, const struct part *hessian, size_t unit, size_t candidate)
{
	const struct layer_list *list = &u->unit[unit].list;
	double sum = 0;

	for (size_t j = 0; j < list->n; j++) {
		const char *path = list->layer[j].path;
		struct layer w = layer_read(u->model, path, 0, 0);
		struct layer v = layer_read(u->candidate[candidate], path, 0, 0);
		void *work = xalloc(stats_workspace(w.linear.out, w.linear.in), 1);
		struct weight_difference d;
		float *own;
		const float *h = hessian_mixed(hessian, path, w.linear.in, &own).sum;

		hessian_check(part_name(hessian), path, w.linear.in, h);
		if (!stats_difference(&w.linear, &v.linear, h, &d, work))
			die("%s: %s/hessian: makes the output error infinite or NaN", part_name(hessian),
				path);
		sum += d.output;
		free(work), free(own);
		layer_free(&w), layer_free(&v);
	}
	return sum;
}

void costs_scale(const struct units *u, const struct part *hessian, double cost[])
{
	for (size_t i = 0; i < u->n; i++) {
		double *own = cost + i * u->candidates, first = output_error(u, hessian, i, 0);

		if (!(first > 0))
			die("%s: %s: has no output error; the first candidate must have one in each layer",
				part_name(*u->candidate), u->unit[i].glob);
		for (size_t c = 1; c < u->candidates; c++)
			own[c] = own[0] * output_error(u, hessian, i, c) / first;
		part_drop(hessian);
	}
}

void costs_read(const char *path, const struct units *u, double cost[])
{
	struct part *file = part_open(path, "result");
	const size_t dim[] = { u->n, u->candidates };
	const int64_t *size = part_tensor(file, "/size", TENSOR_I64, 2, dim).data;
	const double *kl = part_tensor(file, "/kl", TENSOR_F64, 2, dim).data;

	for (size_t i = 0; i < u->n * u->candidates; i++) {
		if ((uint64_t)size[i] != u->size[i])
			die("%s: /size: is of other candidates: %s in %s has %llu bits, expected %lld", path,
				u->unit[i / u->candidates].glob, part_name(u->candidate[i % u->candidates]),
				(unsigned long long)u->size[i], (long long)size[i]);
		if (!(kl[i] >= 0 && isfinite(kl[i])))
			die("%s: /kl: has %g, expected finite numbers of at least 0", path, kl[i]);
		cost[i] = kl[i];
	}
	part_close(file);
}

void costs_write(struct output *out, const struct units *u, const double cost[])
{
	const size_t n = u->n * u->candidates;
	const char **name = xalloc(u->n + u->candidates, sizeof *name);
	int64_t *size = xalloc(n, sizeof *size);

	for (size_t i = 0; i < u->n; i++)
		name[i] = u->unit[i].glob;
	for (size_t c = 0; c < u->candidates; c++)
		name[u->n + c] = part_name(u->candidate[c]);
	for (size_t i = 0; i < n; i++)
		size[i] = (int64_t)u->size[i];
	output_strings(out, "/unit", u->n, name);
	output_strings(out, "/candidate", u->candidates, name + u->n);
	output_write(out, "/size", tensor_2d(TENSOR_I64, size, u->n, u->candidates));
	output_write(out, "/kl", tensor_2d(TENSOR_F64, (void *)(uintptr_t)cost, u->n, u->candidates));
	output_end(out);
	output_close(out);
	free(name), free(size);
}
