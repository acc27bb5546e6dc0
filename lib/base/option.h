/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * option.h -- a tool's options as one table: parsed, checked, shown by --help,
 * and written into the history of the result
 *
 * -o FILE, -j N, -q, -v, -h, -V are understood by every tool and need no row.
 * OPTION_LAYERS and OPTION_SEED are rows for tools that have a use for them.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_END, OPTION_HEADING,
	OPTION_BOOL,		/* bool: given or not; the name "no-x" is not made up */
	OPTION_SIZE,		/* size_t; accepts a suffix K, M, G (binary) */
	OPTION_REAL,		/* double, finite */
	OPTION_TEXT,		/* const char * */
	OPTION_CHOICE,		/* int: index of the word in `choices` */
	OPTION_FILE,		/* const char *: a second input; not in the history line */
	OPTION_LIST,		/* struct option_list: may be repeated */
};

struct option_list {
	size_t n;
	const char **text;
};

struct option_row {
	char key;		/* short letter, or 0 */
	const char *name;	/* long name */
	enum option_type type;
	void *var;		/* holds the default before, the value after parsing */
	const char *arg;	/* what --help calls the argument */
	const char *help;
	const char *const *choices;	/* NULL-terminated, for OPTION_CHOICE */
	bool *given;		/* set to true when the option is given; may be NULL */
	bool neutral;		/* cannot change the result: stays out of the history */
};

extern struct option_list layers;	/* --layers GLOB, !GLOB */
extern uint64_t seed;			/* --seed N */
extern const char *output_path;		/* -o FILE; NULL: standard output */

#define OPTION_LAYERS { 0, "layers", OPTION_LIST, &layers, "GLOB", \
	"only layers whose path matches; !GLOB excludes; may be repeated", NULL, NULL, false }
#define OPTION_SEED { 0, "seed", OPTION_SIZE, &seed, "N", "seed of the random numbers", NULL, NULL, false }

struct tool {
	const char *name, *brief;	/* "eval-ppl", "perplexity of a model on a text" */
	const char *operands;		/* as usage shows them: "[MODEL]" */
	size_t max_operands;		/* more are a misuse; SIZE_MAX: any number */
	const char *about;		/* a paragraph for --help: what it computes, from what */
	const char *examples;		/* lines for --help, each a command that runs */
};

/*
 * Parses argv, sets `program`, handles -h and -V, exits with status 2 on
 * misuse. Returns the operands and stores how many in *n; with none it gives
 * {"-"} and n = 1 if max_operands > 0.
 */
const char **option_parse(int argc, char *argv[], const struct tool *tool,
	const struct option_row *rows, size_t *n);

/* "TOOL VERSION --name value ...": given options that can change the result, in table order. */
const char *option_history(void);

/* Whether --layers selects the path: some GLOB matches, or none was given, and no !GLOB matches.
 * A leading '/' in a GLOB is optional; '*' crosses '/'. */
bool option_layer(const char *path);
bool option_layers_given(void);
#endif
