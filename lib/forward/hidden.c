/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hidden.c -- the hidden states of all windows; see hidden.h */
#include "forward/hidden.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/error.h"
#include "base/scratch.h"

static float *map_scratch(size_t bytes)
{
	int fd = scratch_file(), e;
	void *p;

	e = posix_fallocate(fd, 0, (off_t)bytes);	/* otherwise a full disk is a signal later */
	errno = e;
	if (e)
		die("%s: no room for %zu MiB of hidden states (--memory, TMPDIR):", scratch_folder(),
			bytes >> 20);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("%s: cannot map %zu MiB of hidden states:", scratch_folder(), bytes >> 20);
	close(fd);
	return p;
}

struct hidden hidden_make(size_t rows, size_t width, size_t limit)
{
	struct hidden h = { .rows = rows, .width = width };

	if (__builtin_mul_overflow(rows, width, &h.bytes) ||
	    __builtin_mul_overflow(h.bytes, sizeof *h.x, &h.bytes) || h.bytes > PTRDIFF_MAX)
		die("hidden states of %zu tokens are too large", rows);
	h.mapped = h.bytes > limit;
	h.x = h.mapped ? map_scratch(h.bytes) : xalloc(rows * width, sizeof *h.x);
	return h;
}

void hidden_free(struct hidden *h)
{
	if (h->mapped)
		munmap(h->x, h->bytes);
	else
		free(h->x);
	*h = (struct hidden){ 0 };
}
