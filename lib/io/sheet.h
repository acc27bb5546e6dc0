/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sheet.h -- the table of an experiment: rows collected, then printed and kept
 *
 * Printed as lines of tab-separated values (aligned on a terminal) or as JSON;
 * kept as a file of kind `result` or `sweep`, one dataset a column (SPEC section 1).
 */
#ifndef IO_SHEET_H
#define IO_SHEET_H
#include <stdbool.h>
#include <stddef.h>
#include "io/image.h"

enum sheet_type { SHEET_TEXT, SHEET_INTEGER, SHEET_REAL };
struct sheet_column { const char *name; enum sheet_type type; };
union sheet_value { const char *text; double number; };

struct sheet {
	size_t columns;
	const struct sheet_column *column;
	size_t rows;
	union sheet_value *value;	/* [rows][columns], texts owned */
	bool summed;			/* the last row sums the others up */
};

/* Adds a row, one value a column; texts are copied. NaN: does not apply. */
void sheet_row(struct sheet *s, const union sheet_value value[]);
/* The last row, which sums up the others: its first text says how. */
void sheet_sum(struct sheet *s, const union sheet_value value[]);

/* To standard output. JSON: {"rows": [{"name": value, ...}, ...], "the sum's first text": {...}}; null for what is not finite. */
void sheet_print(const struct sheet *s, bool json);
/* A dataset a column: strings, int64, or f64; numbers of the last row, where it sums up: root attributes. Closes
 * the output. Nothing with NULL. */
void sheet_write(const struct sheet *s, struct output *out);
/* The columns as datasets of a group, in an output that goes on; nothing of an empty sheet. */
void sheet_put(const struct sheet *s, struct output *out, const char *group);
void sheet_free(struct sheet *s);
#endif
