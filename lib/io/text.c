/* SPDX-License-Identifier: GPL-3.0-or-later */
/* text.c -- a file as one string; see text.h */
#include "io/text.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "io/file.h"

enum { FIRST = 1 << 16 };	/* bytes that are asked for where the size is not known */

char *text_read(const char *path, size_t most, size_t *n)
{
	size_t have = 0, capacity = FIRST;
	struct stat st;
	char *name, *s;
	int fd = file_open(path, &name);

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size > capacity)
		capacity = (size_t)st.st_size;
	if (capacity > most)
		capacity = most;
	s = xgrow(NULL, capacity + 1, 1);
	/* One byte more than fits is read, to tell a file that ends here from one that goes on. */
	while ((have += file_read(name, fd, s + have, capacity + 1 - have)) > capacity) {
		if (have > most)
			die("%s: is larger than %zu MiB", name, most >> 20);
		capacity = capacity > most / 2 ? most : 2 * capacity;
		s = xgrow(s, capacity + 1, 1);
	}
	if (fd > 0)
		close(fd);
	free(name);
	s[have] = '\0';
	*n = have;
	return s;
}
