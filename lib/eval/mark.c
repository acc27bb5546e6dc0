/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mark.c -- see mark.h */
#include "eval/mark.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/perplexity.h"
#include "eval/record.h"

static const char DIGEST[] = "questions_sha256", IMAGES[] = "images_sha256";

/* The values of a pair of columns: a mark, or its difference from an earlier record. */
struct measure { const double *x, *before; };
enum { MEASURES = 2 * MARKS + 1 };

/* The mark in the record, or NULL. */
static const double *earlier(const struct part *before, const char *mark, size_t n)
{
	char *path = xformat("/question/%s", mark);
	const double *x = before && part_has(before, path) ? record_numbers(before, path, n) : NULL;

	free(path);
	return x;
}

static void add_column(struct table *t, const char *from, const char *mark, const char *ending,
	enum table_type type)
{
	struct table_column *column = xgrow((void *)(uintptr_t)t->column, t->columns + 1, sizeof *column);

	column[t->columns++] = (struct table_column){ xformat("%s%s%s", from, mark, ending), type };
	t->column = column;
}

static size_t add_columns(struct table *t, const struct questions *q, size_t marks,
	const struct mark mark[marks], const struct part *before, const double *same,
	struct measure measure[MEASURES])
{
	size_t n = 0;

	add_column(t, "", "task", "", TABLE_TEXT);
	add_column(t, "", "questions", "", TABLE_INTEGER);
	for (size_t m = 0; m < marks; m++) {
		add_column(t, "", mark[m].name, "", TABLE_REAL);
		add_column(t, "", mark[m].name, "_se", TABLE_REAL);
		measure[n++].x = mark[m].x;
	}
	for (size_t m = 0; m < marks; m++) {
		const double *theirs = mark[m].before ? mark[m].before : earlier(before, mark[m].name, q->n);

		if (!theirs)
			continue;
		add_column(t, "paired_", mark[m].name, "_delta", TABLE_REAL);
		add_column(t, "paired_", mark[m].name, "_delta_se", TABLE_REAL);
		measure[n++] = (struct measure){ mark[m].x, theirs };
	}
	if (same) {
		add_column(t, "paired_", "same", "", TABLE_REAL);
		add_column(t, "paired_", "same", "_se", TABLE_REAL);
		measure[n++].x = same;
	}
	return n;
}

/* Adds the row of a task; NULL: of all questions. */
static void add_row(struct table *t, const struct questions *q, const char *task, size_t measures,
	const struct measure measure[measures])
{
	double number[1 + 2 * MEASURES], *x = xalloc(q->n, sizeof *x);

	for (size_t m = 0; m < measures; m++) {
		struct perplexity mean;
		size_t n = 0;

		for (size_t i = 0; i < q->n; i++)
			if (!task || !strcmp(task, q->item[i].task))
				x[n++] = measure[m].x[i] - (measure[m].before ? measure[m].before[i] : 0);
		mean = perplexity_of(n, x, 0);
		number[0] = (double)n;
		number[1 + 2 * m] = mean.nll;
		number[2 + 2 * m] = mean.nll_se;
	}
	(task ? table_row : table_sum)(t, (const char *[]){ task ? task : "all" }, number);
	free(x);
}

struct table marks_table(const struct questions *q, size_t n, const struct mark mark[n],
	const struct part *before, const double *same)
{
	struct table t = { 0 };
	struct measure measure[MEASURES] = { { 0 } };
	const size_t measures = add_columns(&t, q, n, mark, before, same, measure);

	for (size_t i = 0; i < q->n; i++) {
		bool seen = false;

		for (size_t r = 0; r < t.rows && !seen; r++)
			seen = !strcmp(t.value[r * t.columns].text, q->item[i].task);
		if (!seen)
			add_row(&t, q, q->item[i].task, measures, measure);
	}
	add_row(&t, q, NULL, measures, measure);
	return t;
}

void marks_table_free(struct table *t)
{
	table_free(t);
	for (size_t i = 0; i < t->columns; i++)
		free((char *)(uintptr_t)t->column[i].name);
	free((void *)(uintptr_t)t->column);
}

/* images: of the questions or of another record, `other`; NULL: not known. */
static void check_images(const struct part *record, const char *images, const char *other)
{
	char *theirs = part_text(record, "/", IMAGES);

	if (theirs && images && strcmp(theirs, images))
		die("%s: has other images than %s", part_name(record), other);
	free(theirs);
}

struct part *marks_open_earlier(const char *path, const struct questions *q, const char *tool,
	const char *member)
{
	struct part *record = part_open(path, "result");
	char *theirs = part_text(record, "/", DIGEST);
	size_t n;

	if (!theirs || !part_has(record, member))
		die("%s: is not a record of %s: %s is missing", path, tool, !theirs ?
			"attribute questions_sha256" : member);
	if (strcmp(theirs, q->digest))
		die("%s: has other questions than %s", path, q->name);
	n = part_tensor(record, member, TENSOR_I32, 1, NULL).dim[0];
	if (n != q->n)
		die("%s: %s: has %zu questions, expected %zu: use the same --limit", path, member, n, q->n);
	check_images(record, q->images, q->name);
	record_check_settings(record, q->settings, q->name);
	free(theirs);
	return record;
}

void marks_check_same(const struct part *record, const struct part *first)
{
	char *theirs = part_text(record, "/", DIGEST), *ours = part_text(first, "/", DIGEST);
	char *images = part_text(first, "/", IMAGES);

	if (!theirs || !ours)
		die("%s: attribute %s is missing", part_name(theirs ? first : record), DIGEST);
	if (strcmp(theirs, ours))
		die("%s: has other questions than %s", part_name(record), part_name(first));
	check_images(record, images, part_name(first));
	free(theirs), free(ours), free(images);
}

void marks_write(struct output *out, const struct questions *q, size_t n, const struct mark mark[n])
{
	const char **task = xalloc(q->n, sizeof *task);

	output_text(out, "/", DIGEST, q->digest);
	if (q->images)
		output_text(out, "/", IMAGES, q->images);
	record_settings(out, q->settings);
	for (size_t i = 0; i < q->n; i++)
		task[i] = q->item[i].task;
	output_strings(out, "/question/task", q->n, task);
	for (size_t m = 0; m < n; m++) {
		char *path = xformat("/question/%s", mark[m].name);

		output_write(out, path, tensor_1d(TENSOR_F64, (void *)(uintptr_t)mark[m].x, q->n));
		free(path);
	}
	free(task);
}
