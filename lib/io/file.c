/* SPDX-License-Identifier: GPL-3.0-or-later */
/* file.c -- see file.h */
#include "io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/standard.h"

enum { MOST = 4096, KIND = 16 };	/* more than shards of a model, or parts of a sum */

static struct input {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	char *path, kind[KIND];
} input[MOST];
static size_t inputs;

static bool is(const struct input *i, const struct stat *st)
{
	return i->device == st->st_dev && i->inode == st->st_ino;
}

static struct input *find(const struct stat *st)
{
	for (size_t i = 0; i < inputs && i < MOST; i++)
		if (is(&input[i], st))
			return &input[i];
	return NULL;
}

static struct input *find_open(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? NULL : find(&st);
}

bool file_is_input(int fd)
{
	return find_open(fd) != NULL;
}

const char *file_input_kind(const char *path)
{
	struct stat st;
	const struct input *i = stat(path, &st) ? NULL : find(&st);

	return i ? i->kind : NULL;
}

void file_kind(int fd, const char *kind)
{
	struct input *i = find_open(fd);

	if (i)
		snprintf(i->kind, KIND, "%s", kind);
}

/* Messages would be written into the input: nobody hears of it but by the status. */
static void check_error_output(const struct stat *st, const char *path)
{
	struct stat error;

	if (fstat(2, &error) || error.st_dev != st->st_dev || error.st_ino != st->st_ino || (fcntl(2, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return;
	close(2);
	if (open("/", O_RDONLY | O_DIRECTORY) == 2)
		die("%s: is where messages go", path);
	_exit(1);
}

void file_note(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	check_error_output(&st, path);
	if (find(&st))
		return;
	input[inputs++ % MOST] = (struct input){ st.st_dev, st.st_ino, st.st_size, st.st_mtim, xformat("%s", path), "" };
}

void file_check(void)
{
	for (size_t i = 0; i < inputs && i < MOST; i++) {
		const struct input *x = &input[i];
		struct stat st;

		/* another file by its name is another file: ours stays what it was */
		if ((!strcmp(x->path, "<stdin>") ? fstat(0, &st) : stat(x->path, &st)) || !is(x, &st))
			continue;
		if (st.st_size != x->size || st.st_mtim.tv_sec != x->changed.tv_sec || st.st_mtim.tv_nsec != x->changed.tv_nsec)
			die("%s: was changed while it was read", x->path);
	}
}

static int standard_input(void)
{
	static bool taken;

	if (taken)
		misuse("standard input is wanted twice and can be read only once; name a file for one of the two");
	taken = true;
	if (standard_closed(0))
		die("<stdin>: is closed");
	return 0;
}

int file_open(const char *path, char **name)
{
	bool standard = !path || !strcmp(path, "-");
	int fd = standard ? standard_input() : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	*name = xformat("%s", standard ? "<stdin>" : path);
	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open:", *name);
	if (S_ISDIR(st.st_mode))
		die("%s: is a folder, a file was wanted", *name);
	file_note(fd, *name);
	return fd;
}
