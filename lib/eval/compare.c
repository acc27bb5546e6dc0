/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compare.c -- see compare.h */
#include "eval/compare.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/choice.h"
#include "eval/mark.h"
#include "eval/record.h"
#include "eval/two_way.h"

/* A row of the table: a dataset of the method's records, minus that of the base or of the reference. */
enum less { NOTHING, BASE, REFERENCE };
static const char REFERENCE_NLL[] = "/nll_of_reference";
static const struct row { const char *name, *path; enum less less; } rows[] = {
	{ "nll", "/nll_of_target", NOTHING },
	{ "nll_rise", "/nll_of_target", REFERENCE },
	{ "kl", "/kl", NOTHING },
	{ "nll_delta", "/nll_of_target", BASE },
	{ "kl_delta", "/kl", BASE },
	{ "acc", "/question/acc", NOTHING },
	{ "acc_norm", "/question/acc_norm", NOTHING },
	{ "acc_bytes", "/question/acc_bytes", NOTHING },
	{ "exact", "/question/exact", NOTHING },
	{ "strict", "/question/strict", NOTHING },
	{ "flexible", "/question/flexible", NOTHING },
	{ "kl", "/question/kl", NOTHING },
	{ "agreement", "/question/agreement", NOTHING },
	{ "acc_delta", "/question/acc", BASE },
	{ "acc_norm_delta", "/question/acc_norm", BASE },
	{ "acc_bytes_delta", "/question/acc_bytes", BASE },
	{ "exact_delta", "/question/exact", BASE },
	{ "strict_delta", "/question/strict", BASE },
	{ "flexible_delta", "/question/flexible", BASE },
	{ "kl_delta", "/question/kl", BASE },
	{ "agreement_delta", "/question/agreement", BASE },
};
enum { ROWS = sizeof rows / sizeof *rows };

static bool of_questions(const struct row *row)
{
	static const char group[] = "/question/";

	return !strncmp(row->path, group, strlen(group));
}

/* The windows of the first record, by which the others are checked. */
struct shape {
	const struct part *first;
	bool questions;			/* a question counts as a window of one target */
	size_t n, windows;		/* targets, windows */
	int32_t *window;		/* [n] of each target */
	double *targets;		/* [windows] */
};

static void read_windows(struct shape *s)
{
	const struct tensor target = part_tensor(s->first, "/target", TENSOR_I32, 1, NULL);
	const int32_t *window;

	s->n = target.dim[0];
	s->window = xalloc(s->n, sizeof *s->window);
	window = part_tensor(s->first, "/window", TENSOR_I32, 1, &s->n).data;
	for (size_t i = 0; i < s->n; i++) {
		if (window[i] != (int32_t)s->windows && (!i || window[i] != (int32_t)s->windows - 1))
			die("%s: /window: target %zu has %d, expected windows in their order",
				part_name(s->first), i, window[i]);
		s->windows = (size_t)window[i] + 1;
		s->window[i] = window[i];
	}
}

/* The number of questions of a record; 0: it is no record of questions. */
static size_t questions_of(const struct part *record)
{
	struct tensor t;

	for (size_t i = 0; i < ROWS; i++)
		if (of_questions(&rows[i]) && part_shape(record, rows[i].path, TENSOR_F64, 1, NULL, &t))
			return t.dim[0];
	return 0;
}

static void read_questions(struct shape *s)
{
	s->n = s->windows = questions_of(s->first);
	s->window = xalloc(s->n, sizeof *s->window);
	for (size_t i = 0; i < s->n; i++)
		s->window[i] = (int32_t)i;
}

static struct shape shape_of(const struct part *first)
{
	struct shape s = { .first = first, .questions = questions_of(first) != 0 };

	(s.questions ? read_questions : read_windows)(&s);
	s.targets = xalloc(s.windows, sizeof *s.targets);
	memset(s.targets, 0, s.windows * sizeof *s.targets);
	for (size_t i = 0; i < s.n; i++)
		s.targets[s.window[i]]++;
	return s;
}

/* Whether a row is in the table: the first record has the dataset. */
static bool applies(const struct row *row, const struct shape *s)
{
	return of_questions(row) == s->questions && part_has(s->first, row->path) &&
		(row->less != REFERENCE || part_has(s->first, REFERENCE_NLL));
}

static void check_same(const struct part *record, const struct shape *s, const char *path)
{
	const struct tensor own = part_tensor(record, path, TENSOR_I32, 1, &s->n);
	const struct tensor first = part_tensor(s->first, path, TENSOR_I32, 1, &s->n);

	if (memcmp(own.data, first.data, s->n * sizeof(int32_t)) != 0)
		die("%s: %s: differs from that of %s, expected records of the same windows of one text",
			part_name(record), path, part_name(s->first));
}

static void check_present(const struct part *record, const struct shape *s, const char *path)
{
	const bool here = part_has(record, path);

	if (here != part_has(s->first, path))
		die("%s: %s: is %s, unlike in %s: expected records with the same --reference",
			part_name(record), path, here ? "present" : "missing", part_name(s->first));
}

static void check_record(const struct part *record, const struct shape *s)
{
	if (s->questions) {
		marks_check_same(record, s->first);
	} else {
		check_same(record, s, "/target");
		check_same(record, s, "/window");
	}
	check_present(record, s, REFERENCE_NLL);
	for (size_t i = 0; i < ROWS; i++)
		if (of_questions(&rows[i]) == s->questions)
			check_present(record, s, rows[i].path);
	if (part_has(s->first, REFERENCE_NLL))
		record_check_reference(record, s->n, record_numbers(s->first, REFERENCE_NLL, s->n));
	if (s->questions)
		choices_check_reference(record, s->first);
}

/* The means of x - less over the windows; less NULL: of x. */
static void means_of(const struct shape *s, const double x[s->n], const double *less, double d[s->windows])
{
	memset(d, 0, s->windows * sizeof *d);
	for (size_t i = 0; i < s->n; i++)
		d[s->window[i]] += (less ? x[i] - less[i] : x[i]) / s->targets[s->window[i]];
}

static struct two_way layout_of(const struct row *row, size_t draws,
	const struct part *const record[2 * draws], const struct shape *s, double confidence)
{
	double *d = xalloc(draws * s->windows, sizeof *d);
	struct two_way t;

	for (size_t i = 0; i < draws; i++)
		means_of(s, record_numbers(record[i], row->path, s->n), row->less == NOTHING ? NULL :
			row->less == BASE ? record_numbers(record[draws + i], row->path, s->n) :
			record_numbers(record[i], REFERENCE_NLL, s->n), d + i * s->windows);
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
	for (size_t i = 0; i < ROWS; i++) {
		struct two_way t;
		const char *verdict = "-";

		if (!applies(&rows[i], &s))
			continue;
		t = layout_of(&rows[i], draws, record, &s, confidence);
		if (rows[i].less != NOTHING && !isnan(t.df))
			verdict = t.separated ? "yes" : "no";
		table_row(&table, (const char *[]){ rows[i].name, verdict }, (double[]){ t.mean, t.se, t.df,
			t.se_draws, t.se_windows, t.quantile, (double)draws, (double)s.windows });
	}
	free(s.window), free(s.targets);
	return table;
}
