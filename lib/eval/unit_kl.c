/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unit_kl.c -- see unit_kl.h */
#include "eval/unit_kl.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "calib/hessian.h"
#include "model/dense.h"
#include "model/layer.h"
#include "quant/stats.h"

/* tr(E H Eᵀ)/tr(W H Wᵀ) of a layer. */
static double error_of_layer(const struct part *model, const struct part *candidate,
	const struct part *hessian, const char *path)
{
	struct layer w = layer_read(model, path, 0, 0), v = layer_read(candidate, path, 0, 0);
	void *work = xalloc(stats_workspace(w.linear.out, w.linear.in), 1);
	float *own, *memory[2] = { NULL };
	const float *h = hessian_mixed(hessian, path, w.linear.in, &own).sum;
	const struct linear a = linear_of_hessian(&w.linear, &memory[0]);
	const struct linear b = linear_same_rotations(&v.linear, &w.linear) ?
		linear_of_hessian(&v.linear, &memory[1]) : linear_dense_layer(&v.linear, &memory[1]);
	struct weight_difference d;

	hessian_check(part_name(hessian), path, w.linear.in, h);
	if (!stats_difference(&a, &b, h, &d, work))
		die("%s: %s/hessian: makes the output error infinite or NaN", part_name(hessian), path);
	free(work), free(own), free(memory[0]), free(memory[1]);
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

/* The stored KL: of the same units, and of candidates among which those of *u are. */
struct stored {
	const char *file;
	size_t candidates;
	const int64_t *size;		/* [units][candidates], as kl */
	const double *kl;
	char *text, **lines;		/* entries of `text` */
	char **commands;		/* [candidates] commands_of() */
};

/* Reads the file, and divides the text into its entries. */
static struct stored stored_read(const struct part *file, const struct units *u)
{
	struct stored s = { .file = part_name(file) };
	size_t dim[2] = { u->n, 0 }, n = 0;
	struct tensor t;

	if (!part_find(file, "/kl", TENSOR_F64, 2, NULL, &t))
		die("%s: has no KL of units, expected a file of plan-bits -o", s.file);
	if (!t.dim[1])
		die("%s: /kl: has no candidates", s.file);
	if (t.dim[0] != u->n)
		die("%s: /kl: is of %zu blocks or layers, expected %zu; --by and --layers must be those of "
			"the run that stored it", s.file, t.dim[0], u->n);
	s.candidates = dim[1] = t.dim[1];
	s.kl = t.data;
	s.size = part_tensor(file, "/size", TENSOR_I64, 2, dim).data;
	s.text = part_string(file, "/lines");
	if (!s.text)
		die("%s: /lines: is missing", s.file);
	s.lines = xalloc(u->n * s.candidates, sizeof *s.lines);
	for (char *rest = s.text, *end; (end = strstr(rest, "\n\n")); rest = end + 2, n++)
		if (n < u->n * s.candidates) {
			end[1] = '\0';
			s.lines[n] = rest;
		}
	s.commands = part_strings(file, "/commands_sha256", s.candidates);
	if (n != u->n * s.candidates)
		die("%s: /lines: has %zu entries, expected %zu", s.file, n, u->n * s.candidates);
	return s;
}

/* The first unit whose entry or size for the stored candidate k is another one than in lines and size. */
static size_t first_other(const struct stored *s, const struct units *u, size_t c, size_t k,
	char *const lines[])
{
	size_t i = 0;

	while (i < u->n && !strcmp(lines[i], s->lines[i * s->candidates + k]) &&
		(uint64_t)s->size[i * s->candidates + k] == u->size[i * u->candidates + c])
		i++;
	return i;
}

/* Fatal error: no stored candidate is candidate c; `nearest` has the same first `same` units. */
static void fail_other(const struct stored *s, const struct units *u, size_t c, size_t nearest, size_t same,
	char *const lines[])
{
	const char *stored = s->lines[same * s->candidates + nearest];

	if (strcmp(lines[same], stored))
		die("%s: /lines: is of other candidates: %s has %.*s, expected %.*s", s->file,
			part_name(u->candidate[c]), (int)strcspn(lines[same], "\n"), lines[same],
			(int)strcspn(stored, "\n"), stored);
	die("%s: /size: is of other candidates: %s in %s has %llu bits, expected %lld", s->file,
		u->unit[same].glob, part_name(u->candidate[c]),
		(unsigned long long)u->size[same * u->candidates + c],
		(long long)s->size[same * s->candidates + nearest]);
}

/* The digest of the histories of a candidate, the commands that made it; free() it. */
static char *commands_of(const struct units *u, size_t c)
{
	char *text = part_histories(u->candidate[c]), *y = digest_of(strlen(text), text);

	free(text);
	return y;
}

/* Whether the stored candidates a and b have the same KL of all units. */
static bool same_column(const struct stored *s, size_t units, size_t a, size_t b)
{
	size_t i = 0;

	while (i < units && s->kl[i * s->candidates + a] == s->kl[i * s->candidates + b])
		i++;
	return i == units;
}

/* Of the n stored candidates found[] with the formats and sizes of candidate c, the one that the same
 * commands made. A file made by hand has no commands. */
static size_t stored_choose(const struct stored *s, const struct units *u, size_t c, size_t n,
	const size_t found[n])
{
	char *commands = commands_of(u, c), *none = digest_of(0, "");
	const bool known = strcmp(commands, none) != 0;
	size_t y = found[0], equal = 0;
	bool unclear = false;

	for (size_t i = 0; i < n; i++)
		if (known && !strcmp(s->commands[found[i]], commands)) {
			unclear |= equal && !same_column(s, u->n, y, found[i]);
			y = equal++ ? y : found[i];
		}
	if (unclear || (!equal && n > 1))
		die("%s: has %zu candidates with the formats of %s, not exactly one by the same commands; "
			"--tokens without --costs measures again", s->file, n, part_name(u->candidate[c]));
	if (known && !equal)
		warn("%s: its KLs are those of a candidate of the same formats that other commands made (%s)",
			part_name(u->candidate[c]), s->file);
	free(commands), free(none);
	return y;
}

/* The stored candidate that is candidate c. */
static size_t stored_find(const struct stored *s, const struct units *u, size_t c)
{
	char **lines = xalloc(u->n, sizeof *lines);
	size_t *found = xalloc(s->candidates, sizeof *found), nearest = 0, most = 0, n = 0, y;

	for (size_t i = 0; i < u->n; i++)
		lines[i] = unit_lines(u, i, c, "");
	for (size_t k = 0; k < s->candidates; k++) {
		const size_t same = first_other(s, u, c, k, lines);
		/* equal lines with another size are nearer than other lines */
		const size_t near = 2 * same + (same < u->n && !strcmp(lines[same], s->lines[same *
			s->candidates + k]));

		if (same == u->n)
			found[n++] = k;
		else if (near >= most)
			nearest = k, most = near;
	}
	if (!n)
		fail_other(s, u, c, nearest, most / 2, lines);
	y = stored_choose(s, u, c, n, found);
	for (size_t i = 0; i < u->n; i++)
		free(lines[i]);
	free(lines), free(found);
	return y;
}

void unit_kl_read(const struct part *file, const struct units *u, double kl[])
{
	struct stored s = stored_read(file, u);
	size_t *at = xalloc(u->candidates, sizeof *at);

	for (size_t c = 0; c < u->candidates; c++)
		at[c] = stored_find(&s, u, c);
	for (size_t i = 0; i < u->n; i++)
		for (size_t c = 0; c < u->candidates; c++) {
			const double own = s.kl[i * s.candidates + at[c]];

			if (!(own >= 0 && isfinite(own)))
				die("%s: /kl: has %g, expected finite numbers of at least 0", s.file, own);
			kl[i * u->candidates + c] = own;
		}
	part_free_names(s.commands, s.candidates);
	free(s.text), free(s.lines), free(at);
}

/* The lines of each unit and candidate, and an empty line after them. */
static void write_lines(struct output *out, const struct units *u)
{
	const size_t n = u->n * u->candidates;
	char **one = xalloc(n, sizeof *one), *all, *end;
	size_t bytes = 1;

	for (size_t i = 0; i < n; i++) {
		one[i] = unit_lines(u, i / u->candidates, i % u->candidates, "");
		bytes += strlen(one[i]) + 1;
	}
	end = all = xalloc(bytes, 1);
	for (size_t i = 0; i < n; i++) {
		end = stpcpy(stpcpy(end, one[i]), "\n");
		free(one[i]);
	}
	output_string(out, "/lines", all);
	free(one), free(all);
}

void unit_kl_write(struct output *out, const struct units *u, const double kl[])
{
	const size_t n = u->n * u->candidates;
	const char **name = xalloc(u->n + u->candidates, sizeof *name);
	char **commands = xalloc(u->candidates, sizeof *commands);
	int64_t *size = xalloc(n, sizeof *size);

	for (size_t i = 0; i < u->n; i++)
		name[i] = u->unit[i].glob;
	for (size_t c = 0; c < u->candidates; c++) {
		name[u->n + c] = part_name(u->candidate[c]);
		commands[c] = commands_of(u, c);
	}
	for (size_t i = 0; i < n; i++)
		size[i] = (int64_t)u->size[i];
	output_strings(out, "/unit", u->n, name);
	output_strings(out, "/candidate", u->candidates, name + u->n);
	output_strings(out, "/commands_sha256", u->candidates, (const char *const *)commands);
	write_lines(out, u);
	output_write(out, "/size", tensor_2d(TENSOR_I64, size, u->n, u->candidates));
	output_write(out, "/kl", tensor_2d(TENSOR_F64, (void *)(uintptr_t)kl, u->n, u->candidates));
	output_end(out);
	output_close(out);
	part_free_names(commands, u->candidates);
	free(name), free(size);
}
