/* SPDX-License-Identifier: GPL-3.0-or-later */
/* folder.c -- see folder.h */
#include "base/folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/replace.h"

/* What is to be removed, the folder behind its files. A signal handler reads it: it grows by one store. */
struct unfinished {
	char *path;
	bool folder;
	struct unfinished *next;
};
static struct unfinished *volatile unfinished;

static void remove_unfinished(void)
{
	for (struct unfinished *u = unfinished; u; u = u->next)
		if (u->folder)
			rmdir(u->path);
		else
			unlink(u->path);
}

static void remember(char *path, bool folder)
{
	struct unfinished *u = xalloc(1, sizeof *u);

	*u = (struct unfinished){ path, folder, unfinished };
	unfinished = u;
}

/* No signal comes between a file and its name in the list. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

/* Forgets the folder of this path and its files. */
static void forget(const char *path)
{
	struct unfinished *kept = NULL, **end = &kept;
	sigset_t before;

	block_signals(&before);
	for (struct unfinished *u = unfinished, *next; u; u = next) {
		next = u->next;
		if (strncmp(u->path, path, strlen(path))) {
			*end = u;
			end = &u->next;
			continue;
		}
		free(u->path);
		free(u);
	}
	*end = NULL;
	unfinished = kept;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Whether a folder of this name can take the place of what is there. */
static bool is_free(const char *path)
{
	struct stat st;
	DIR *d;
	size_t n = 0;

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

/* Without slashes at its end; free() it. */
static char *plain_path(const char *path)
{
	char *y = xformat("%s", path);
	size_t n = strlen(y);

	while (n > 1 && y[n - 1] == '/')
		y[--n] = 0;
	return y;
}

/* The folder that it is in; whether that exists. */
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
	sigset_t before;
	mode_t mask;
	char *made;

	if (!is_free(d.path))
		die("%s: is there already, expected the name of a new folder", path);
	d.temporary = xformat("%s/.ptq.XXXXXX", dirname(copy));
	free(copy);
	at_stop(remove_unfinished);
	block_signals(&before);
	made = mkdtemp(d.temporary);
	if (made)
		remember(xformat("%s", d.temporary), true);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!made)
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
	sigset_t before;
	int fd;

	block_signals(&before);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0)
		remember(path, false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (fd < 0)
		die("%s/%s: cannot create:", d->path, name);
	return fd;
}

void folder_rename(struct folder *d, const char *name, const char *to)
{
	char *from = xformat("%s/%s", d->temporary, name), *path = xformat("%s/%s", d->temporary, to);
	sigset_t before;
	int failed;

	block_signals(&before);
	failed = rename(from, path);
	remember(path, false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		die("%s/%s: cannot rename:", d->path, name);
	free(from);
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
	forget(d->temporary);
	replace_sync_folder(d->path);
	free(inside);
	free(d->path);
	free(d->temporary);
	*d = (struct folder){ 0 };
}
