/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * table.h -- the table of an experiment: rows collected, then printed and kept
 *
 * Printed as lines of tab-separated values (aligned on a terminal) or as JSON;
 * kept as a file of kind `result` or `sweep`, one dataset a column (SPEC section 1).
 */
#ifndef IO_TABLE_H
#define IO_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/image.h"

enum table_type { TABLE_TEXT, TABLE_INTEGER, TABLE_REAL };
struct table_column { const char *name; enum table_type type; };
union table_value { const char *text; double number; };

struct table {
	size_t columns;
	const struct table_column *column;
	size_t rows;
	union table_value *value;	/* [rows][columns], texts owned */
	bool summed;			/* the last row sums the others up */
};

/* Adds a row, one value a column; texts are copied. NaN: does not apply. */
void table_row(struct table *s, const union table_value value[]);
/* The last row, which sums up the others: its first text says how. */
void table_sum(struct table *s, const union table_value value[]);

/* To standard output. JSON: {"rows": [{"name": value, ...}, ...], "the sum's first text": {...}}; null for what is not finite. */
void table_print(const struct table *s, bool json);
/* A dataset a column: strings, int64, or f64; numbers of the last row, where it sums up: root attributes. Closes
 * the output. Nothing with NULL. */
void table_write(const struct table *s, struct output *out);
/* The columns as datasets of a group, in an output that goes on; nothing of an empty table. */
void table_put(const struct table *s, struct output *out, const char *group);
void table_free(struct table *s);
#endif
