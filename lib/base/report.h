/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * report.h -- small answers, as `name<TAB>value` lines or one JSON object on
 * standard output, and the report of a run: a table with a row for each layer,
 * on standard error and in a file
 *
 *	struct report report = { 0 };		in main(), with a row OPTION_REPORT(&report)
 *
 *	report_open(&report);			after option_parse()
 *	report_row(&report, &table, path, value);
 *	report_close(&report);			filter_close() calls it
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/replace.h"

struct answer { const char *name; double value; int digits; };	/* digits: of lines; 0: an integer */
void report_answer(size_t n, const struct answer a[n], bool json);

/*
 * The columns of a report. all: what the last row, `all`, has of the column: nothing, the geometric mean of
 * the positive finite numbers, the largest or the smallest number, or the sum.
 */
enum report_all { REPORT_NONE, REPORT_GEOMETRIC, REPORT_MAX, REPORT_MIN, REPORT_SUM };
enum { REPORT_COLUMNS = 16 };
struct report_column { const char *name; enum report_all all; };
struct report_table {
	const struct report_column *column;
	size_t columns;			/* REPORT_COLUMNS at most */
	const char *name;		/* of the first column, the rows' names; NULL: layer */
};

struct report {
	const char *path;		/* --report FILE; NULL: none */
	struct replace file;		/* that file, until it gets its name */
	const struct report_table *table;	/* of all rows; NULL: there are none */
	size_t rows;
	struct report_row { char *name; double *value; } *row;	/* [rows], value [table->columns] */
};

#define OPTION_REPORT(report) { 0, "report", OPTION_FILE(&(report)->path), "FILE", \
	"also write the table of standard error to FILE; FILE.json: as JSON", .neutral = true }
/* Opens the file, if there is to be one; dies where it cannot be. */
void report_open(struct report *r);
/* Whether rows are printed or written: numbers that only they have need no computing otherwise. */
bool report_wanted(const struct report *r);
/* Adds a row: the name and a number for each column (NaN: none), and prints it on standard error, a header
 * first. Columns are aligned on a terminal, and otherwise separated by tabs. Silent under -q. All rows have
 * one table. */
void report_row(struct report *r, const struct report_table *t, const char *name, const double value[]);
/*
 * Prints the last row, `all`, if a column has one, and gives the file its name: as lines of tab-separated
 * values, an empty field for what is not finite, or {"rows": [{"column": value, ...}, ...], "all": {...}},
 * null for it. The report is empty afterwards.
 */
void report_close(struct report *r);
#endif
