/* SPDX-License-Identifier: GPL-3.0-or-later */
/* progress.c -- see progress.h */
#include "base/progress.h"
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"

static const double EARLIEST = 2;	/* seconds after which the rate is taken for one */
static bool shown;

double progress_left(struct progress_rate *r, double now, double share)
{
	if (!(r->since > 0) || share < r->last - 0.5)
		*r = (struct progress_rate){ .since = now, .from = share };
	r->last = share;
	if (now - r->since < EARLIEST || !(share > r->from))
		return -1;
	return (now - r->since) * (1 - share) / (share - r->from);
}

void progress_time(double seconds, char text[PROGRESS_TIME])
{
	const double most = 359999;	/* 99:59:59 */
	const unsigned s = (unsigned)lrint(seconds < most ? seconds : most);

	if (s < 3600)
		snprintf(text, PROGRESS_TIME, "%u:%02u", s / 60, s % 60);
	else
		snprintf(text, PROGRESS_TIME, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
}

/* Whether the line is to be drawn now; end: the last time, for this much work. */
static bool due(double now, bool end, size_t total)
{
	static double last = -1;
	static size_t ended;		/* the end that stands on the line */

	if (end ? shown && ended == total : now - last < 0.1)
		return false;
	last = now;
	ended = end ? total : 0;
	return true;
}

static bool seen(void)
{
	static int terminal = -1;

	if (terminal < 0)
		terminal = isatty(2);
	return terminal && !quiet;
}

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void draw(const char *what, size_t part, size_t parts, size_t done, size_t total)
{
	static struct progress_rate rate;
	const double now = clock_now(), inner = total ? (double)done / (double)total : 0;
	const double left = total ? progress_left(&rate, now, ((double)part + inner) / (double)parts) : -1;
	char time[PROGRESS_TIME];

	if (!due(now, total && done >= total, total))
		return;
	shown = true;
	fprintf(stderr, "\r%s: %s %zu", program, what, done);
	if (total)
		fprintf(stderr, "/%zu", total);
	if (parts > 1)
		fprintf(stderr, ", part %zu/%zu", part + 1, parts);
	if (left >= 0) {
		progress_time(left, time);
		fprintf(stderr, ", %s left", time);
	}
	fputs("\033[K", stderr);
	fflush(stderr);
}

void progress(const char *what, size_t done, size_t total)
{
	progress_part(what, 0, 1, done, total);
}

void progress_part(const char *what, size_t part, size_t parts, size_t done, size_t total)
{
	if (seen())
		draw(what, part, parts, done, total);
}

void progress_clear(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}
