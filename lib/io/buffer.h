/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * buffer.h -- memory that grows without a copy of its pages (mremap): anonymous, or a file that grows with it
 */
#ifndef IO_BUFFER_H
#define IO_BUFFER_H
#include <stddef.h>

struct buffer {
	unsigned char *data;
	size_t capacity;	/* bytes that are mapped */
	int fd;			/* of the file */
	const char *name;	/* of the file, for messages; NULL: anonymous memory */
};

/* At least `need` bytes; data may move. Dies where memory or the disk is too small. */
void buffer_grow(struct buffer *b, size_t need);
void buffer_free(struct buffer *b);
#endif
