/* SPDX-License-Identifier: GPL-3.0-or-later */
/* error.c -- see error.h */
#include "base/error.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/progress.h"

const char *program = "ptqtools";
bool quiet, verbose;

enum { CLEANUPS = 4, ALIGN = 64, HUGE_PAGE = 2 << 20 };
static void (*cleanup[CLEANUPS])(void);
static int cleanups;
/* ENDING: a signal ends the process, on whichever thread it arrived. COMPLETE: the result will be renamed. */
enum stage { RUNNING, ENDING, COMPLETE };
static enum stage stage;
static char *location;

/* The first thread that calls it runs the functions. Other threads wait, and signals are blocked. */
static void run_cleanups(void)
{
	static volatile int begun, ended;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (__atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST)) {
		while (!ended)
			usleep(1000);
		return;
	}
	while (cleanups)
		cleanup[--cleanups]();
	ended = 1;
}

/* Signals that the program itself causes. All others are sent to it. */
static bool is_fault(int number)
{
	return number == SIGBUS || number == SIGSEGV || number == SIGABRT || number == SIGFPE ||
		number == SIGILL || number == SIGTRAP || number == SIGSYS || number == SIGPIPE;
}

static bool advance(enum stage from, enum stage to)
{
	return __atomic_compare_exchange_n(&stage, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static _Noreturn void wait_for_end(void)
{
	for (;;)	/* another thread ends the process */
		pause();
}

static void on_signal(int number)
{
	static const char bus[] = ": an input file shrank or could not be read while it was in use\n";
	sigset_t one;

	if (!advance(RUNNING, ENDING)) {
		if (!is_fault(number) && __atomic_load_n(&stage, __ATOMIC_SEQ_CST) == COMPLETE)
			return;
		if (!advance(COMPLETE, ENDING))
			wait_for_end();
	}
	run_cleanups();
	if (number == SIGBUS) {
		const struct iovec line[] = {
			{ (void *)(uintptr_t)program, strlen(program) },
			{ (void *)(uintptr_t)bus, sizeof bus - 1 },
		};

		if (writev(2, line, 2) < 0)
			_exit(1);
		_exit(1);
	}
	signal(number, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, number);
	raise(number);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* Signals that do not end a process by default. */
static bool is_harmless(int number)
{
	return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH ||
		number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

void catch_signals(void)
{
	static bool done;
	struct sigaction caught = { .sa_handler = on_signal };

	if (done)
		return;
	done = true;
	sigfillset(&caught.sa_mask);
	for (int number = 1; number <= SIGRTMAX; number++) {
		struct sigaction now;

		if (!is_harmless(number) && !sigaction(number, NULL, &now) && now.sa_handler == SIG_DFL)
			sigaction(number, &caught, NULL);	/* fails for signals that cannot be caught */
	}
	signal(SIGXFSZ, SIG_IGN);	/* ulimit -f: write() fails with EFBIG instead */
	atexit(run_cleanups);
}

void on_exit_cleanup(void (*fn)(void))
{
	catch_signals();
	if (cleanups == CLEANUPS)
		die("more than %d functions clean up", CLEANUPS);
	cleanup[cleanups++] = fn;
}

void clear_cleanups(void)
{
	cleanups = 0;
}

void ignore_signals(void)
{
	if (!advance(RUNNING, COMPLETE) && __atomic_load_n(&stage, __ATOMIC_SEQ_CST) == ENDING)
		wait_for_end();
}

/* Prints one line. Control characters, as in names from a damaged file, are replaced. */
static void say(const char *prefix, const char *fmt, va_list ap)
{
	int e = errno;
	size_t n = strlen(fmt);
	char *text = NULL;

	progress_clear();
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	for (char *s = text; s && *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
	fprintf(stderr, "%s: %s%s%s%s%s%s\n", program, prefix, location ? location : "", location ? ": " : "",
		text ? text : "out of memory",
		n && fmt[n - 1] == ':' ? " " : "", n && fmt[n - 1] == ':' ? strerror(e) : "");
	free(text);
}

/* _exit(): destructors must not run, since threads of a parallel region may still run. */
static void leave(int status)
{
	run_cleanups();
	fflush(stdout);
	_exit(status);
}

/* Returns in the first thread that calls it. Other threads wait for the end of the process. */
static void once(void)
{
	static volatile int begun;

	if (__atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST))
		for (;;)
			pause();
}

void die(const char *fmt, ...)
{
	va_list ap;

	once();
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	leave(1);
	__builtin_unreachable();
}

void misuse(const char *fmt, ...)
{
	va_list ap;

	once();
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	fprintf(stderr, "try '%s --help'\n", program);
	leave(2);
	__builtin_unreachable();
}

void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("warning: ", fmt, ap);
	va_end(ap);
}

void error_prefix(const char *where)
{
	char *before = location;

	location = where ? plain_text(where) : NULL;
	free(before);
}

void *xalloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > PTRDIFF_MAX - HUGE_PAGE)
		die("an allocation of %zu x %zu bytes is too large", n, size);
	if (!bytes)
		bytes = 1;
	if (posix_memalign(&p, bytes >= 4 * HUGE_PAGE ? HUGE_PAGE : ALIGN, bytes))
		die("cannot allocate %zu MiB: out of memory", bytes >> 20);
	if (bytes >= 4 * HUGE_PAGE)
		madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

void *xgrow(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || !(p = realloc(p, bytes ? bytes : 1)))
		die("out of memory");
	return p;
}

char *xformat(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	return s;
}

char *plain_text(const char *text)
{
	char *y = xformat("%s", text);

	for (char *s = y; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
	return y;
}

void xsetenv(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		die("out of memory");
}
