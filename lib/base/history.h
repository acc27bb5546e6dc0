/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * history.h -- the line of the history: the command that made a result
 *
 * option_parse() calls history_begin(). A tool may then call history_note(). The first call of history_line()
 * makes the line; later notes and options do not change it.
 */
#ifndef BASE_HISTORY_H
#define BASE_HISTORY_H
#include "base/option_row.h"

/* Sets the tool, its options, and for each option its value in the line (NULL: not in the line). Pointers are
 * borrowed. */
void history_begin(const struct tool *t, const struct option_row *rows, const char *const value[]);
/*
 * "TOOL VERSION --name value ...": the options with a value that can change the result, in table order, with
 * their current names (not their aliases). The first call makes the line.
 */
const char *history_line(void);
/* Appends " name:value" to the line, for an input that is not an HDF5 file. */
void history_note(const char *name, const char *value);
#endif
