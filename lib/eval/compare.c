/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compare.c -- see compare.h */
#include "eval/compare.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/choice.h"
#include "eval/mark.h"
#include "eval/record.h"
#include "eval/two_way.h"
#include "model/calibrated.h"

/* A row of the table: a dataset of the method's records, minus that of the base or of the reference. */
enum less { NOTHING, BASE, REFERENCE };
struct row { const char *name, *path; enum less less; };

static const char REFERENCE_NLL[] = "/nll_of_reference", QUESTION[] = "/question/";
static const struct row of_texts[] = {
	{ "nll", "/nll_of_target", NOTHING },
	{ "nll_rise", "/nll_of_target", REFERENCE },
	{ "kl", "/kl", NOTHING },
	{ "nll_delta", "/nll_of_target", BASE },
	{ "kl_delta", "/kl", BASE },
};

/* The rows of a record. Of questions they are two for each mark: a dataset /question/NAME in f64. */
struct rows {
	size_t n, questions;		/* questions: 0 in a record of a text */
	struct row *row;
};

static void add_row(struct rows *r, const char *name, const char *path, enum less less)
{
	r->row = xgrow(r->row, r->n + 1, sizeof *r->row);
	r->row[r->n++] = (struct row){ xformat("%s%s", name, r->questions && less == BASE ? "_delta" : ""),
		xformat("%s", path), less };
}

static void add_mark(void *rows, const char *path, const char *type, int rank, const size_t dim[])
{
	const size_t n = strlen(QUESTION);
	struct rows *r = rows;

	if (strncmp(path, QUESTION, n) != 0 || strcmp(type, tensor_name(TENSOR_F64)) != 0 || rank != 1)
		return;
	r->questions = dim[0];
	add_row(r, path + n, path, NOTHING);
}

static struct rows rows_of(const struct part *record)
{
	struct rows r = { 0 };

	part_datasets(record, add_mark, &r);
	for (size_t i = 0, n = r.n; i < n; i++)
		add_row(&r, r.row[i].name, r.row[i].path, BASE);
	for (size_t i = 0; !r.questions && i < sizeof of_texts / sizeof *of_texts; i++)
		add_row(&r, of_texts[i].name, of_texts[i].path, of_texts[i].less);
	return r;
}

static void rows_free(struct rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		free((char *)(uintptr_t)r->row[i].name), free((char *)(uintptr_t)r->row[i].path);
	free(r->row);
}

/* The windows of the first record, by which the others are checked. */
struct shape {
	const struct part *first;
	struct rows rows;
	size_t n, windows;		/* targets, windows: a question is a window of one target */
	int32_t *window;		/* [n] of each target; -1: of none */
	double *targets;		/* [windows] */
};

