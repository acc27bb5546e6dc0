/* SPDX-License-Identifier: GPL-3.0-or-later */
/* file.c -- see file.h */
#include "io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/standard.h"

enum {
	INPUTS = 4096,	/* recorded inputs: more than the shards of a model or the inputs of a sum */
	KIND = 16,	/* bytes of ptq_kind */
	STEP = 1 << 20	/* bytes per read() or write() */
};

/* An input at the time it was opened. */
static struct known_input { struct stat st; char *path, kind[KIND]; } input[INPUTS];
static size_t inputs;
static const char *pipe_name;

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static struct known_input *find_input(const struct stat *st)
{
	for (size_t i = 0; i < inputs && i < INPUTS; i++)
		if (is_same(&input[i].st, st))
			return &input[i];
	return NULL;
}

static struct known_input *find_open(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? NULL : find_input(&st);
}

bool file_is_input(int fd)
{
	return find_open(fd) != NULL;
}

const char *file_input_kind(const char *path)
{
	struct stat st;
	const struct known_input *i = stat(path, &st) ? NULL : find_input(&st);

	return i ? i->kind : NULL;
}

void file_kind(int fd, const char *kind)
{
	struct known_input *i = find_open(fd);

	if (i)
		snprintf(i->kind, KIND, "%s", kind);
}

const char *file_input(size_t i, const char **kind)
{
	if (i >= inputs || i >= INPUTS)
		return NULL;
	*kind = input[i].kind;
	return input[i].path;
}

const char *file_pipe(void)
{
	return pipe_name;
}

static const struct known_input *find_path(const char *path)
{
	for (size_t i = 0; i < inputs && i < INPUTS; i++)
		if (!strcmp(input[i].path, path))
			return &input[i];
	return NULL;
}

void file_drop(void *piece, size_t n)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)piece / page * page;

	madvise((void *)from, (uintptr_t)piece + n - from, MADV_DONTNEED);
}

char *file_digest(const char *path)
{
	const struct known_input *i = find_path(path);
	struct stat st;
	void *p;
	char *y;
	int fd;

	if (!i)
		return NULL;
	fd = open(strcmp(path, "<stdin>") ? path : "/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open:", path);
	if (!is_same(&i->st, &st))
		die("%s: was replaced while it was read", path);
	if (!st.st_size)
		die("%s: is empty", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die("%s: cannot map %zu bytes:", path, (size_t)st.st_size);
	y = digest_pieces((size_t)st.st_size, p, file_drop);
	munmap(p, (size_t)st.st_size);
	close(fd);
	return y;
}

/* Exits if standard error is the input, since messages would be written into it. The message of this error
 * would be, too, so the exit status is the only sign of it. */
static void check_error_output(const struct stat *st, const char *path)
{
	struct stat error;

	if (fstat(2, &error) || !is_same(&error, st) || (fcntl(2, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return;
	close(2);
	if (open("/", O_RDONLY | O_DIRECTORY) == 2)
		die("%s: is where messages go", path);
	_exit(1);
}

void file_note(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return;
	if (!S_ISREG(st.st_mode)) {
		if (!pipe_name)
			pipe_name = xformat("%s", path);
		return;
	}
	check_error_output(&st, path);
	if (find_input(&st))
		return;
	input[inputs++ % INPUTS] = (struct known_input){ st, xformat("%s", path), "" };
}

void file_check(void)
{
	for (size_t i = 0; i < inputs && i < INPUTS; i++) {
		const struct known_input *x = &input[i];
		struct stat st;

		/* if another file now has this name, the opened file is unchanged */
		if ((!strcmp(x->path, "<stdin>") ? fstat(0, &st) : stat(x->path, &st)) ||
		    !is_same(&x->st, &st))
			continue;
		if (st.st_size != x->st.st_size || st.st_mtim.tv_sec != x->st.st_mtim.tv_sec ||
		    st.st_mtim.tv_nsec != x->st.st_mtim.tv_nsec)
			die("%s: was changed while it was read", x->path);
	}
}

static int standard_input(void)
{
	static bool taken;

	if (taken)
		misuse("standard input is named twice and can be read once; name a file for one of them");
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

	*name = xformat("%s", standard ? "<stdin>" : *path ? path : "''");
	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open:", *name);
	if (S_ISDIR(st.st_mode))
		die("%s: is a folder, expected a file", *name);
	file_note(fd, *name);
	return fd;
}

size_t file_read(const char *name, int fd, void *to, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)to + got, n - got < STEP ? n - got : STEP);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			die("%s: cannot read:", name);
		if (!r)
			break;
		got += (size_t)r;
	}
	return got;
}

void file_write(const char *name, int fd, const void *from, size_t n)
{
	for (size_t put = 0; put < n;) {
		ssize_t w = write(fd, (const char *)from + put, n - put < STEP ? n - put : STEP);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			die("%s: cannot write:", name);
		put += (size_t)w;
	}
}
