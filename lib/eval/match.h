/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * match.h -- whether a generated text has the right answer
 *
 * A row of the table `matches` has two filters. A filter extracts an answer from a text; it is right if it
 * equals the answer of the question, both in the form of the row.
 *
 *	gsm8k		strict: the first number after "#### "; flexible: the last number
 *	gsm8k-cot	strict: the first number after "The answer is "; flexible: the last number
 *	exact		strict: the whole text; flexible: its first n tokens, for any n
 *
 * The form of numbers: without commas, dollars, everything up to the last "#### " and a full stop at the end,
 * in lower case. That of exact: without white space at both ends (text/strip.h). A filter that finds nothing
 * extracts "[invalid]".
 *
 * Source: lm-evaluation-harness, tasks/gsm8k, filters/extraction.py and api/metrics.py. If a model answers
 * with the tokens of the word, exact's flexible filter is the accuracy of its task LAMBADA.
 */
#ifndef EVAL_MATCH_H
#define EVAL_MATCH_H
#include <stdbool.h>
#include <stddef.h>

enum match_filter { MATCH_STRICT, MATCH_FLEXIBLE, MATCH_FILTERS };
extern const char *const match_filters[MATCH_FILTERS];	/* their names */

struct match {
	const char *name;
	const char *pattern[MATCH_FILTERS];	/* PCRE2; NULL: the whole text */
	bool last[MATCH_FILTERS];		/* takes the last match, not the first */
	bool numbers;				/* the form of numbers */
	bool tokens;				/* flexible: the text of 0, 1, ... first tokens is tried */
};
const struct match *match_of(const char *name);	/* NULL: no such row */
char *match_names(void);			/* "a, b, c"; free() it */

/* What a filter extracts from a text, in the form of the row; free() it. Texts are valid UTF-8. */
char *match_take(const struct match *m, enum match_filter filter, const char *text);
/* A text in the form of the row; free() it. */
char *match_form(const struct match *m, const char *text);
#endif
