/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * text.h -- the whole of a file or of standard input in memory
 */
#ifndef IO_TEXT_H
#define IO_TEXT_H
#include <stddef.h>

/*
 * The bytes of path ("-" or NULL: standard input) and how many there are; a
 * NUL, not counted, stands behind them. free() it. Dies on a folder, an error
 * of the system, or more than `most` bytes.
 */
char *text_read(const char *path, size_t most, size_t *n);
#endif
