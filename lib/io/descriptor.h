/* SPDX-License-Identifier: GPL-3.0-or-later */
/* descriptor.h -- open descriptors that a result goes to */
#ifndef IO_DESCRIPTOR_H
#define IO_DESCRIPTOR_H
#include <stdbool.h>

/* The descriptor that a path stands for: 1 for NULL and "-"; -1 for the name of a file. */
int descriptor_of(const char *path);
void descriptor_writable(int fd, const char *name);	/* dies if it cannot be written */
/* Opens the file of a descriptor for reading too, as a mapping needs it. */
int descriptor_again(int fd, const char *name);
/* Whether a descriptor is of a regular file that will be written from its start, and not appended to. */
bool descriptor_starts_file(int fd);
#endif
