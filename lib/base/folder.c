/* SPDX-License-Identifier: GPL-3.0-or-later */
/* folder.c -- see folder.h */
#include "base/folder.h"
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/replace.h"
#include "base/unfinished.h"

/* Whether a folder can be renamed to this path: it does not exist or is an empty folder, and is not "." or
 * "..".
 */
static bool is_free(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct stat st;
	DIR *d;
	size_t n = 0;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	if (lstat(path, &st)) {
		if (errno != ENOENT)
			die("%s: cannot create a folder:", path);
		return true;
	}
	d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	if (!d)
		return false;
	while (readdir(d))
		n++;
	closedir(d);
	return n <= 2;		/* itself and its parent */
}

/* The path without trailing slashes; free() it. */
static char *plain_path(const char *path)
{
	char *y = xformat("%s", path);
	size_t n = strlen(y);

	while (n > 1 && y[n - 1] == '/')
		y[--n] = 0;
	return y;
}

/* stat() of the parent folder; false if it does not exist. */
static bool stat_parent(const char *path, struct stat *st)
{
	char *copy = xformat("%s", path);
	const bool there = !stat(dirname(copy), st);

	free(copy);
	return there;
}

bool folder_same(const char *a, const char *b)
{
	struct stat s, t;
	char *x = xformat("%s", a), *y = xformat("%s", b);
	const bool same = stat_parent(a, &s) && stat_parent(b, &t) && s.st_dev == t.st_dev &&
		s.st_ino == t.st_ino && !strcmp(basename(x), basename(y));

	free(x);
	free(y);
	return same;
}

struct folder folder_open(const char *path)
{
	struct folder d = { .path = plain_path(path) };
	char *copy = xformat("%s", d.path);
	mode_t mask;

	if (!is_free(d.path))
		die("%s: exists already, expected a new or an empty folder", path);
	d.temporary = xformat("%s/.ptq.XXXXXX", dirname(copy));
	free(copy);
	if (!unfinished_folder(d.temporary))
		die("%s: cannot create a folder:", path);
	mask = umask(0);
	umask(mask);
	if (chmod(d.temporary, 0777 & ~mask))
		die("%s: cannot set its mode:", d.temporary);
	return d;
}

int folder_create(struct folder *d, const char *name)
{
	char *path = xformat("%s/%s", d->temporary, name);
	int fd = unfinished_create(path);

	if (fd < 0)
		die("%s/%s: cannot create:", d->path, name);
	free(path);
	return fd;
}

void folder_rename(struct folder *d, const char *name, const char *to)
{
	char *from = xformat("%s/%s", d->temporary, name), *path = xformat("%s/%s", d->temporary, to);

	if (!unfinished_rename(from, path))
		die("%s/%s: cannot rename:", d->path, name);
	free(from);
	free(path);
}

void folder_write(struct folder *d, const char *name, size_t n, const char *text)
{
	int fd = folder_create(d, name);

	for (size_t at = 0; at < n; ) {
		ssize_t wrote = write(fd, text + at, n - at);

		if (wrote < 0 && errno != EINTR)
			die("%s/%s: cannot write:", d->path, name);
		at += wrote > 0 ? (size_t)wrote : 0;
	}
	if (fsync(fd) || close(fd))
		die("%s/%s: cannot write:", d->path, name);
}

void folder_done(struct folder *d)
{
	char *inside = xformat("%s/.", d->temporary);

	replace_sync_folder(inside);
	if (rename(d->temporary, d->path))
		die("%s: cannot rename the folder:", d->path);
	unfinished_done(d->temporary);
	replace_sync_folder(d->path);
	free(inside);
	free(d->path);
	free(d->temporary);
	*d = (struct folder){ 0 };
}
