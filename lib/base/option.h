/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * option.h -- the options of a tool as one table: parsed, checked, shown by --help,
 * and written to the history of the result
 *
 * A row is { letter or 0, "name", OPTION_KIND(&variable), "ARG" or NULL, "help", .member = ... }:
 *
 *	size_t n;
 *	const struct option_row rows[] = {
 *		{ 'n', "length", OPTION_SIZE(&n), "N", "ids to draw", .default_value = "16K" },
 *		OPTION_SEED(&seed),
 *		{ .type = OPTION_END },
 *	};
 *
 * A variable whose type does not fit the kind does not compile. option_parse()
 * sets every variable to the given value, or to `default_value`.
 * Every tool has -o FILE, -j N, -q, -v, -h, -V; they need no row.
 *
 * Calling sequence: option_parse(), then option_without_effect() and option_refuse() for options that do not
 * fit each other, then the history. Wrong options end the program with status 2.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include "base/option_row.h"

#define OPTION_LAYERS(var) { 0, "layers", OPTION_SELECTION(var), "GLOB", \
	"only layers that match GLOB; !GLOB excludes" }
#define OPTION_SEED(var) { 0, "seed", OPTION_SIZE(var), "N", "seed of the random numbers", \
	.default_value = "0" }

struct command {
	size_t operands;
	const char **operand;		/* { "-" } if the tool takes operands, none is given and !optional */
	const char *output;		/* -o FILE; NULL: standard output */
};

/*
 * Parses argv, sets `program`, catches signals, handles -h and -V, and exits with
 * status 2 on misuse. rows must exist as long as options and the history are used.
 */
struct command option_parse(int argc, char *argv[], const struct tool *tool, const struct option_row *rows);

/* Sets the variable of the row, as an option does. text NULL: sets false, 0 or NULL, the value of an absent
 * option without a default. */
void option_set(const struct option_row *o, const char *text);
/* Whether the command line has the option of this name. */
bool option_given(const char *name);
/* Whether the option was given, and no earlier option_without_effect() found it without effect. */
bool option_has_effect(const char *name);

/*
 * Options that have no effect in combination with the others. In each row with `applies`, the options of
 * `names` (separated by blanks) are left out of the history. Those that were given are named in a warning,
 * one line for all rows. Call it before history_line().
 */
struct option_without_effect {
	bool applies;
	const char *names, *why;	/* "damp group-view", "--compensate none"; names NULL: no option */
};
void option_without_effect(size_t n, const struct option_without_effect row[n]);
/* Misuse if one of `names`, as above, was given. why: the subject of the message "... does not use it". */
void option_refuse(const char *names, const char *why);
#endif
