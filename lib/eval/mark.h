/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * mark.h -- marks of questions: their means by task, and differences from an earlier record
 *
 * A mark is a number of each question, such as 1 for a right answer. A mean over n questions has the standard
 * error √((mean x² - mean² x) / (n - 1)).
 *
 * Calling sequence: marks_open_earlier() if there is a record; marks_table(); marks_write(); table_write();
 * marks_table_free().
 */
#ifndef EVAL_MARK_H
#define EVAL_MARK_H
#include <stddef.h>
#include "eval/question.h"
#include "io/part.h"
#include "io/table.h"

enum { MARKS = 6 };		/* most marks of a tool */
struct mark {
	const char *name;
	const double *x;		/* [questions] */
	const double *before;		/* [questions] replaces that of an earlier record; or NULL */
};

/*
 * The table of results: one row for each task, in order of first appearance, and one row for all questions.
 * Columns are task, questions, and NAME and NAME_se, the mean and standard error of every mark. With an
 * earlier record there are also paired_NAME_delta and paired_NAME_delta_se, of the differences per question,
 * for marks that both have. same: a further mark, the column paired_same; NULL: none.
 */
struct table marks_table(const struct questions *q, size_t n, const struct mark mark[n],
	const struct part *before, const double *same);
/* Frees its columns too. */
void marks_table_free(struct table *t);

/* Opens an earlier record of the tool. A record of other questions or other
 * images is a fatal error; there is a warning if the settings differ. member: a dataset of the
 * record, int32, with a number of each question. */
struct part *marks_open_earlier(const char *path, const struct questions *q, const char *tool,
	const char *member);
/* Fatal error if a record is of other questions than the first one. */
void marks_check_same(const struct part *record, const struct part *first);
/* Writes the digests of questions and images, the settings, /question/task, and marks as /question/NAME. */
void marks_write(struct output *out, const struct questions *q, size_t n, const struct mark mark[n]);
#endif
