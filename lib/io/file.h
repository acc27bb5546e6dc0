/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * file.h -- input files: opened for reading, and remembered, so that no result is written into one
 */
#ifndef IO_FILE_H
#define IO_FILE_H
#include <stdbool.h>

/* path NULL or "-": standard input, once. Stores what messages call it; free() that. Dies if it cannot be opened, or is a folder. */
int file_open(const char *path, char **name);
/* Remembers the file behind a descriptor that was opened elsewhere: the last 4096 of them. */
void file_note(int fd);
/* Whether the regular file behind a descriptor is one of those. */
bool file_is_input(int fd);
#endif
