/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * folder.h -- a folder of files that appears under its name when it is whole
 *
 * Until then it has a temporary name, .ptq.XXXXXX, beside it, and is removed with what is in it however the
 * program ends, except by SIGKILL.
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

/* Dies if no folder could get this name: something that is no empty folder has it, or the folder that it is
 * to be in does not exist or may not be written. */
struct folder folder_open(const char *path);
/* Whether both are names of one place of a folder that exists, be anything there or not. */
bool folder_same(const char *a, const char *b);
/* A new file, for reading and writing; its name is one word. */
int folder_create(struct folder *d, const char *name);
/* A file gets another name, before folder_done(). */
void folder_rename(struct folder *d, const char *name, const char *to);
/* A whole file from a text. */
void folder_write(struct folder *d, const char *name, size_t n, const char *text);
void folder_done(struct folder *d);		/* gives it its name */
#endif
