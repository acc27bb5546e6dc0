/* SPDX-License-Identifier: GPL-3.0-or-later */
/* descriptor.h -- descriptors that receive a result */
#ifndef IO_DESCRIPTOR_H
#define IO_DESCRIPTOR_H
#include <stdbool.h>

/* The descriptor that a path denotes: 1 for NULL and "-", N for /dev/fd/N and similar paths; -1 for other
 * paths. */
int descriptor_of(const char *path);
void descriptor_writable(int fd, const char *name);	/* fatal error if it is not open for writing */
/* Opens the file of a descriptor again, for reading and writing, since a shared mapping needs both. */
int descriptor_reopen(int fd, const char *name);
/* Whether a descriptor is a regular file at offset 0 that is not opened for appending. */
bool descriptor_starts_file(int fd);
#endif
