/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * buffer.h -- a growing block of memory, anonymous or backed by a file
 *
 * It grows with mremap(), so its pages are not copied. A file grows with the mapping. A buffer of zeros is
 * empty and anonymous. For a file, set fd and name.
 */
#ifndef IO_BUFFER_H
#define IO_BUFFER_H
#include <stddef.h>

struct buffer {
	unsigned char *data;
	size_t capacity;	/* mapped bytes */
	int fd;			/* descriptor of the file */
	const char *name;	/* of the file, for messages; NULL: anonymous memory */
};

/* Makes the buffer at least `need` bytes long; data may move. Fatal error if memory or the disk is too
 * small. */
void buffer_grow(struct buffer *b, size_t need);
void buffer_free(struct buffer *b);
#endif
