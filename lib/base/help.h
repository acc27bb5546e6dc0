/* SPDX-License-Identifier: GPL-3.0-or-later */
/* help.h -- what --help prints of a tool and its options */
#ifndef BASE_HELP_H
#define BASE_HELP_H
#include "base/option_row.h"

/* On standard output; common: the options of every tool, after its own. */
void help_print(const struct tool *t, const struct option_row *rows, const struct option_row *common);
#endif
