/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shim.c -- LD_PRELOAD: one call of one function of the C library fails
 *
 * PTQ_FAIL is the name of the function. PTQ_FAIL_AT is the number of the call that fails, from 1, counted in
 * all threads, from the program's first instruction, with libraries. PTQ_FAIL_MARK is a file that is created
 * at the failure; it contains the caller, the program or a library. Writes to standard error do not count, so
 * that a message can be printed. PTQ_FAIL_TRAP stops a debugger at the failure.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static char environment[1 << 17];
static long at = -1, calls;

/* Not getenv(): some calls come before the C library has set environ. */
static const char *variable(const char *name)
{
	size_t n = strlen(name);

	for (const char *e = environment; *e; e += strlen(e) + 1)
		if (!strncmp(e, name, n) && e[n] == '=')
			return e + n + 1;
	return NULL;
}

static void init(void)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY);
	size_t n = 0;

	for (long got; (got = syscall(SYS_read, fd, environment + n, sizeof environment - 2 - n)) > 0;)
		n += (size_t)got;
	syscall(SYS_close, fd);
	at = variable("PTQ_FAIL") && variable("PTQ_FAIL_AT") ? atol(variable("PTQ_FAIL_AT")) : 0;
}

/* The first caller on the stack that is neither in this file nor in the C library. */
static _Unwind_Reason_Code find_caller(struct _Unwind_Context *context, void *arg)
{
	Dl_info here, there;
	const char **name = arg;

	if (!dladdr((void *)(uintptr_t)_Unwind_GetIP(context), &there) ||
		!dladdr((void *)(uintptr_t)find_caller, &here) || there.dli_fbase == here.dli_fbase ||
		strstr(there.dli_fname, "libc.so"))
		return _URC_NO_REASON;
	*name = strrchr(there.dli_fname, '/') ? strrchr(there.dli_fname, '/') + 1 : there.dli_fname;
	return _URC_NORMAL_STOP;
}

static void make_mark(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
	const char *who = "?";

	_Unwind_Backtrace(find_caller, &who);
	syscall(SYS_write, fd, who, strlen(who));
	syscall(SYS_close, fd);
}

void shim_end(void);

/* After this no call fails: tests/coverage.h. */
void shim_end(void)
{
	at = 0;
}

/* Whether this call of `name` must fail; malloc represents its variants. */
static bool fails(const char *name, int error)
{
	const char *mark;

	if (at < 0)
		init();
	if (!at || strcmp(name, variable("PTQ_FAIL")) ||
		__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != at)
		return false;
	mark = variable("PTQ_FAIL_MARK");
	if (mark)
		make_mark(mark);
	if (variable("PTQ_FAIL_TRAP"))
		raise(SIGTRAP);
	errno = error;
	return true;
}

static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

void *malloc(size_t n)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_realloc(p, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	*p = fails("malloc", ENOMEM) ? NULL : __libc_memalign(align, n);
	return *p ? 0 : ENOMEM;
}

void *mmap(void *where, size_t n, int prot, int flags, int fd, off_t offset)
{
	return fails("mmap", ENOMEM) ? MAP_FAILED :
		(void *)syscall(SYS_mmap, where, n, prot, flags, fd, offset);
}

void *mmap64(void *where, size_t n, int prot, int flags, int fd, off_t offset) __attribute__((alias("mmap")));

void *mremap(void *old, size_t size, size_t n, int flags, ...)
{
	return fails("mmap", ENOMEM) ? MAP_FAILED : (void *)syscall(SYS_mremap, old, size, n, flags, NULL);
}

ssize_t write(int fd, const void *from, size_t n)
{
	return fd != 2 && fails("write", ENOSPC) ? -1 : syscall(SYS_write, fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t offset)
{
	return fails("write", ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, from, n, offset);
}

ssize_t read(int fd, void *to, size_t n)
{
	return fails("read", EIO) ? -1 : syscall(SYS_read, fd, to, n);
}

int fsync(int fd)
{
	return fails("fsync", EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t n)
{
	return fails("ftruncate", EIO) ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

int rename(const char *from, const char *to)
{
	return fails("rename", EACCES) ? -1 : ((int (*)(const char *, const char *))next("rename"))(from, to);
}

int posix_fallocate(int fd, off_t offset, off_t n)
{
	return fails("posix_fallocate", ENOSPC) ? ENOSPC :
		((int (*)(int, off_t, off_t))next("posix_fallocate"))(fd, offset, n);
}

pid_t fork(void)
{
	return fails("fork", EAGAIN) ? -1 : ((pid_t (*)(void))next("fork"))();
}
