/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * table.h -- the table of results of an experiment
 *
 * Rows are added with table_row(), and a summary last with table_sum(). The table is printed as lines of
 * tab-separated values (aligned on a terminal) or as JSON, and written as a file of kind `result` or
 * `sweep` with one dataset for each column.
 */
#ifndef IO_TABLE_H
#define IO_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"

enum table_type { TABLE_TEXT, TABLE_INTEGER, TABLE_REAL, TABLE_FLOAT };	/* FLOAT: 9 digits, exact */
struct table_column { const char *name; enum table_type type; };
union table_value { const char *text; double number; };

struct table {
	size_t columns;
	const struct table_column *column;
	size_t rows;
	union table_value *value;	/* [rows][columns]; texts are copies */
	bool summed;			/* the last row is a summary of the others */
};

/* Adds a row. text: the values of the text columns, copied. number: the values of the other columns; NaN
 * means no value and is printed as -. */
void table_row(struct table *t, const char *const text[], const double number[]);
/* Adds the last row, a summary of the others. Its first text is the name of the summary. */
void table_sum(struct table *t, const char *const text[], const double number[]);

/* Prints to standard output. JSON: {"rows": [{"name": value, ...}, ...], "name of the summary": {...}};
 * numbers that are not finite are null. */
void table_print(const struct table *t, bool json);
/* Writes each column as a dataset of strings, int64 or f64, and the numbers of the summary as root
 * attributes. Closes the output. out NULL: writes nothing. */
void table_write(const struct table *t, struct output *out);
/* Writes the columns as datasets of a group; the output stays open. An empty table writes nothing. */
void table_put(const struct table *t, struct output *out, const char *group);
void table_free(struct table *t);
#endif
