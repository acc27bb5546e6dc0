/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * answers.h -- generated answers to questions: their ends, marks and record
 *
 * An answer ends at an id that ends texts, at the first text of `until`, or after a number of ids. It is the
 * text before that. A question has the marks
 *
 *	strict, flexible	1 if the answer is right by this filter (eval/match.h), else 0
 *
 * Calling sequence: answers_ends() and answers_stop() for generate(); answers_of(); marks_open_earlier() if
 * there is a record; answers_table(); answers_write(); marks_table_free(); answers_free().
 */
#ifndef EVAL_ANSWERS_H
#define EVAL_ANSWERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "eval/match.h"
#include "eval/question.h"
#include "forward/generate.h"
#include "import/tokenize.h"
#include "io/part.h"
#include "io/table.h"
#include "model/config.h"

/* The ids that end texts: eos_token_id of /generation_config, else of /config. Returns their number. A
 * /generation_config that is not valid is a fatal error. */
size_t answers_ends(const struct part *model, const struct config *c, int32_t end[EOS]);

struct answers_until {
	const struct questions *questions;
	const struct vocabulary *v;
	const char *more;		/* ends every answer; NULL: only the texts of the question */
};
/* stop() of generate(); arg: a struct answers_until. */
bool answers_stop(void *arg, size_t question, size_t n, const int32_t id[n]);

struct answers {
	const struct questions *questions;
	struct generated *generated;	/* [questions] */
	char **text;			/* [questions] */
	char **taken[MATCH_FILTERS];	/* [questions] the text that a filter extracted */
	double *mark[MATCH_FILTERS];	/* [questions] */
};
/* Scores the answers. generated: [questions], of generate(); answers_free() frees it. */
struct answers answers_of(const struct answers_until *u, struct generated *generated);
void answers_free(struct answers *a);

/* Opens an earlier record. A record of other questions is a fatal error. */
struct part *answers_open_earlier(const char *path, const struct questions *q);
/* The table of results (eval/mark.h). before: NULL, or an earlier record. */
struct table answers_table(const struct answers *a, const struct part *before);
/* Writes and closes a record (docs/format.md). out NULL: no effect. */
void answers_write(struct output *out, const struct answers *a, const struct table *t);
#endif
