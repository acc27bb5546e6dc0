/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compare.c -- see compare.h */
#include "eval/compare.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/record.h"
#include "eval/two_way.h"

/* The windows of the first record, by which the others are checked. */
struct shape {
	const struct part *first;
	struct tensor target, window, reference;	/* reference: nll, data NULL without one */
	size_t n, windows;				/* targets, windows */
	double *targets;				/* [windows] */
};

static struct shape shape_of(const struct part *first)
{
	struct shape s = { .first = first, .target = part_tensor(first, "/target", TENSOR_I32, 1, NULL) };
	const int32_t *window;

	s.n = s.target.dim[0];
	s.window = part_tensor(first, "/window", TENSOR_I32, 1, &s.n);
	if (!part_find(first, "/nll_of_reference", TENSOR_F64, 1, &s.n, &s.reference))
		s.reference.data = NULL;
	window = s.window.data;
	for (size_t i = 0; i < s.n; i++) {
		if (window[i] != (int32_t)s.windows && (!i || window[i] != (int32_t)s.windows - 1))
			die("%s: /window: target %zu has %d, expected windows in their order",
				part_name(first), i, window[i]);
		s.windows = (size_t)window[i] + 1;
	}
	s.targets = xalloc(s.windows, sizeof *s.targets);
	memset(s.targets, 0, s.windows * sizeof *s.targets);
	for (size_t i = 0; i < s.n; i++)
		s.targets[window[i]]++;
	return s;
}

static void check_same(const struct part *record, const struct shape *s, const char *path,
	const struct tensor *t)
{
	const struct tensor own = part_tensor(record, path, TENSOR_I32, 1, &s->n);

	if (memcmp(own.data, t->data, s->n * sizeof(int32_t)) != 0)
		die("%s: %s: differs from that of %s, expected records of the same windows of one text",
			part_name(record), path, part_name(s->first));
}

static void check_record(const struct part *record, const struct shape *s)
{
	check_same(record, s, "/target", &s->target);
	check_same(record, s, "/window", &s->window);
	if (part_has(record, "/nll_of_reference") != (s->reference.data != NULL))
		die("%s: /nll_of_reference: is %s, unlike in %s: expected records with the same --reference",
			part_name(record), s->reference.data ? "missing" : "present", part_name(s->first));
	if (s->reference.data)
		record_check_reference(record, s->n, s->reference.data);
}

/* The means of x - less over the windows; less NULL: of x. */
static void means_of(const struct shape *s, const double x[s->n], const double *less, double d[s->windows])
{
	const int32_t *window = s->window.data;

	memset(d, 0, s->windows * sizeof *d);
	for (size_t i = 0; i < s->n; i++)
		d[window[i]] += (less ? x[i] - less[i] : x[i]) / s->targets[window[i]];
}

/* A row of the table: a dataset of the method's records, minus that of the base or of the reference. */
enum less { NOTHING, BASE, REFERENCE };
static const struct row { const char *name, *path; enum less less; bool referenced; } rows[] = {
	{ "nll", "/nll_of_target", NOTHING, false },
	{ "nll_rise", "/nll_of_target", REFERENCE, true },
	{ "kl", "/kl", NOTHING, true },
	{ "nll_delta", "/nll_of_target", BASE, false },
	{ "kl_delta", "/kl", BASE, true },
};

static struct two_way layout_of(const struct row *row, size_t draws,
	const struct part *const record[2 * draws], const struct shape *s, double confidence)
{
	double *d = xalloc(draws * s->windows, sizeof *d);
	struct two_way t;

	for (size_t i = 0; i < draws; i++)
		means_of(s, record_numbers(record[i], row->path, s->n), row->less == NOTHING ? NULL :
			row->less == BASE ? record_numbers(record[draws + i], row->path, s->n) :
			record_numbers(record[i], "/nll_of_reference", s->n), d + i * s->windows);
	t = two_way_of(draws, s->windows, d, s->targets, confidence);
	free(d);
	return t;
}

struct table compare_table(size_t draws, const struct part *const record[2 * draws], double confidence)
{
	static const struct table_column columns[] = { { "number", TABLE_TEXT }, { "mean", TABLE_FLOAT },
		{ "se", TABLE_REAL }, { "df", TABLE_REAL }, { "se_draws", TABLE_REAL },
		{ "se_windows", TABLE_REAL }, { "quantile", TABLE_REAL }, { "separated", TABLE_TEXT },
		{ "draws", TABLE_INTEGER }, { "windows", TABLE_INTEGER } };
	struct table table = { .columns = sizeof columns / sizeof *columns, .column = columns };
	struct shape s = shape_of(record[0]);

	for (size_t i = 1; i < 2 * draws; i++)
		check_record(record[i], &s);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct two_way t;
		const char *verdict = "-";

		if (rows[i].referenced && !s.reference.data)
			continue;
		t = layout_of(&rows[i], draws, record, &s, confidence);
		if (rows[i].less != NOTHING && !isnan(t.df))
			verdict = t.separated ? "yes" : "no";
		table_row(&table, (const char *[]){ rows[i].name, verdict }, (double[]){ t.mean, t.se, t.df,
			t.se_draws, t.se_windows, t.quantile, (double)draws, (double)s.windows });
	}
	free(s.targets);
	return table;
}
