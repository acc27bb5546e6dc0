/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unit_kl.c -- see unit_kl.h */
#include "eval/unit_kl.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "calib/hessian.h"
#include "model/dense.h"
#include "model/layer.h"
#include "quant/stats.h"

/* The weight to compare with that of the model: rotated back in new memory if its rotation is another one. */
static struct linear comparable(const struct linear *v, const struct linear *w, float **memory)
{
	if (linear_rotations_agree(v->in, &v->rotation_in, &w->rotation_in) &&
	    linear_rotations_agree(v->out, &v->rotation_out, &w->rotation_out))
		return *v;
	*memory = xalloc(v->out * v->in, sizeof **memory);
	linear_dense(v, (float (*)[v->in])*memory);
	return (struct linear){ .out = v->out, .in = v->in, .weight = *memory };
}

/* tr(E H Eᵀ)/tr(W H Wᵀ) of a layer. */
static double error_of_layer(const struct part *model, const struct part *candidate,
	const struct part *hessian, const char *path)
{
	struct layer w = layer_read(model, path, 0, 0), v = layer_read(candidate, path, 0, 0);
	void *work = xalloc(stats_workspace(w.linear.out, w.linear.in), 1);
	float *own, *memory = NULL;
	const float *h = hessian_mixed(hessian, path, w.linear.in, &own).sum;
	const struct linear other = comparable(&v.linear, &w.linear, &memory);
	struct weight_difference d;

	hessian_check(part_name(hessian), path, w.linear.in, h);
	if (!stats_difference(&w.linear, &other, h, &d, work))
		die("%s: %s/hessian: makes the output error infinite or NaN", part_name(hessian), path);
	free(work), free(own), free(memory);
	layer_free(&w), layer_free(&v);
	return d.output;
}

/* The sum over the layers of a unit. */
static double output_error(const struct units *u, const struct part *hessian, size_t unit, size_t candidate)
{
	const struct layer_list *list = &u->unit[unit].list;
	double sum = 0;

	for (size_t j = 0; j < list->n; j++)
		sum += error_of_layer(u->model, u->candidate[candidate], hessian, list->layer[j].path);
	return sum;
}

void unit_kl_scale(const struct units *u, const struct part *hessian, double kl[])
{
	for (size_t i = 0; i < u->n; i++) {
		double *own = kl + i * u->candidates, first = output_error(u, hessian, i, 0);

		if (!(first > 0))
			die("%s: %s: has no output error by %s, expected one in each layer of the first "
				"candidate", part_name(*u->candidate), u->unit[i].glob, part_name(hessian));
		for (size_t c = 1; c < u->candidates; c++)
			own[c] = own[0] * output_error(u, hessian, i, c) / first;
		part_drop(hessian);
	}
}

/* Compares the beginning of *text with the lines of a candidate, and moves *text to what follows. */
static void check_lines(const char *file, const struct units *u, size_t unit, size_t c, const char **text)
{
	char *lines = unit_lines(u, unit, c, "");
	const size_t n = strlen(lines);

	if (strncmp(*text, lines, n))
		die("%s: /lines: is of other candidates: %s has %.*s, expected %.*s", file,
			part_name(u->candidate[c]), (int)strcspn(lines, "\n"), lines,
			(int)strcspn(*text, "\n"), *text);
	*text += n;
	free(lines);
}

/* Other numbers of units or candidates than those of the stored KL. */
static void check_numbers(const struct part *file, const struct units *u)
{
	struct tensor t;

	if (part_shape(file, "/kl", TENSOR_F64, 2, NULL, &t) &&
	    (t.dim[0] != u->n || t.dim[1] != u->candidates))
		die("%s: /kl: is of %zu candidates and %zu blocks or layers, expected %zu and %zu",
			part_name(file), t.dim[1], t.dim[0], u->candidates, u->n);
}

void unit_kl_read(const struct part *file, const struct units *u, double kl[])
{
	const char *path = part_name(file), *rest;
	const size_t dim[] = { u->n, u->candidates };
	const int64_t *size;
	const double *own;
	char *lines;

	check_numbers(file, u);
	size = part_tensor(file, "/size", TENSOR_I64, 2, dim).data;
	own = part_tensor(file, "/kl", TENSOR_F64, 2, dim).data;
	rest = lines = part_string(file, "/lines");
	if (!lines)
		die("%s: /lines: is missing", path);
	for (size_t i = 0; i < u->n * u->candidates; i++) {
		check_lines(path, u, i / u->candidates, i % u->candidates, &rest);
		if ((uint64_t)size[i] != u->size[i])
			die("%s: /size: is of other candidates: %s in %s has %llu bits, expected %lld", path,
				u->unit[i / u->candidates].glob, part_name(u->candidate[i % u->candidates]),
				(unsigned long long)u->size[i], (long long)size[i]);
		if (!(own[i] >= 0 && isfinite(own[i])))
			die("%s: /kl: has %g, expected finite numbers of at least 0", path, own[i]);
		kl[i] = own[i];
	}
	free(lines);
}

static void write_lines(struct output *out, const struct units *u)
{
	const size_t n = u->n * u->candidates;
	char **one = xalloc(n, sizeof *one), *all, *end;
	size_t bytes = 1;

	for (size_t i = 0; i < n; i++) {
		one[i] = unit_lines(u, i / u->candidates, i % u->candidates, "");
		bytes += strlen(one[i]);
	}
	end = all = xalloc(bytes, 1);
	for (size_t i = 0; i < n; i++) {
		end = stpcpy(end, one[i]);
		free(one[i]);
	}
	output_string(out, "/lines", all);
	free(one), free(all);
}

void unit_kl_write(struct output *out, const struct units *u, const double kl[])
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
	write_lines(out, u);
	output_write(out, "/size", tensor_2d(TENSOR_I64, size, u->n, u->candidates));
	output_write(out, "/kl", tensor_2d(TENSOR_F64, (void *)(uintptr_t)kl, u->n, u->candidates));
	output_end(out);
	output_close(out);
	free(name), free(size);
}
