/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unfinished.c -- see unfinished.h */
#include "base/unfinished.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"

/* The newest entry is first, so that the files of a folder precede it. A signal handler reads the list, so an
 * entry is added by one store. */
struct entry {
	char *path;
	struct entry *next;
};
static struct entry *volatile entries;

/* A renamed file has two entries, so that an absent file is no error. */
static void remove_all(void)
{
	for (struct entry *e = entries; e; e = e->next)
		if (unlink(e->path))
			rmdir(e->path);
}

/* Allocates an entry, before the file is created. */
static struct entry *prepare(const char *path)
{
	static bool asked;
	struct entry *e = xalloc(1, sizeof *e);

	if (!asked)
		on_exit_cleanup(remove_all);
	asked = true;
	*e = (struct entry){ xformat("%s", path), NULL };
	return e;
}

static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

/* Adds the entry with this path if the file was made, and restores the signal mask. Keeps errno. */
static void add(struct entry *e, const char *path, bool made, const sigset_t *before)
{
	const int why = errno;

	if (made) {
		strcpy(e->path, path);		/* as long as the template */
		e->next = entries;
		entries = e;
	}
	pthread_sigmask(SIG_SETMASK, before, NULL);
	if (!made) {
		free(e->path);
		free(e);
	}
	errno = why;
}

int unfinished_temporary(char *template)
{
	struct entry *e = prepare(template);
	sigset_t before;
	int fd;

	block_signals(&before);
	fd = mkostemp(template, O_CLOEXEC);
	add(e, template, fd >= 0, &before);
	return fd;
}

int unfinished_create(const char *path)
{
	struct entry *e = prepare(path);
	sigset_t before;
	int fd;

	block_signals(&before);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	add(e, path, fd >= 0, &before);
	return fd;
}

bool unfinished_folder(char *template)
{
	struct entry *e = prepare(template);
	sigset_t before;
	bool made;

	block_signals(&before);
	made = mkdtemp(template);
	add(e, template, made, &before);
	return made;
}

bool unfinished_rename(const char *from, const char *to)
{
	struct entry *e = prepare(to);
	sigset_t before;
	bool done;

	block_signals(&before);
	done = !rename(from, to);
	add(e, to, done, &before);
	return done;
}

void unfinished_done(const char *path)
{
	const size_t n = strlen(path);
	struct entry *kept = NULL, **end = &kept;
	sigset_t before;

	block_signals(&before);
	for (struct entry *e = entries, *next; e; e = next) {
		next = e->next;
		if (!strncmp(e->path, path, n) && (!e->path[n] || e->path[n] == '/')) {
			free(e->path);
			free(e);
			continue;
		}
		*end = e;
		end = &e->next;
	}
	*end = NULL;
	entries = kept;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
