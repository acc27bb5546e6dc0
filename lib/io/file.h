/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * file.h -- input files: opened, and remembered, so that no result is written into one of them, and none is
 * made of one that changes while it is read
 */
#ifndef IO_FILE_H
#define IO_FILE_H
#include <stdbool.h>
#include <stddef.h>

/* Opens path for reading; NULL or "-": standard input, which can be opened once. Stores the name for
 * messages; free() it. Dies if the file cannot be opened, or is a folder. */
int file_open(const char *path, char **name);
/* Reads n bytes, or fewer where the file ends; returns how many. name: for messages. */
size_t file_read(const char *name, int fd, void *to, size_t n);
void file_write(const char *name, int fd, const void *from, size_t n);
/* Remembers an input that was opened elsewhere, by its path: the last 4096 of them. */
void file_note(int fd, const char *path);
/* Remembers the kind (ptq_kind) that the input behind a descriptor holds. */
void file_kind(int fd, const char *kind);
/* The i-th input that is remembered, by its path, from 0, and its kind; NULL: there are no more. */
const char *file_input(size_t i, const char **kind);
/* An input that is no regular file, and so cannot be read again; NULL: there was none. */
const char *file_pipe(void);
/* The digest (digest_pieces()) of an input by its path; NULL if it is not remembered: it is no regular file.
 * Dies if another file has its name by now. free() it. */
char *file_digest(const char *path);
/* For digest_pieces() of a mapped file: pages that were read need not stay in memory. */
void file_drop(void *piece, size_t n);
/* Whether the regular file behind a descriptor is an input. */
bool file_is_input(int fd);
/* The kind that the input of this name holds, "" if it holds none; NULL if it is no input. */
const char *file_input_kind(const char *path);
/* Dies if an input has been changed since it was opened; called before a result is shown or gets its name. */
void file_check(void);
#endif
