/* SPDX-License-Identifier: GPL-3.0-or-later */
/* contents.h -- a file, or all of standard input, in memory; a text as a result */
#ifndef IO_CONTENTS_H
#define IO_CONTENTS_H
#include <stddef.h>
#include "base/replace.h"

/*
 * The bytes of path ("-" or NULL: standard input), and their number in *n; a NUL, which is not counted,
 * follows them. free() it. Dies on a folder, on an error of the system, and on more than `max` bytes.
 */
char *contents_read(const char *path, size_t max, size_t *n);

/* A text that becomes the result: a file that appears when it is whole, or a descriptor, as output_open()
 * (part.h) takes them. Dies if nothing could be written there. */
struct contents_output {
	struct replace named;	/* path NULL: a descriptor */
	int fd;
	const char *name;	/* borrowed */
};
struct contents_output contents_create(const char *path);
/* All of it; gives it its name. */
void contents_write(struct contents_output *out, size_t n, const char *text);
#endif
