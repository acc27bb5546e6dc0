/* SPDX-License-Identifier: GPL-3.0-or-later */
/* record.c -- see record.h */
#include "eval/record.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/calibrated.h"

const double same_nll = 0.01;

void record_input(struct output *out, const char *option, const struct part *input)
{
	if (out && input)
		output_history(out, option, input);
}

struct output *record_open(const char *path, const struct part *model)
{
	struct output *out;

	output_stdout_check(path);
	if (!path)
		return NULL;
	out = output_open(path, "result");
	output_start(out, 0, 1);
	record_input(out, "model", model);
	calibrated_write(out, 1, &model, NULL);
	return out;
}

void record_tokens(struct output *out, const char *used)
{
	if (out)
		output_text(out, "/", EVALUATED, used);
}

static const char SETTINGS[] = "settings";

void record_settings(struct output *out, const char *settings)
{
	if (out)
		output_text(out, "/", SETTINGS, settings);
}

void record_check_settings(const struct part *record, const char *settings, const char *other)
{
	char *theirs = part_text(record, "/", SETTINGS);

	if (theirs && settings && strcmp(theirs, settings))
		warn("%s was made with %s, and %s with %s", part_name(record), theirs, other, settings);
	free(theirs);
}

void record_check_same_settings(const struct part *record, const struct part *other)
{
	char *settings = part_text(other, "/", SETTINGS);

	record_check_settings(record, settings, part_name(other));
	free(settings);
}

/* Fatal error if the record has windows of other places of the same text. A record of version 1.0 has no
 * attribute. Ends of ranges may differ, since the last ids may fill no window. */
static void check_places(const struct part *record, const char *used)
{
	char *text = part_text(record, "/", EVALUATED);
	struct calibrated_range a, b;

	if (text && calibrated_parse(text, &a) && calibrated_parse(used, &b) &&
	    !strncmp(a.digest, b.digest, DIGEST_DIGITS)) {
		if (!a.windows != !b.windows || a.seed != b.seed)
			die("%s: /: attribute %s: has other windows: use the same --random-windows",
				part_name(record), EVALUATED);
		if (a.first != b.first)
			die("%s: /: attribute %s: has tokens from %zu on, expected from %zu on: use the same "
				"--skip", part_name(record), EVALUATED, a.first, b.first);
	}
	free(text);
}

/* The id and the window of each target. */
struct record_places { int32_t *id, *window; };

static struct record_places places_of(const struct windows *w)
{
	struct record_places p = { xalloc(w->targets, sizeof *p.id), xalloc(w->targets, sizeof *p.window) };
	size_t n = 0;

	for (size_t k = 0; k < w->n; k++)
		for (size_t i = w->sequence[k].first, end = i + w->sequence[k].length; i < end; i++)
			if (w->target[i] >= 0) {
				p.id[n] = w->target[i];
				p.window[n++] = (int32_t)k;
			}
	return p;
}

static void free_places(struct record_places p)
{
	free(p.id), free(p.window);
}

void record_write(struct output *out, size_t n, const struct metric metric[n], const struct windows *w,
	const double nll[w->targets])
{
	struct record_places p;

	if (!out)
		return;
	p = places_of(w);
	output_write(out, "/target", tensor_1d(TENSOR_I32, p.id, w->targets));
	output_write(out, "/window", tensor_1d(TENSOR_I32, p.window, w->targets));
	output_write(out, "/nll_of_target", tensor_1d(TENSOR_F64, (void *)(uintptr_t)nll, w->targets));
	for (size_t i = 0; i < n; i++)
		output_number(out, "/", metric[i].name, metric[i].value);
	output_end(out);
	output_close(out);
	free_places(p);
}

struct part *record_open_earlier(const char *path, const struct windows *w, const char *used,
	const char *settings, bool kl)
{
	struct part *record = part_open(path, "result");
	size_t n = w->targets;
	struct tensor t, window;
	const int32_t *theirs;
	struct record_places ours = places_of(w);

	if (!part_find(record, "/target", TENSOR_I32, 1, NULL, &t))
		die("%s: is not a record of eval-ppl: /target is missing", path);
	theirs = t.data;
	check_places(record, used);
	record_check_settings(record, settings, "this run");
	if (t.dim[0] != n)
		die("%s: /target: has other tokens, or other windows: %zu targets, expected %zu", path,
			t.dim[0], n);
	for (size_t i = 0; i < n; i++)
		if (ours.id[i] != theirs[i])
			die("%s: /target: has other tokens: target %zu is %d, expected %d", path, i,
				theirs[i], ours.id[i]);
	if (part_find(record, "/window", TENSOR_I32, 1, &n, &window) &&
		memcmp(window.data, ours.window, n * sizeof *ours.window) != 0)
		die("%s: /window: has other windows: use the same --ctx, --convention and --stride",
			path);
	part_tensor(record, "/nll_of_target", TENSOR_F64, 1, &n);
	if (kl && !part_has(record, "/kl"))
		die("%s: /kl: is missing; --reference and --paired together need a record with --reference",
			path);
	free_places(ours);
	return record;
}

const double *record_numbers(const struct part *record, const char *path, size_t n)
{
	const double *x = part_tensor(record, path, TENSOR_F64, 1, &n).data;

	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			die("%s: %s: number %zu is %g, expected a finite one", part_name(record), path, i,
				x[i]);
	return x;
}

void record_check_reference(const struct part *record, size_t n, const double nll[n])
{
	const double *reference = record_numbers(record, "/nll_of_reference", n);

	for (size_t i = 0; i < n; i++)
		if (!(fabs(reference[i] - nll[i]) < same_nll))
			die("%s: /nll_of_reference: is of another reference: target %zu has %g, expected %g",
				part_name(record), i, reference[i], nll[i]);
}

size_t record_metrics(const struct part *record, const struct windows *w, const double nll[w->targets],
	const struct divergence *d, struct metric metric[RECORD_METRICS])
{
	const double *before = record_numbers(record, "/nll_of_target", w->targets);
	const size_t n = delta_metrics(paired_nll, w, nll, before, metric);

	if (!d)
		return n;
	record_check_reference(record, w->targets, d->reference);
	return n + delta_metrics(paired_kl, w, d->kl, record_numbers(record, "/kl", w->targets), metric + n);
}
