/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * contents.h -- a file or standard input as a string, and a text as a result
 *
 * A text is written by contents_create(), then contents_write(). The first one reports an output that
 * cannot be written before any work is done.
 */
#ifndef IO_CONTENTS_H
#define IO_CONTENTS_H
#include <stddef.h>
#include "base/replace.h"

/*
 * Returns the bytes of path ("-" or NULL: standard input) and stores their number in *n. A NUL, which is
 * not counted, follows them. The caller frees them. Fatal error if path is a folder, if it cannot be read,
 * or if it has more than `max` bytes.
 */
char *contents_read(const char *path, size_t max, size_t *n);

/* An output for a text: a file, which appears under its name when it is complete, or a descriptor. Paths
 * have the meaning that they have in output_open() (part.h). Fatal error if the output cannot be written. */
struct contents_output {
	struct replace named;	/* path NULL: the output is a descriptor */
	int fd;
	const char *name;	/* borrowed */
};
struct contents_output contents_create(const char *path);
/* Writes the whole text and closes the output. A file gets its name. Fatal error if the output is an input,
 * or if an input has changed. */
void contents_write(struct contents_output *out, size_t n, const char *text);
#endif
