/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memory.c -- see memory.h */
#include "base/memory.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "base/error.h"

/* Each call keeps its block mapped until the calls after it have returned. */
static bool fits(size_t n, size_t bytes)
{
	void *p = n ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	bool all;

	if (p == MAP_FAILED)
		return false;
	all = !n || fits(n - 1, bytes);
	if (p)
		munmap(p, bytes);
	return all;
}

void memory_check(size_t n, size_t bytes, const char *whose)
{
	if (fits(n, bytes))
		return;
	errno = ENOMEM;
	die("%s needs %zu times %zu MiB of address space "
		"(ulimit -v; fewer with -j 1 and OPENBLAS_NUM_THREADS=1):", whose, n, bytes >> 20);
}

enum { STACK = 4 << 20 };

__attribute__((noinline))
static void grow(void)
{
	volatile char bottom[STACK];

	bottom[0] = 0;
	(void)bottom[0];
}

void memory_stack(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < STACK / 2 * 3)
		die("%d KiB of stack are needed, the limit is %lu (ulimit -s)", STACK / 2 * 3 >> 10,
			(unsigned long)limit.rlim_cur >> 10);
	memory_check(1, STACK + STACK / 2, "the stack");
	grow();
}
