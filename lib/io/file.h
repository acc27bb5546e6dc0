/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * file.h -- input files: reading, and the list of all inputs
 *
 * Each input file is recorded when it is opened. So a result is not written into an input, and file_check()
 * finds an input that changed while it was read. The last 4096 inputs are kept.
 *
 * Functions end with a fatal error if a file cannot be opened, read or written. `name` is for messages.
 */
#ifndef IO_FILE_H
#define IO_FILE_H
#include <stdbool.h>
#include <stddef.h>

/* Opens path for reading, and records it. NULL or "-": standard input, which can be opened once. Stores the
 * name for messages in *name; the caller frees it. Fatal error if path is a folder. */
int file_open(const char *path, char **name);
/* Reads n bytes, or fewer at the end of the file; returns the number. */
size_t file_read(const char *name, int fd, void *to, size_t n);
void file_write(const char *name, int fd, const void *from, size_t n);
/* Records an input that was opened elsewhere, under its path. */
void file_note(int fd, const char *path);
/* Records the kind (ptq_kind) of the contents of the input open at fd. */
void file_kind(int fd, const char *kind);
/* The path and the kind of recorded input i, from 0; NULL after the last one. */
const char *file_input(size_t i, const char **kind);
/* The name of an input that is not a regular file, and so cannot be read again; NULL if all are regular
 * files. */
const char *file_pipe(void);
/* The digest (digest_pieces()) of a recorded input; the caller frees it. NULL if the path is not recorded,
 * for example because it is not a regular file. Fatal error if the path now names another file. */
char *file_digest(const char *path);
/* Releases the pages of n bytes of a mapped file; for digest_pieces(). They are read again if needed. */
void file_drop(void *piece, size_t n);
/* Whether the regular file open at fd is an input. */
bool file_is_input(int fd);
/* The kind of the input at this path; "" if it is not recorded; NULL if the path is not an input. */
const char *file_input_kind(const char *path);
/* Fatal error if an input has changed since it was opened. Called before a result is printed or gets its
 * name. */
void file_check(void);
#endif
