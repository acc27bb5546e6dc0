/* SPDX-License-Identifier: GPL-3.0-or-later */
/* survive.c -- see survive.h */
#include <fcntl.h>
#include <jansson.h>
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/error.h"
#include "survive.h"

const char *program = "fuzz";
bool quiet = true, verbose, survive_thorough;

enum { MAX = 1 << 28 };	/* max bytes of one allocation: a larger one comes from an unchecked size */

static jmp_buf *back;
static void *blocks;		/* allocated blocks: a tree of addresses */
struct map { void *at; size_t n; };
static void *maps;
static int first_fd = -1;	/* the lowest free one at the beginning of the run */

void *__real_malloc(size_t n), *__real_realloc(void *p, size_t n), __real_free(void *p);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t n);
void *__real_mremap(void *at, size_t old, size_t n, int flags, ...);
void *__wrap_malloc(size_t n), *__wrap_calloc(size_t n, size_t size), *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t n);
void *__wrap_mremap(void *at, size_t old, size_t n, int flags, ...);

/* ---- replacements for error.c ---- */

static void leave(const char *fmt, va_list ap)
{
	if (verbose) {
		vfprintf(stderr, fmt, ap);
		fputc('\n', stderr);
	}
	if (!back)
		abort();
	longjmp(*back, 1);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	leave(fmt, ap);
	va_end(ap);
	__builtin_unreachable();
}

void misuse(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	leave(fmt, ap);
	va_end(ap);
	__builtin_unreachable();
}

void warn(const char *fmt, ...)
{
	(void)fmt;
}

void on_exit_cleanup(void (*fn)(void))
{
	(void)fn;
}

void catch_signals(void)
{
}

void clear_cleanups(void)
{
}

void ignore_signals(void)
{
}

char *plain_text(const char *text)
{
	return xformat("%s", text);
}

void *xalloc(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > MAX)
		die("an allocation of %zu x %zu bytes is too large", n, size);
	return __wrap_calloc(bytes ? bytes : 1, 1);
}

void *xgrow(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > MAX)
		die("an allocation of %zu x %zu bytes is too large", n, size);
	return __wrap_realloc(p, bytes ? bytes : 1);
}

/* Not recorded as allocated: some callers keep such a name from one call to the next. */
char *xformat(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	va_end(ap);
	return s;
}

/* ---- memory ---- */

static int by_address(const void *a, const void *b)
{
	return (a > b) - (a < b);
}

static int by_map(const void *a, const void *b)
{
	return by_address(((const struct map *)a)->at, ((const struct map *)b)->at);
}

static void *noted(void *p)
{
	if (p && back && !tsearch(p, &blocks, by_address))
		abort();
	return p;
}

void *__wrap_malloc(size_t n)
{
	return n > MAX ? NULL : noted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	size_t bytes;
	void *p = __builtin_mul_overflow(n, size, &bytes) ? NULL : __wrap_malloc(bytes);

	return p ? memset(p, 0, bytes) : NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
	if (n > MAX)
		return NULL;
	if (p)
		tdelete(p, &blocks, by_address);
	return noted(__real_realloc(p, n));
}

void __wrap_free(void *p)
{
	if (p)
		tdelete(p, &blocks, by_address);
	__real_free(p);
}

char *__wrap_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = __wrap_malloc(n);

	return p ? memcpy(p, s, n) : NULL;
}

static void *mapped(void *p, size_t n)
{
	struct map *m = __real_malloc(sizeof *m);

	if (p == MAP_FAILED || !m)
		return p;
	*m = (struct map){ p, n };
	tsearch(m, &maps, by_map);
	return p;
}

static void unmapped(void *at)
{
	struct map key = { at, 0 }, **found = tfind(&key, &maps, by_map), *m;

	if (!found)
		return;
	m = *found;
	tdelete(&key, &maps, by_map);
	__real_free(m);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return mapped(__real_mmap(at, n, prot, flags, fd, offset), n);
}

int __wrap_munmap(void *at, size_t n)
{
	unmapped(at);
	return __real_munmap(at, n);
}

void *__wrap_mremap(void *at, size_t old, size_t n, int flags, ...)
{
	void *p = __real_mremap(at, old, n, flags);

	if (p != MAP_FAILED)
		unmapped(at);
	return mapped(p, n);
}

static void unmap(void *arg)
{
	struct map *m = arg;

	__real_munmap(m->at, m->n);
	__real_free(m);
}

/* ---- runs ---- */

bool attempt(void (*run)(void *arg), void *arg)
{
	jmp_buf *outer = back, here;
	bool came_back = false;

	if (first_fd < 0) {
		json_set_alloc_funcs(__wrap_malloc, __wrap_free);
		first_fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
	}
	back = &here;
	if (!setjmp(here)) {
		run(arg);
		came_back = true;
	}
	back = outer;
	return came_back;
}

void survive_forget(void)
{
	tdestroy(blocks, __real_free);
	tdestroy(maps, unmap);
	blocks = maps = NULL;
	if (first_fd >= 0)
		close_range((unsigned)first_fd, ~0U, 0);
	first_fd = -1;
}

void survive_use(const void *data, size_t n)
{
	static unsigned char all;
	unsigned char sum = all;

	for (size_t i = 0; i < n; i++)
		sum ^= ((const unsigned char *)data)[i];
	__atomic_store_n(&all, sum, __ATOMIC_RELAXED);
}
