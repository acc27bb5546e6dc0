/* SPDX-License-Identifier: GPL-3.0-or-later */
/* text.c -- a file as one string; see text.h */
#include "io/text.h"
#include "base/error.h"
#include "io/file.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 1 << 16 };

static char *resized(const char *name, char *s, size_t n)
{
	char *t = realloc(s, n);

	if (!t)
		die("%s: out of memory", name);
	return t;
}

char *text_read(const char *path, size_t most, size_t *n)
{
	size_t have = 0, room = STEP;
	struct stat st;
	char *name, *s;
	int fd = file_open(path, &name);

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size > room)
		room = (size_t)st.st_size;
	if (room > most)
		room = most;
	s = resized(name, NULL, room + 1);
	for (;;) {
		ssize_t got = read(fd, s + have, room + 1 - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			die("%s: cannot read:", name);
		if (!got)
			break;
		have += (size_t)got;
		if (have > most)
			die("%s: is larger than %zu MiB", name, most >> 20);
		if (have > room) {
			room = room > most / 2 ? most : 2 * room;
			s = resized(name, s, room + 1);
		}
	}
	if (fd > 0)
		close(fd);
	free(name);
	s[have] = '\0';
	*n = have;
	return s;
}
