/* SPDX-License-Identifier: GPL-3.0-or-later */
/* history.h -- the line that says how a result was made */
#ifndef BASE_HISTORY_H
#define BASE_HISTORY_H
#include "base/option_row.h"

/* What the line is about, borrowed: the tool, its options, the value of each for the line, or NULL. */
void history_begin(const struct tool *t, const struct option_row *rows, const char *const value[]);
/*
 * "TOOL VERSION --name value ...": options with a value that can change the result, in table order, under
 * their first names. Written when it is first asked for.
 */
const char *history_line(void);
/* Adds " name:value" to it: what is known of an input that is no HDF5 file. */
void history_note(const char *name, const char *value);
#endif
