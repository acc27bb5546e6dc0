/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * replace.h -- a file that appears under its name when it is whole
 *
 * Until then it has a temporary name, .ptq.XXXXXX, in the same folder, and is
 * removed however the program ends, except by SIGKILL.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H
#include <stdbool.h>

struct replace {
	char *path, *temporary;
	int fd;				/* of the temporary one, for reading and writing */
};

/*
 * Dies if no file could get this name: it is empty, too long or that of a
 * folder, a device or a pipe, its folder does not exist or may not be written,
 * or a file of this name may not be written. Of a symbolic link, what it leads
 * to is replaced.
 */
struct replace replace_open(const char *path);
/* Dies where replace_open() would, but for the folder: for a result that is written later. */
void replace_check(const char *path);
/* Whether both paths lead to the same file, which need not exist. */
bool replace_same(const char *a, const char *b);
/* Writes the name of a file, which is in its folder, to the disk. */
void replace_sync_folder(const char *path);
void replace_sync(const struct replace *r);	/* writes the file, which is whole, to the disk */
void replace_done(struct replace *r);		/* gives it its name; closes fd */
#endif
