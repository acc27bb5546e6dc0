/* SPDX-License-Identifier: GPL-3.0-or-later */
/* usage.c -- see usage.h */
#include "base/usage.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"

static struct timespec start;

/* Writes the line at once, so that lines of tools that end at the same time do not mix. */
static void append(const char *path, double memory, double seconds, double processor)
{
	char *line = xformat("%s\t%.1f\t%.2f\t%.2f\n", program, memory, seconds, processor);
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
	const ssize_t n = (ssize_t)strlen(line);
	char first[4] = "";

	if (fd >= 0 && pread(fd, first, sizeof first, 0) > 0 && !memcmp(first, "\211HDF", sizeof first))
		warn("PTQ_LOG: %s: is an HDF5 file, expected a text or a new file", path);
	else if (fd < 0 || write(fd, line, (size_t)n) != n)
		warn("PTQ_LOG: %s: cannot be written:", path);
	if (fd >= 0)
		close(fd);
	free(line);
}

static void tell(void)
{
	const char *log = getenv("PTQ_LOG");
	struct timespec end;
	struct rusage u;
	double memory, seconds, processor;

	if (getrusage(RUSAGE_SELF, &u) || clock_gettime(CLOCK_MONOTONIC, &end))
		return;
	memory = (double)u.ru_maxrss / 1024;
	seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
	processor = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	if (verbose)
		fprintf(stderr, "%s: peak memory %.1f MiB, %.2f s of processor time\n", program, memory,
			processor);
	if (log && *log)
		append(log, memory, seconds, processor);
}

void usage_at_end(void)
{
	clock_gettime(CLOCK_MONOTONIC, &start);
	atexit(tell);
}