static void read_windows(struct shape *s)
{
	struct tensor target;
	const int32_t *window;

	if (!part_find(s->first, "/target", TENSOR_I32, 1, NULL, &target))
		die("%s: is not a record of eval-ppl, eval-choice or eval-generate: it has neither /target "
			"nor marks of questions", part_name(s->first));

	s->n = target.dim[0];
	if (!s->n)
		die("%s: /target: is empty", part_name(s->first));
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

static void read_questions(struct shape *s, const struct selection *tasks)
{
	char **task = tasks->n ? part_strings(s->first, "/question/task", s->rows.questions) : NULL;

	s->n = s->rows.questions;
	s->window = xalloc(s->n, sizeof *s->window);
	for (size_t i = 0; i < s->n; i++)
		s->window[i] = !task || selection_has(tasks, task[i]) ? (int32_t)s->windows++ : -1;
	if (!s->windows)
		die("%s: has no question of a task that --tasks selects", part_name(s->first));
	if (task)
		part_free_names(task, s->n);
}

static struct shape shape_of(const struct part *first, const struct selection *tasks)
{
	struct shape s = { .first = first, .rows = rows_of(first) };

	if (!s.rows.questions && tasks->n)
		die("%s: is of a text, but --tasks needs records of questions", part_name(first));
	if (s.rows.questions)
		read_questions(&s, tasks);
	else
		read_windows(&s);
	s.targets = xalloc(s.windows, sizeof *s.targets);
	memset(s.targets, 0, s.windows * sizeof *s.targets);
	for (size_t i = 0; i < s.n; i++)
		if (s.window[i] >= 0)
			s.targets[s.window[i]]++;
	return s;
}

static void check_same(const struct part *record, const struct shape *s, const char *path)
{
	const struct tensor own = part_tensor(record, path, TENSOR_I32, 1, NULL);
	const struct tensor first = part_tensor(s->first, path, TENSOR_I32, 1, &s->n);

	if (own.dim[0] != s->n)
		die("%s: %s: has %zu targets, %s has %zu: expected records with the same --ctx and --limit",
			part_name(record), path, own.dim[0], part_name(s->first), s->n);
	if (memcmp(own.data, first.data, s->n * sizeof(int32_t)) != 0)
		die("%s: %s: differs from that of %s, expected records of the same windows of one text",
			part_name(record), path, part_name(s->first));
}

static void check_present(const struct part *record, const struct shape *s, const char *path)
{
	const bool here = part_has(record, path);

	if (here != part_has(s->first, path))
		die("%s: %s: is %s, unlike in %s: expected records with the same options (--reference, "
			"--greedy)", part_name(record), path, here ? "present" : "missing",
			part_name(s->first));
}

static void check_record(const struct part *record, const struct shape *s)
{
	struct rows own = rows_of(record);

	if (!own.questions != !s->rows.questions)
		die("%s: is %s, unlike %s: expected records of one tool", part_name(record), own.questions ?
			"of questions" : "of no questions", part_name(s->first));
	if (own.questions != s->rows.questions)
		die("%s: has %zu questions, %s has %zu: expected records with the same --limit",
			part_name(record), own.questions, part_name(s->first), s->rows.questions);
	if (s->rows.questions) {
		marks_check_same(record, s->first);
	} else {
		check_same(record, s, "/target");
		check_same(record, s, "/window");
	}
	record_check_same_settings(record, s->first);
	check_present(record, s, REFERENCE_NLL);
	for (size_t i = 0; i < s->rows.n; i++)
		check_present(record, s, s->rows.row[i].path);
	for (size_t i = 0; i < own.n; i++)
		check_present(record, s, own.row[i].path);
	rows_free(&own);
	if (part_has(s->first, REFERENCE_NLL))
		record_check_reference(record, s->n, record_numbers(s->first, REFERENCE_NLL, s->n));
	if (s->rows.questions)
		choices_check_reference(record, s->first);
}

/* The seed of the first windows that were drawn from a calibration text. */
struct seed { bool given; size_t value; };

static void note_seed(void *arg, const struct calibrated_range *r)
{
	struct seed *seed = arg;

	if (r->windows && !seed->given)
		*seed = (struct seed){ true, r->seed };
}

static struct seed seed_of(const struct part *record)
{
	char *lines = part_text(record, "/", CALIBRATED);
	struct seed seed = { 0 };

	calibrated_each(lines, note_seed, &seed);
	free(lines);
	return seed;
}

static bool same_calibration(const struct part *a, const struct part *b)
{
	char *x = part_text(a, "/", CALIBRATED), *y = part_text(b, "/", CALIBRATED);
	const bool same = !strcmp(x ? x : "", y ? y : "");

	free(x), free(y);
	return same;
}

static bool same_array(const struct part *a, const struct part *b, const char *path, enum tensor_type type)
{
	struct tensor x, y;

	return part_find(a, path, type, 1, NULL, &x) && part_find(b, path, type, 1, NULL, &y) &&
		x.dim[0] == y.dim[0] && !memcmp(x.data, y.data, x.dim[0] * tensor_size(type));
}

/* Whether two records are of models with one calibration, and have the same likelihoods, or answers. */
static bool same_numbers(const struct part *a, const struct part *b)
{
	return same_calibration(a, b) && (same_array(a, b, "/nll_of_target", TENSOR_F64) ||
		same_array(a, b, "/choice/log_likelihood", TENSOR_F64) ||
		same_array(a, b, "/token/id", TENSOR_I32));
}

static bool is_calibrated(const struct part *record)
{
	char *lines = part_text(record, "/", CALIBRATED);
	const bool y = lines && *lines;

	free(lines);
	return y;
}

/* Whether a record has the calibrations of another, which may have none, and further ones. The first ones are
 * of the model that a method starts from, such as one that was scaled with a calibration set. */
static bool has_more(const struct part *record, const struct part *other)
{
	char *lines = part_text(record, "/", CALIBRATED), *first = part_text(other, "/", CALIBRATED);
	const size_t n = strlen(first ? first : "");
	const bool y = !n || (lines && !strncmp(lines, first, n) && lines[n] == '\n');

	free(lines), free(first);
	return y;
}

/* Whether two draws do not differ: both methods are the same, and one is calibrated; or method a is the same,
 * and not because only b is calibrated. Without a calibration no draw may change a model. */
static bool same_draws(const struct part *const a[2], const struct part *const b[2])
{
	if (!same_numbers(a[0], a[1]))
		return false;
	if (same_numbers(b[0], b[1]))
		return is_calibrated(a[0]) || is_calibrated(b[0]);
	return !has_more(b[0], a[0]) || !has_more(b[1], a[0]);
}

/* Warns if the two records of a draw have calibration windows of different seeds, or if two draws do not
 * differ. Returns whether all draws differ. */
static bool check_draws(size_t draws, const struct part *const record[2 * draws])
{
	bool mixed = false, repeated = false;

	for (size_t i = 0; i < draws; i++) {
		const struct part *own = record[i], *base = record[draws + i];
		const struct seed a = seed_of(own), b = seed_of(base);

		if (!mixed && a.given && b.given && a.value != b.value) {
			warn("%s and %s have calibration windows of different seeds (%zu and %zu): give "
				"the records of a method and of its base in the same order of draws",
				part_name(own), part_name(base), a.value, b.value);
			mixed = true;
		}
		for (size_t k = 0; k < i && !repeated; k++) {
			const struct part *method[] = { record[k], own };
			const struct part *other[] = { record[draws + k], base };
			const bool first = same_draws(method, other);

			repeated = first || same_draws(other, method);
			if (repeated)
				warn("draws %zu and %zu (%s, %s) do not differ: no verdict; a calibrated "
					"model needs its own calibration windows or damping in each draw",
					k + 1, i + 1, part_name(*(first ? method : other)),
					part_name((first ? method : other)[1]));
		}
	}
	return !repeated;
}

/* The means of x - less over the windows; less NULL: of x. */
static void means_of(const struct shape *s, const double x[s->n], const double *less, double d[s->windows])
{
	memset(d, 0, s->windows * sizeof *d);
	for (size_t i = 0; i < s->n; i++)
		if (s->window[i] >= 0)
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

struct table compare_table(size_t draws, const struct part *const record[2 * draws],
	const struct selection *tasks, double confidence)
{
	static const struct table_column columns[] = { { "number", TABLE_TEXT }, { "mean", TABLE_FLOAT },
		{ "se", TABLE_REAL }, { "df", TABLE_REAL }, { "se_draws", TABLE_REAL },
		{ "se_windows", TABLE_REAL }, { "quantile", TABLE_REAL }, { "separated", TABLE_TEXT },
		{ "draws", TABLE_INTEGER }, { "windows", TABLE_INTEGER } };
	struct table table = { .columns = sizeof columns / sizeof *columns, .column = columns };
	struct shape s = shape_of(record[0], tasks);
	bool differ;

	for (size_t i = 1; i < 2 * draws; i++)
		check_record(record[i], &s);
	differ = check_draws(draws, record);
	for (const struct row *row = s.rows.row; row < s.rows.row + s.rows.n; row++) {
		struct two_way t;
		const char *verdict = "-";

		if (!part_has(s.first, row->path) ||
		    (row->less == REFERENCE && !part_has(s.first, REFERENCE_NLL)))
			continue;
		t = layout_of(row, draws, record, &s, confidence);
		if (row->less != NOTHING && !isnan(t.df) && differ)
			verdict = t.separated ? "yes" : "no";
		table_row(&table, (const char *[]){ row->name, verdict }, (double[]){ t.mean, t.se, t.df,
			t.se_draws, t.se_windows, t.quantile, (double)draws, (double)s.windows });
	}
	rows_free(&s.rows);
	free(s.window), free(s.targets);
	return table;
}
