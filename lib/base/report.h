/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * report.h -- small answers: `name<TAB>value` lines or one JSON object on
 * standard output, and aligned per-layer tables on standard error
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H
#include <stdbool.h>
#include <stddef.h>

struct answer { const char *name; double value; int digits; };	/* %.*g; digits 0: an integer */
void report_answer(size_t n, const struct answer a[n], bool json);

/*
 * Rows of a report on standard error: a header line first, then `name` and one
 * number a column; silent under -q. Columns are aligned on a terminal, elsewhere
 * separated by tabs.
 */
struct report { const char *const *column; size_t columns; bool begun; };
void report_row(struct report *r, const char *name, const double value[]);
#endif
