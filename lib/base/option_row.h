/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * option_row.h -- a row of a tool's options, and what the tool says of itself
 *
 * option.h parses by them, help.h shows them, history.h writes what was given. How a row is written, and by
 * which kinds, option.h has an example of.
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
	const char *const *meanings;	/* what each of `words` means, for --help; NULL: `help` says it */
	const char *otherwise;	/* the default, as one would give it; NULL: 0 (a parsed variable stays) */
	double min, max;	/* range of a number, ends included; max 0: any */
	bool neutral;		/* cannot change the result: stays out of the history */
	bool told;		/* the history names its default, too */
	const char *alias;	/* an earlier name that is still understood, or NULL */
	char *(*form)(const void *var);	/* of a parsed variable: its value in one form, for the history */
};

struct tool {
	const char *name, *brief;	/* "eval-ppl", "perplexity of a model on a text" */
	const char *operands;		/* as usage shows them: "[MODEL]" */
	size_t max_operands;		/* more are a misuse; SIZE_MAX: any number */
	bool optional;			/* no operand: no input; otherwise standard input */
	const char *about;		/* a paragraph for --help: what it computes, from what */
	const char *examples;		/* lines for --help, each a command that runs */
};

/* Whether the option takes an argument. */
bool option_has_argument(const struct option_row *o);
/* "0 to 1000000", "2 to 16M"; NULL: any. free() it. */
char *option_range(const struct option_row *o);
#endif
