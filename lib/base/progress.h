/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * progress.h -- progress of long work on standard error, with the remaining time
 *
 * On a terminal one line is redrawn at most 10 times a second. Elsewhere one line a minute is printed, the
 * first after a minute. Under -q nothing is printed.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H
#include <stddef.h>

/* done of total units of equal work; total 0: unknown, and no time is printed. */
void progress(const char *what, size_t done, size_t total);
/* The same within one part of a model; all parts are taken for equal work. Parts without work (before the
 * first call and at the end) hardly change the estimate. */
void progress_part(const char *what, size_t part, size_t parts, size_t done, size_t total);
void progress_clear(void);	/* before any other output; die() and warn() call it */

/* Time and share of the work at the first call, share at the last call; all zero at first. */
struct progress_rate { double since, from, last; };
/*
 * Remaining seconds. now: the time in seconds; share: the part of the work that is done, 0 ... 1. The
 * estimate is proportional to the time since the first call. -1: unknown, in the first 2 seconds or before
 * any progress. If the share drops by more than half, timing restarts. A smaller drop is taken for a second
 * model in the same run.
 */
double progress_remaining(struct progress_rate *r, double now, double share);
/* Seconds as "1:02:03" or "2:03". */
enum { PROGRESS_TIME = 32 };
void progress_time(double seconds, char text[PROGRESS_TIME]);
#endif
