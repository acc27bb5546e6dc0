/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * report.h -- small answers, as `name<TAB>value` lines or one JSON object on
 * standard output, and tables with a row for each layer on standard error
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H
#include <stdbool.h>
#include <stddef.h>

struct answer { const char *name; double value; int digits; };	/* digits: of lines; 0: an integer */
void report_answer(size_t n, const struct answer a[n], bool json);

/* name: of what has a row, NULL: a layer */
struct report { const char *const *column; size_t columns; bool begun; const char *name; };
/* From here on rows are kept as text, too. report_kept() gives those since its last call; free() it. */
void report_keep(void);
char *report_kept(void);
/* Prints rows that were kept, and keeps them no more; each() gets their values. Returns false where the text
 * is none that report_kept() gave for a table of so many columns. */
bool report_again(struct report *r, const char *text, void (*each)(void *arg, const double value[]),
	void *arg);
/* Prints a row: the name and a number for each column; a header comes first. Columns are
 * aligned on a terminal, and otherwise separated by tabs. Silent under -q. */
void report_row(struct report *r, const char *name, const double value[]);
#endif
