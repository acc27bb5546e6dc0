/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * option.h -- a tool's options as one table: parsed, checked, shown by --help,
 * and written into the history of the result
 *
 * A row is { letter or 0, "name", OPTION_KIND(&variable), "ARG" or NULL, "help", .member = ... }:
 *
 *	size_t n;
 *	const struct option_row rows[] = {
 *		{ 'n', "length", OPTION_SIZE(&n), "N", "ids to draw", .otherwise = "16K" },
 *		OPTION_SEED(&seed),
 *		{ .type = OPTION_END },
 *	};
 *
 * A variable of another type than the kind's does not compile. option_parse()
 * sets every variable: to the value given, or to that of `otherwise`.
 * -o FILE, -j N, -q, -v, -h, -V are understood by every tool and need no row.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include "base/option_row.h"

#define OPTION_LAYERS(var) { 0, "layers", OPTION_SELECTION(var), "GLOB", \
	"only layers whose path matches; !GLOB excludes; may be repeated" }
#define OPTION_SEED(var) { 0, "seed", OPTION_SIZE(var), "N", "seed of the random numbers", .otherwise = "0" }

struct command {
	size_t operands;
	const char **operand;		/* {"-"} where there is none, but could be, and not `optional` */
	const char *output;		/* -o FILE; NULL: standard output */
};

/*
 * Parses argv, sets `program`, catches signals, handles -h and -V, exits with
 * status 2 on misuse. rows must stay as long as options and the history are asked for.
 */
struct command option_parse(int argc, char *argv[], const struct tool *tool, const struct option_row *rows);

/* Gives the variable of the row a value, as an option does; NULL: false, 0 or NULL, as without option and
 * default. */
void option_set(const struct option_row *o, const char *text);
/* Whether the command line has the option of this name. */
bool option_given(const char *name);
/* Whether it was given, and no option_idle() so far has named it. */
bool option_has_effect(const char *name);

/*
 * Options that have no effect under the others: where `idle` holds, those of
 * `names` (blanks between them) that were given are named in a warning, one line
 * for all rows, and stay out of the history. Call it before the history is asked for.
 */
struct option_idle {
	bool idle;
	const char *names, *why;	/* "damp group-view", "--compensate none"; names NULL: none */
};
void option_idle(size_t n, const struct option_idle row[n]);
/* A misuse if one of `names`, as above, was given: `why` does not use it. */
void option_refuse(const char *names, const char *why);
#endif
