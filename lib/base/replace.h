/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * replace.h -- an output file that gets its name when it is complete
 *
 *	struct replace r = replace_open("model.h5");
 *	... write(r.fd) ...
 *	replace_sync(&r);
 *	replace_done(&r);
 *
 * Until replace_done() it has a temporary name, .ptq.XXXXXX, in the same folder. If the program ends before,
 * the file is removed, except after SIGKILL. Failures are fatal errors.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H
#include <stdbool.h>

struct replace {
	char *path, *temporary;
	int fd;				/* of the temporary file, for reading and writing */
};

/*
 * Fatal error if the path is empty, too long, or that of a folder, a device or a
 * pipe, if a file of this path is not writable, or if its folder does not exist
 * or is not writable. If the path is a symbolic link, its target is replaced.
 */
struct replace replace_open(const char *path);
/* The checks of replace_open() except those of the folder, for a result that is written later. */
void replace_check(const char *path);
/* Whether both paths lead to the same file. The file need not exist. */
bool replace_same(const char *a, const char *b);
/* Writes the folder of the path, which has the name of the file, to the disk. */
void replace_sync_folder(const char *path);
void replace_sync(const struct replace *r);	/* writes the complete file to the disk */
void replace_done(struct replace *r);		/* renames it to its final name; closes fd */
#endif
