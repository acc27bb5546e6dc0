/* SPDX-License-Identifier: GPL-3.0-or-later */
/* text.c -- a file as one string; see text.h */
#include "io/text.h"
#include "base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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
	bool standard = !path || !strcmp(path, "-");
	const char *name = standard ? "<stdin>" : path;
	int fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0, room = STEP;
	struct stat st;
	char *s;

	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open:", name);
	if (S_ISDIR(st.st_mode))
		die("%s: is a folder, a file was wanted", name);
	if (S_ISREG(st.st_mode) && (size_t)st.st_size > room)
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
	if (!standard)
		close(fd);
	s[have] = '\0';
	*n = have;
	return s;
}
