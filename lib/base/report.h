/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * report.h -- small answers, as `name<TAB>value` lines or one JSON object on
 * standard output, and tables with a row for each layer on standard error
 * and in a file
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H
#include <stdbool.h>
#include <stddef.h>

struct answer { const char *name; double value; int digits; };	/* digits: of lines; 0: an integer */
void report_answer(size_t n, const struct answer a[n], bool json);

/*
 * A table of a run with a row for each layer, or what `name` says. It goes to standard error, and to the file
 * of --report. all: what the last row, `all`, has of the column: nothing, the geometric mean of the positive
 * finite numbers, the largest or the smallest number, or the sum.
 */
enum report_all { REPORT_NONE, REPORT_GEOMETRIC, REPORT_MAX, REPORT_MIN, REPORT_SUM };
struct report_column { const char *name; enum report_all all; };
struct report {
	const struct report_column *column;
	size_t columns;			/* 16 at most */
	const char *name;		/* NULL: layer */
};

extern const char *report_path;		/* --report */
#define OPTION_REPORT { 0, "report", OPTION_FILE(&report_path), "FILE", \
	"also write the table of standard error to FILE; FILE.json: as JSON", .neutral = true }
/* Opens that file, if there is to be one; dies where it cannot be. option_parse() calls it. */
void report_begin(void);
/* Whether rows are printed, written or kept: numbers that only they have need no computing otherwise. */
bool report_wanted(void);
/* From here on rows are kept as text, too. report_kept() gives those since its last call; free() it. */
void report_keep(void);
char *report_kept(void);
/* Adds rows that were kept, and keeps them no more. Returns false where the text is none that report_kept()
 * gave for a table of so many columns. */
bool report_again(const struct report *r, const char *text);
/* Adds a row: the name and a number for each column (NaN: none), and prints it on standard error, a header
 * first. Columns are aligned on a terminal, and otherwise separated by tabs. Silent under -q. */
void report_row(const struct report *r, const char *name, const double value[]);
/*
 * Prints the last row, `all`, if a column has one, and gives the file its name: as lines of tab-separated
 * values, an empty field for what is not finite, or {"rows": [{"column": value, ...}, ...], "all": {...}},
 * null for it. filter_close() calls it, before the result gets its name.
 */
void report_end(void);
#endif
