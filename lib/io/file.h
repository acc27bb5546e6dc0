/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * file.h -- input files: opened for reading, and remembered, so that no result is written into one of them, and
 * none is made of one that changes while it is read
 */
#ifndef IO_FILE_H
#define IO_FILE_H
#include <stdbool.h>
#include <stddef.h>

/* Opens path for reading; NULL or "-": standard input, which can be opened once. Stores the name that messages use;
 * free() it. Dies if the file cannot be opened, or is a folder. */
int file_open(const char *path, char **name);
/* Reads n bytes, fewer only where the file ends; returns how many. Dies, naming `name`, if the system cannot read. */
size_t file_read(const char *name, int fd, void *to, size_t n);
/* Writes n bytes, or dies. */
void file_write(const char *name, int fd, const void *from, size_t n);
/* Remembers an input that was opened elsewhere, by its path: the last 4096 of them. */
void file_note(int fd, const char *path);
/* Remembers the kind (ptq_kind) that the input behind a descriptor holds. */
void file_kind(int fd, const char *kind);
/* Whether the regular file behind a descriptor is an input. */
bool file_is_input(int fd);
/* The kind that the input of this name holds, "" if it holds none; NULL if it is no input. */
const char *file_input_kind(const char *path);
/* Dies if an input has been changed since it was opened; called before a result is shown or gets its name. */
void file_check(void);
#endif
