/* SPDX-License-Identifier: GPL-3.0-or-later */
/* buffer.c -- see buffer.h */
#include "io/buffer.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include "base/error.h"

/* Allocates the blocks of the file before it is mapped: a full disk is an error here, not a signal later. */
static size_t allocate(const struct buffer *b, size_t capacity, size_t need)
{
	int e = posix_fallocate(b->fd, 0, (off_t)capacity);

	if (e == ENOSPC || e == EFBIG) {	/* `need` alone may still fit */
		capacity = need;
		e = posix_fallocate(b->fd, 0, (off_t)capacity);
	}
	errno = e;
	if (e)
		die("%s: cannot write:", b->name);
	return capacity;
}

void buffer_grow(struct buffer *b, size_t need)
{
	const size_t step = 2 << 20, page = 4096;
	const int flags = b->name ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	size_t n = b->capacity;
	void *p;

	if (need <= n)
		return;
	if (need > SIZE_MAX / 2)
		die("an image of %zu bytes is too large", need);
	n = n + n / 4 > need ? n + n / 4 : need;
	n = (n + step - 1) & ~(step - 1);
	if (b->name)
		n = allocate(b, n, (need + page - 1) & ~(page - 1));
	p = b->data ? mremap(b->data, b->capacity, n, MREMAP_MAYMOVE) :
		mmap(NULL, n, PROT_READ | PROT_WRITE, flags, b->name ? b->fd : -1, 0);
	if (p == MAP_FAILED)
		die("cannot allocate %zu MiB for an HDF5 image:", n >> 20);
	if (!b->name)
		madvise(p, n, MADV_HUGEPAGE);
	b->data = p;
	b->capacity = n;
}

void buffer_free(struct buffer *b)
{
	if (b->data)
		munmap(b->data, b->capacity);
	*b = (struct buffer){ 0 };
}
