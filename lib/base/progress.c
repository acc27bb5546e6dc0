/* SPDX-License-Identifier: GPL-3.0-or-later */
/* progress.c -- see progress.h */
#include "base/progress.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"

static bool shown;

void progress(const char *what, size_t done, size_t total)
{
	static double last = -1;
	static size_t ended;		/* the end that stands on the line */
	static int terminal = -1;
	struct timespec t;
	double now;
	bool end;

	if (terminal < 0)
		terminal = isatty(2);
	if (!terminal || quiet)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	end = total && done >= total;
	if (end ? shown && ended == total : now - last < 0.1)
		return;
	last = now;
	ended = end ? total : 0;
	shown = true;
	if (total)
		fprintf(stderr, "\r%s: %s %zu/%zu\033[K", program, what, done, total);
	else
		fprintf(stderr, "\r%s: %s %zu\033[K", program, what, done);
	fflush(stderr);
}

void progress_clear(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}
