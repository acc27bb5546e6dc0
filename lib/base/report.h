/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * report.h -- results of a run
 *
 * report_metrics() prints a few metrics to standard output, as `name<TAB>value` lines or one JSON object. The
 * report is a table with a row for each layer, on standard error and, with --report, in a file:
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

struct metric { const char *name; double value; int digits; };	/* digits: in lines; 0: an integer */
/* Prints n metrics. In lines NaN is "-"; in JSON numbers that are not finite are null. */
void report_metrics(size_t n, const struct metric a[n], bool json);

/*
 * The columns of a report. all: the value of the column in the last row, `all`: none, the geometric mean of
 * the positive finite numbers, the largest or the smallest number, or the sum.
 */
enum report_all { REPORT_NONE, REPORT_GEOMETRIC, REPORT_MAX, REPORT_MIN, REPORT_SUM };
enum { REPORT_COLUMNS = 16 };
struct report_column { const char *name; enum report_all all; };
struct report_table {
	const struct report_column *column;
	size_t columns;			/* REPORT_COLUMNS at most */
	const char *name;		/* header of the first column, the names of the rows; NULL: layer */
};

struct report {
	const char *path;		/* --report FILE; NULL: no file */
	struct replace file;		/* that file, until it gets its name */
	const struct report_table *table;	/* of all rows; NULL: no rows */
	size_t rows;
	struct report_row { char *name; double *value; } *row;	/* [rows], value [table->columns] */
};

#define OPTION_REPORT(report) { 0, "report", OPTION_FILE(&(report)->path), "FILE", \
	"also write the table to FILE (.json: as JSON)", .neutral = true }
/* Opens the file of --report, if given. Fatal error if it cannot be written or is an HDF5 file. */
void report_open(struct report *r);
/* Whether rows are printed or written. If not, numbers that only the report needs are not computed. */
bool report_wanted(const struct report *r);
/* Adds a row: the name and a number for each column (NaN: none). It is printed to standard error, before the
 * first row also a header; under -q nothing is printed. Columns are aligned on a terminal, and separated by
 * tabs elsewhere. All rows of a report have the same table. */
void report_row(struct report *r, const struct report_table *t, const char *name, const double value[]);
/*
 * Prints the last row, `all`, if a column has a value in it, and writes the file: lines of tab-separated
 * values with empty fields for numbers that are not finite, or {"rows": [{"column": value, ...}, ...],
 * "all": {...}} with null for them. Afterwards the report is empty.
 */
void report_close(struct report *r);
#endif
