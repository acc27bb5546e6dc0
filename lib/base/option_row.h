/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * option_row.h -- a row of the option table, and the description of a tool
 *
 * option.h parses options by these rows, help.h prints them, history.h writes the given ones. option.h has an
 * example of a table.
 */
#ifndef BASE_OPTION_ROW_H
#define BASE_OPTION_ROW_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"

enum option_type {
	OPTION_END, OPTION_HEADING, OPTION_BOOL, OPTION_EITHER, OPTION_SIZE, OPTION_REAL, OPTION_TEXT,
	OPTION_FILE, OPTION_CHOICE, OPTION_SELECTION, OPTION_PARSED, OPTION_HELP, OPTION_VERSION,
};

/* A variable of another type does not compile. */
#ifdef __cppcheck__	/* it cannot parse _Generic */
#define OPTION_CHECKED(c_type, variable) variable
#else
#define OPTION_CHECKED(c_type, variable) _Generic((variable), c_type: (variable))
#endif
#define OPTION_TYPED(kind, c_type, member, variable) \
	.type = kind, .var = { .member = OPTION_CHECKED(c_type, variable) }

/* Kinds of options; the kind follows the name in a row. */
/* true if given; --no-NAME does not exist */
#define OPTION_BOOL(variable)		OPTION_TYPED(OPTION_BOOL, bool *, flag, variable)
/* whole number, with an optional suffix K, M, G: times 2^10, 2^20, 2^30 */
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
/* the same, and the variable must have this enum type */
#define OPTION_ENUM(c_type, variable, list) \
	OPTION_CHOICE(OPTION_CHECKED(c_type *, variable), list)
/* bool: false for the first word of `list`, true for the second */
#define OPTION_EITHER(variable, list) \
	.words = list, OPTION_TYPED(OPTION_EITHER, bool *, flag, variable)
/* a type that a module parses: for an invalid text, `function` calls misuse() and names the option */
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
	const char *arg;	/* name of the argument in --help */
	const char *help;
	const char *const *meanings;	/* the meaning of each of `words`, for --help; NULL: `help` has it */
	const char *default_value;	/* as text; NULL: 0 (a parsed variable keeps its value) */
	double min, max;	/* range of a number, both ends included; max 0: any number */
	bool neutral;		/* cannot change the result: is not written to the history */
	bool default_in_history;	/* its default is also written to the history */
	const char *environment;	/* variable that sets the option if it is not given */
	const char *alias;	/* an earlier name that is still accepted, or NULL */
	char *(*form)(const void *var);	/* canonical text of a parsed variable, for the history */
};

struct tool {
	const char *name, *brief;	/* "eval-ppl", "perplexity of a model on a text" */
	const char *operands;		/* in the line of usage: "[MODEL]" */
	size_t max_operands;		/* more are a misuse; SIZE_MAX: any number */
	bool optional;			/* no operand: no input; false: then input is standard input */
	const char *about;		/* a paragraph for --help: the results and their inputs */
	const char *examples;		/* lines for --help; each is a command that runs */
};

/* Whether the option takes an argument. */
bool option_has_argument(const struct option_row *o);
/* "0 to 1000000", "2 to 16M"; NULL: no range. free() it. */
char *option_range(const struct option_row *o);
#endif
