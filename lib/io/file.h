/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * file.h -- input files: opened for reading, and remembered, so that no result is written into one, or made of one that
 * has changed meanwhile
 */
#ifndef IO_FILE_H
#define IO_FILE_H
#include <stdbool.h>

/* path NULL or "-": standard input, once. Stores what messages call it; free() that. Dies if it cannot be opened, or is a folder. */
int file_open(const char *path, char **name);
/* Remembers the file behind a descriptor that was opened elsewhere, by its path: the last 4096 of them. */
void file_note(int fd, const char *path);
/* What kind (ptq_kind) the file behind a descriptor turned out to hold. */
void file_kind(int fd, const char *kind);
/* Whether the regular file behind a descriptor is an input. */
bool file_is_input(int fd);
/* The kind that the input of this name holds, "" if it holds none; NULL if it is no input. */
const char *file_input_kind(const char *path);
/* Dies if an input has been changed in place since it was opened: to be called before a result is shown or gets its name. */
void file_check(void);
#endif
