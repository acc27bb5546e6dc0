/* SPDX-License-Identifier: GPL-3.0-or-later */
/* help.h -- the output of --help */
#ifndef BASE_HELP_H
#define BASE_HELP_H
#include "base/option_row.h"

/* Prints to standard output. rows: the options of the tool; common: the options of every tool, printed
 * last. */
void help_print(const struct tool *t, const struct option_row *rows, const struct option_row *common);
#endif
