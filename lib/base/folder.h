/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * folder.h -- an output folder that gets its name when it is complete
 *
 * Until then it has a temporary name, .ptq.XXXXXX, in the same parent folder. If the program ends before
 * folder_done(), the folder and its files are removed, except after SIGKILL. Failures are fatal errors.
 *
 *	struct folder d = folder_open("model");
 *	int fd = folder_create(&d, "config.json");
 *	... write(fd), fsync(fd), close(fd) ...
 *	folder_done(&d);
 */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H
#include <stdbool.h>
#include <stddef.h>

struct folder {
	char *path, *temporary;
};

/* Fatal error if the path exists and is not an empty folder, or if the parent folder does not exist or is not
 * writable. */
struct folder folder_open(const char *path);
/* Whether both paths have the same last component in the same existing parent folder. The paths themselves
 * need not exist. */
bool folder_same(const char *a, const char *b);
/* A new file, open for reading and writing. name: without slashes. */
int folder_create(struct folder *d, const char *name);
/* Renames a file, before folder_done(). */
void folder_rename(struct folder *d, const char *name, const char *to);
/* Creates a file with this text, written to the disk. */
void folder_write(struct folder *d, const char *name, size_t n, const char *text);
void folder_done(struct folder *d);		/* renames the folder to its final name */
#endif
