/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * table.h -- the table of an experiment: its rows are collected, then printed and written
 *
 * It is printed as lines of tab-separated values (aligned on a terminal) or as
 * JSON, and written as a file of kind `result` or `sweep`, a dataset for each column.
 */
#ifndef IO_TABLE_H
#define IO_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"

enum table_type { TABLE_TEXT, TABLE_INTEGER, TABLE_REAL, TABLE_FLOAT };	/* a float: with all digits */
struct table_column { const char *name; enum table_type type; };
union table_value { const char *text; double number; };

struct table {
	size_t columns;
	const struct table_column *column;
	size_t rows;
	union table_value *value;	/* [rows][columns]; texts are copies */
	bool summed;			/* the last row is a summary of the others */
};

/* Adds a row. text: values of the columns of text, copied; number: those of the others (NaN: none, shown
 * as -). */
void table_row(struct table *t, const char *const text[], const double number[]);
/* Adds the last row, a summary of the others: its first text says of what kind. */
void table_sum(struct table *t, const char *const text[], const double number[]);

/* Prints to standard output. JSON: {"rows": [{"name": value, ...}, ...], "first text of the summary":
 * {...}}, null for what is not finite. */
void table_print(const struct table *t, bool json);
/* Writes each column as a dataset of strings, int64 or f64, and the numbers of a summary as root
 * attributes; closes the output. out NULL: writes nothing. */
void table_write(const struct table *t, struct output *out);
/* Writes the columns as datasets of a group, in an output that stays open; nothing of an empty table. */
void table_put(const struct table *t, struct output *out, const char *group);
void table_free(struct table *t);
#endif
