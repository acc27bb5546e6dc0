/* SPDX-License-Identifier: GPL-3.0-or-later */
/* contents.c -- see contents.h */
#include "io/contents.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "io/descriptor.h"
#include "io/file.h"

enum { FIRST = 1 << 16 };	/* bytes of the first read if the size is unknown */

char *contents_read(const char *path, size_t max, size_t *n)
{
	size_t have = 0, capacity = FIRST;
	struct stat st;
	char *name, *s;
	int fd = file_open(path, &name);

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size > capacity)
		capacity = (size_t)st.st_size;
	if (capacity > max)
		capacity = max;
	s = xgrow(NULL, capacity + 1, 1);
	/* One byte more than `capacity` is read, to see whether the file continues. */
	while ((have += file_read(name, fd, s + have, capacity + 1 - have)) > capacity) {
		if (have > max)
			die("%s: is larger than %zu MiB", name, max >> 20);
		capacity = capacity > max / 2 ? max : 2 * capacity;
		s = xgrow(s, capacity + 1, 1);
	}
	if (fd > 0)
		close(fd);
	free(name);
	s[have] = '\0';
	*n = have;
	return s;
}

struct contents_output contents_create(const char *path)
{
	struct contents_output out = { .fd = descriptor_of(path), .name = path };
	struct stat st;

	if (out.fd >= 0) {
		out.name = out.fd == 1 ? "<stdout>" : path;
		descriptor_writable(out.fd, out.name);
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		out.fd = open(path, O_WRONLY | O_CLOEXEC);
		if (out.fd < 0)
			die("%s: cannot open:", path);
	} else {
		out.named = replace_open(path);
		out.fd = out.named.fd;
	}
	return out;
}

void contents_write(struct contents_output *out, size_t n, const char *text)
{
	const char *kind = out->named.path ? file_input_kind(out->named.path) : NULL;

	if (kind || (!out->named.path && file_is_input(out->fd)))
		die("%s: is an input, the text would destroy it", out->name);
	file_check();
	file_write(out->name, out->fd, text, n);
	if (out->named.path)
		replace_sync(&out->named);
	ignore_signals();
	if (out->named.path)
		replace_done(&out->named);
	else if (close(out->fd))
		die("%s: cannot close:", out->name);
}
