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
#include "base/selection.h"

enum option_type {
	OPTION_END, OPTION_HEADING, OPTION_BOOL, OPTION_EITHER, OPTION_SIZE, OPTION_REAL, OPTION_TEXT,
	OPTION_FILE, OPTION_CHOICE, OPTION_SELECTION, OPTION_PARSED, OPTION_HELP, OPTION_VERSION,
};

/* What is of another type does not compile. */
#ifdef __cppcheck__	/* which cannot parse _Generic */
#define OPTION_CHECKED(c_type, variable) variable
#else
#define OPTION_CHECKED(c_type, variable) _Generic((variable), c_type: (variable))
#endif
#define OPTION_TYPED(kind, c_type, member, variable) \
	.type = kind, .var = { .member = OPTION_CHECKED(c_type, variable) }

/* Kinds: what follows the name in a row. */
/* true if given; there is no --no-NAME */
#define OPTION_BOOL(variable)		OPTION_TYPED(OPTION_BOOL, bool *, flag, variable)
/* takes a suffix K, M, G: times 2^10, 2^20, 2^30 */
#define OPTION_SIZE(variable)		OPTION_TYPED(OPTION_SIZE, size_t *, size, variable)
/* double, finite */
#define OPTION_REAL(variable)		OPTION_TYPED(OPTION_REAL, double *, real, variable)
#define OPTION_TEXT(variable)		OPTION_TYPED(OPTION_TEXT, const char **, text, variable)
/* const char *: a second input; not in the history */
#define OPTION_FILE(variable)		OPTION_TYPED(OPTION_FILE, const char **, text, variable)
/* may be repeated */
#define OPTION_SELECTION(variable) \
	OPTION_TYPED(OPTION_SELECTION, struct selection *, selection, variable)
/* an enum without negative members: the index of the word in `list`, NULL-terminated */
#define OPTION_CHOICE(variable, list) \
	.words = list, OPTION_TYPED(OPTION_CHOICE, unsigned *, choice, variable)
/* the same, of this enum and no other */
#define OPTION_ENUM(c_type, variable, list) \
	OPTION_CHOICE(OPTION_CHECKED(c_type *, variable), list)
/* bool: which of two words */
#define OPTION_EITHER(variable, list) \
	.words = list, OPTION_TYPED(OPTION_EITHER, bool *, flag, variable)
/* of a type whose words a module knows: its function calls misuse(), naming the option, for any other text */
#define OPTION_PARSED(c_type, variable, function) \
	.parse = function, OPTION_TYPED(OPTION_PARSED, c_type *, parsed, variable)

struct option_row {
	char key;		/* short letter, or 0 */
	const char *name;	/* long name */
	const char *const *words;
	void (*parse)(void *var, const char *option, const char *text);
	enum option_type type;
	union {
		bool *flag;
		size_t *size;
		double *real;
		const char **text;
		unsigned *choice;
		struct selection *selection;
		void *parsed;
	} var;
	const char *arg;	/* what --help calls the argument */
	const char *help;
	const char *otherwise;	/* the default, as one would give it; NULL: 0 (a parsed variable stays) */
	double min, max;	/* range of a number, ends included; most 0: any */
	bool neutral;		/* cannot change the result: stays out of the history */
	bool told;		/* the history names its default, too */
	const char *alias;	/* an earlier name that is still understood, or NULL */
	char *(*form)(const void *var);	/* of a parsed variable: its value in one form, for the history */
};

#define OPTION_LAYERS(var) { 0, "layers", OPTION_SELECTION(var), "GLOB", \
	"only layers whose path matches; !GLOB excludes; may be repeated" }
#define OPTION_SEED(var) { 0, "seed", OPTION_SIZE(var), "N", "seed of the random numbers", .otherwise = "0" }

struct tool {
	const char *name, *brief;	/* "eval-ppl", "perplexity of a model on a text" */
	const char *operands;		/* as usage shows them: "[MODEL]" */
	size_t max_operands;		/* more are a misuse; SIZE_MAX: any number */
	bool optional;			/* no operand: no input; otherwise standard input */
	const char *about;		/* a paragraph for --help: what it computes, from what */
	const char *examples;		/* lines for --help, each a command that runs */
};

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
/* Whether the option of this name was given, and has an effect. */
bool option_given(const char *name);

/*
 * Options that have no effect under the others: where `idle` holds, those of
 * `names` (blanks between them) that were given are named in a warning, one line
 * for all rows, and stay out of the history. Call it before the history is asked for.
 */
struct option_idle {
	bool idle;
	const char *names, *why;	/* "damp group-view", "--compensate none" */
};
void option_idle(size_t n, const struct option_idle row[n]);

/* Whether the option takes an argument. */
bool option_has_argument(const struct option_row *o);
/* "0 to 1000000", "2 to 16M"; NULL: any. free() it. */
char *option_range(const struct option_row *o);
/* In help.c: what --help prints; common: the options of every tool. */
void help_print(const struct tool *t, const struct option_row *rows, const struct option_row *common);
#endif
