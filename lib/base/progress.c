/* SPDX-License-Identifier: GPL-3.0-or-later */
/* progress.c -- see progress.h */
#include "base/progress.h"
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"

static const double EARLIEST = 2;	/* seconds before the first estimate */
static const double PERIOD = 60;	/* seconds from line to line without a terminal */
static bool shown;

double progress_remaining(struct progress_rate *r, double now, double share)
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
	const double max = 359999;	/* 99:59:59 */
	const unsigned s = (unsigned)lrint(seconds < max ? seconds : max);

	if (s < 3600)
		snprintf(text, PROGRESS_TIME, "%u:%02u", s / 60, s % 60);
	else
		snprintf(text, PROGRESS_TIME, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
}

/* Whether the line is redrawn now; end: the work is complete, `total` units of it. */
static bool due(double now, bool end, size_t total)
{
	static double last = -1;
	static size_t ended;		/* total of the complete work on the line; 0: not complete */

	if (end ? shown && ended == total : now - last < 0.1)
		return false;
	last = now;
	ended = end ? total : 0;
	return true;
}

static bool terminal(void)
{
	static int yes = -1;

	if (yes < 0)
		yes = isatty(2);
	return yes;
}

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether a line is due without a terminal: one each PERIOD, the first after a PERIOD. */
static bool line_due(double now)
{
	static double last = -1;

	if (last < 0)
		last = now;
	if (now - last < PERIOD)
		return false;
	last = now;
	return true;
}

static void say(const char *what, size_t part, size_t parts, size_t done, size_t total, double left)
{
	char all[32] = "", of[64] = "", time[PROGRESS_TIME] = "";

	if (total)
		snprintf(all, sizeof all, "/%zu", total);
	if (parts > 1)
		snprintf(of, sizeof of, ", part %zu/%zu", part + 1, parts);
	if (left >= 0)
		progress_time(left, time);
	/* one write, so that lines of other programs do not mix with it */
	fprintf(stderr, "%s%s: %s %zu%s%s%s%s%s%s", terminal() ? "\r" : "", program, what, done, all, of,
		left >= 0 ? ", " : "", time, left >= 0 ? " left" : "", terminal() ? "\033[K" : "\n");
	fflush(stderr);
}

static void draw(const char *what, size_t part, size_t parts, size_t done, size_t total)
{
	static struct progress_rate rate;
	const double now = clock_now(), inner = total ? (double)done / (double)total : 0;
	const double share = ((double)part + inner) / (double)parts;
	const double left = total ? progress_remaining(&rate, now, share) : -1;

	if (terminal() ? !due(now, total && done >= total, total) : !line_due(now))
		return;
	shown = terminal();
	say(what, part, parts, done, total, left);
}

void progress(const char *what, size_t done, size_t total)
{
	progress_part(what, 0, 1, done, total);
}

void progress_part(const char *what, size_t part, size_t parts, size_t done, size_t total)
{
	if (!quiet)
		draw(what, part, parts, done, total);
}

void progress_clear(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}
