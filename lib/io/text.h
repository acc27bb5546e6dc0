/* SPDX-License-Identifier: GPL-3.0-or-later */
/* text.h -- a file, or all of standard input, in memory */
#ifndef IO_TEXT_H
#define IO_TEXT_H
#include <stddef.h>

/*
 * The bytes of path ("-" or NULL: standard input), and their number in *n; a NUL, which is not counted,
 * follows them. free() it. Dies on a folder, on an error of the system, and on more than `most` bytes.
 */
char *text_read(const char *path, size_t most, size_t *n);
#endif
