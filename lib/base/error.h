/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * error.h -- how a tool stops and how it speaks
 *
 * Exit status: 0 done, 1 the data or the system failed, 2 wrong usage. A message is one line on standard
 * error, "TOOL: the thing: what is wrong, expected what"; lower case, no full stop. A format that ends in
 * ':' gets the system's reason (errno) appended.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H
#include <stdbool.h>
#include <stddef.h>

extern const char *program;		/* name of the tool, set by option_parse() */
extern bool quiet, verbose;		/* -q, -v */

/* What messages name first from here on, "FILE:LINE"; NULL: nothing. */
void error_about(const char *where);

_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* under -q too */

/* From here on every signal that ends a process runs what at_stop() was given; SIGBUS, of an input that
 * shrinks, gives a message. */
void catch_signals(void);
/* Registers a function that removes unfinished files: die(), misuse(), signals and exit() call it once. */
void at_stop(void (*fn)(void));
/* In a child process: nothing that is the parent's is removed. */
void forget_stops(void);
/* From here on signals that are sent to the tool are ignored: the result is about to get its name. */
void settle(void);

/*
 * n elements of size bytes, zeroed, 64-byte aligned, never NULL: dies when memory is short or n·size
 * overflows. Large ones ask for huge pages. Returned by free().
 */
void *xalloc(size_t n, size_t size);
/* realloc() to n elements of size bytes; dies where there is no memory */
void *xgrow(void *p, size_t n, size_t size);
/* The text with '?' for control characters, so that it is one line, and one cell of a table; free() it. */
char *plain_text(const char *text);
char *xformat(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* free() it */
void xsetenv(const char *name, const char *value);	/* replaces; dies where there is no memory */
#endif
