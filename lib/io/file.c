/* SPDX-License-Identifier: GPL-3.0-or-later */
/* file.c -- see file.h */
#include "io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/standard.h"

enum { MOST = 4096 };		/* more than shards of a model, or parts of a sum */

static struct { dev_t device; ino_t inode; } input[MOST];
static size_t inputs;

bool file_is_input(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (size_t i = 0; i < inputs && i < MOST; i++)
		if (input[i].device == st.st_dev && input[i].inode == st.st_ino)
			return true;
	return false;
}

void file_note(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || file_is_input(fd))
		return;
	input[inputs % MOST].device = st.st_dev;
	input[inputs++ % MOST].inode = st.st_ino;
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
	file_note(fd);
	return fd;
}
