/* SPDX-License-Identifier: GPL-3.0-or-later */
/* replace.c -- see replace.h */
#include "base/replace.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/unfinished.h"

enum { LINKS_MAX = 40 };

/* The path of `name` in the folder of `path`; free() it. */
static char *sibling(const char *path, const char *name)
{
	char *copy = xformat("%s", path), *y = xformat("%s/%s", dirname(copy), name);

	free(copy);
	return y;
}

/* The path that symbolic links lead to, whether or not it exists; free() it. */
static char *follow(const char *path)
{
	char *at = xformat("%s", path), to[PATH_MAX];
	ssize_t n;

	for (int i = 0; (n = readlink(at, to, sizeof to - 1)) >= 0; i++) {
		char *next;

		to[n] = 0;
		errno = ELOOP;
		if (i == LINKS_MAX)
			die("%s: cannot write:", path);
		next = *to == '/' ? xformat("%s", to) : sibling(at, to);
		free(at);
		at = next;
	}
	return at;
}

/* The target of the path after symbolic links; *there: whether it exists, *st: its stat(). Fatal error if no
 * file can be written there. */
static char *target_of(const char *path, struct stat *st, bool *there)
{
	const size_t n = strlen(path);
	char *target;

	if (n && path[n - 1] == '/')
		die("%s: names a folder, expected a file", path);
	target = follow(path);
	*there = !stat(target, st);
	if (!*there && errno != ENOENT)
		die("%s: cannot write:", path);
	if (*there && S_ISDIR(st->st_mode))
		die("%s: is a folder, expected the name of a file", path);
	if (*there && !S_ISREG(st->st_mode))
		die("%s: is not a regular file, expected the name of one", path);
	if (*there && access(target, W_OK))
		die("%s: cannot write:", path);
	return target;
}

void replace_check(const char *path)
{
	struct stat st;
	bool there;

	free(target_of(path, &st, &there));
}

bool replace_same(const char *a, const char *b)
{
	char *at[2] = { follow(a), follow(b) };
	struct stat folder[2], st[2];
	bool there = true, same = true;

	for (int i = 0; i < 2; i++) {
		char *here = sibling(at[i], ".");

		there &= !stat(at[i], &st[i]);
		same &= !stat(here, &folder[i]);
		free(here);
	}
	if (there)
		same = st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
	else
		same = same && folder[0].st_dev == folder[1].st_dev && folder[0].st_ino == folder[1].st_ino &&
			!strcmp(basename(at[0]), basename(at[1]));
	free(at[0]), free(at[1]);
	return same;
}

struct replace replace_open(const char *path)
{
	struct replace r = { 0 };
	struct stat st;
	bool there;
	mode_t mask;

	r.path = target_of(path, &st, &there);
	r.temporary = sibling(r.path, ".ptq.XXXXXX");
	r.fd = unfinished_temporary(r.temporary);
	if (r.fd < 0)
		die("%s: cannot create a file in its folder:", path);
	mask = umask(0);
	umask(mask);
	if (fchmod(r.fd, there ? st.st_mode & 07777 : 0666 & ~mask))
		die("%s: cannot set its mode:", r.temporary);
	return r;
}

void replace_sync(const struct replace *r)
{
	if (fsync(r->fd))
		die("%s: cannot sync:", r->path);
}

/* It allocates nothing: after the file has its name, the tool must not fail. */
void replace_sync_folder(const char *path)
{
	char copy[PATH_MAX];
	int fd = -1;

	if (strlen(path) < sizeof copy)
		fd = open(dirname(strcpy(copy, path)), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);	/* not every file system can sync a folder */
		close(fd);
	}
}

void replace_done(struct replace *r)
{
	if (rename(r->temporary, r->path))
		die("%s: cannot replace:", r->path);
	unfinished_done(r->temporary);
	replace_sync_folder(r->path);
	if (close(r->fd))
		die("%s: cannot close:", r->path);
	free(r->path);
	free(r->temporary);
	*r = (struct replace){ 0 };
}
