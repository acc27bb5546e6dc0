/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * replace.h -- a file that appears under its name when it is whole
 *
 * Until then it stands beside it under a temporary name, .ptq.XXXXXX, which is
 * removed however the program ends, but for SIGKILL.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

struct replace {
	char *path, *temporary;
	int fd;				/* of the temporary one, for reading and writing */
};

/*
 * Dies if no file could get this name: an empty one, a folder, one too long, in
 * a folder that does not exist or may not be written, one that is there and may
 * not be written. A symbolic link stays, and what it leads to is replaced.
 */
struct replace replace_open(const char *path);
void replace_sync(const struct replace *r);	/* the file is whole: brings it onto the disk */
void replace_done(struct replace *r);		/* and gives it its name; closes fd */
#endif
