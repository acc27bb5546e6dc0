/* SPDX-License-Identifier: GPL-3.0-or-later */
/* descriptor.c -- see descriptor.h */
#include "io/descriptor.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/number.h"
#include "base/standard.h"

int descriptor_of(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	static const char *const names[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	size_t fd;

	if (!path || !strcmp(path, "-"))
		return 1;
	for (int i = 0; i < 3; i++)
		if (!strcmp(path, names[i]))
			return i;
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(folders[i]);
		const char *end = strncmp(path, folders[i], n) ? NULL : number_size(path + n, &fd);

		if (end && !*end && fd <= INT_MAX)
			return (int)fd;
	}
	return -1;
}

int descriptor_reopen(int fd, const char *name)
{
	char *path = xformat("/proc/self/fd/%d", fd);
	int again = open(path, O_RDWR | O_CLOEXEC);

	if (again < 0)
		die("%s: cannot be opened for reading and writing; use -o FILE:", name);
	free(path);
	return again;
}

bool descriptor_starts_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !(fcntl(fd, F_GETFL) & O_APPEND) &&
		lseek(fd, 0, SEEK_CUR) == 0;
}

void descriptor_writable(int fd, const char *name)
{
	int flags = fcntl(fd, F_GETFL);

	if (standard_closed(fd) || (flags < 0 && errno == EBADF))
		die("%s: is closed", name);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		die("%s: is open for reading only", name);
}
