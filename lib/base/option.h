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
	OPTION_BOOL,		/* bool: true if given; there is no --no-NAME */
	OPTION_SIZE,		/* size_t; accepts a suffix K, M, G (binary) */
	OPTION_REAL,		/* double, finite */
	OPTION_TEXT,		/* const char * */
	OPTION_CHOICE,		/* int: index of the word in `choices` */
	OPTION_FILE,		/* const char *: a second input; not in the history line */
	OPTION_SELECTION,	/* struct selection: may be repeated */
};

struct option_row {
	char key;		/* short letter, or 0 */
	const char *name;	/* long name */
	enum option_type type;
	void *var;		/* holds the default before, the value after parsing */
	const char *arg;	/* what --help calls the argument */
	const char *help;
	const char *const *choices;	/* NULL-terminated, for OPTION_CHOICE */
	double least, most;	/* range of a number, ends included; most 0: any */
	bool neutral;		/* cannot change the result: stays out of the history */
	const char *alias;	/* an earlier name that is still understood, or NULL */
};

extern uint64_t seed;			/* --seed N */
extern const char *output_path;		/* -o FILE; NULL: standard output */

#define OPTION_LAYERS(var) { 0, "layers", OPTION_SELECTION, var, "GLOB", \
	.help = "only layers whose path matches; !GLOB excludes; may be repeated" }
#define OPTION_SEED { 0, "seed", OPTION_SIZE, &seed, "N", .help = "seed of the random numbers (default: 0)" }

struct tool {
	const char *name, *brief;	/* "eval-ppl", "perplexity of a model on a text" */
	const char *operands;		/* as usage shows them: "[MODEL]" */
	size_t max_operands;		/* more are a misuse; SIZE_MAX: any number */
	bool optional;			/* without operands there is no input; otherwise it is standard input */
	const char *about;		/* a paragraph for --help: what it computes, from what */
	const char *examples;		/* lines for --help, each a command that runs */
};

/*
 * Parses argv, sets `program`, catches signals, handles -h and -V, exits with
 * status 2 on misuse. Returns the operands and stores how many in *n; with none
 * it gives {"-"} and n = 1 if max_operands > 0 and they are not optional. rows
 * must stay as long as options are asked for.
 */
const char **option_parse(int argc, char *argv[], const struct tool *tool,
	const struct option_row *rows, size_t *n);

/* Whether the option of this name was given. */
bool option_given(const char *name);

/*
 * Options that have no effect under the others: where `idle` holds, those of
 * `names` (blanks between them) that were given are named in a warning, one line
 * for all rows, and stay out of the history. Before the history is asked for.
 */
struct option_idle {
	bool idle;
	const char *names, *why;	/* "damp group-view", "--compensate none" */
};
void option_idle(size_t n, const struct option_idle row[n]);

/* "TOOL VERSION --name value ...": given options that can change the result, in table order, under their first names. */
const char *option_history(void);
/* Adds " name:value" to it: what is known of an input that is no HDF5 file. */
void option_history_note(const char *name, const char *value);
#endif
