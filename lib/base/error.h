/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * error.h -- fatal errors, warnings, signals, checked allocation
 *
 * Exit status: 0 success, 1 an error of the data or the system, 2 wrong usage. A message is one line on
 * standard error: "TOOL: FILE: PATH: what is wrong, expected what". It is in lower case, without a full stop.
 * If a format ends in ':', the reason of the system (errno) is appended.
 *
 * Calling sequence: option_parse() sets `program` and calls catch_signals(). Modules register their clean-up
 * by on_exit_cleanup(). Before the output file is renamed, ignore_signals() is called.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H
#include <stdbool.h>
#include <stddef.h>

extern const char *program;		/* name of the tool, set by option_parse() */
extern bool quiet, verbose;		/* -q, -v */

/* Sets the prefix of all later messages, "FILE:LINE"; NULL: no prefix. */
void error_prefix(const char *where);

/* die() ends the program with status 1, misuse() with status 2 and a hint at --help. Both run the clean-up
 * functions. If several threads call them, only the first prints. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* under -q too */

/* From now on, every signal that ends a process runs the functions of on_exit_cleanup() first. SIGBUS, which
 * a shrinking input file causes, prints a message. */
void catch_signals(void);
/* Registers a function that removes unfinished files: die(), misuse(), signals and exit() call it once. */
void on_exit_cleanup(void (*fn)(void));
/* In a child process: forgets all registered functions, so that the files of the parent stay. */
void clear_cleanups(void);
/* From now on, signals that are sent to the tool are ignored: the output file is about to be renamed. */
void ignore_signals(void);

/*
 * n elements of size bytes, zeroed, aligned to 64 bytes, never NULL; released by free(). Large blocks use
 * huge pages. Fatal error if there is not enough memory or n·size overflows; the same holds for xgrow(),
 * xformat() and xsetenv().
 */
void *xalloc(size_t n, size_t size);
void *xgrow(void *p, size_t n, size_t size);		/* realloc() to n elements of size bytes */
/* A copy of the text with '?' for control characters: one line, and one cell of a table; free() it. */
char *plain_text(const char *text);
char *xformat(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* free() it */
void xsetenv(const char *name, const char *value);	/* replaces an earlier value */
#endif
