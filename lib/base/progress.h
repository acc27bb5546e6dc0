/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * progress.h -- long work says how much is done, and the time that is left
 *
 * On a terminal in one line, redrawn at most 10 times a second; elsewhere in a line each minute, none in the
 * first. Silent under -q.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H
#include <stddef.h>

/* done of total pieces of equal work; total 0: not known, and nothing is said of the time. */
void progress(const char *what, size_t done, size_t total);
/* The same within a part of a model, parts being of equal work too: those of no work, before the first call
 * and at the end, weigh little. */
void progress_part(const char *what, size_t part, size_t parts, size_t done, size_t total);
void progress_clear(void);	/* before any other output; die() and warn() call it */

/* Since when what share of the work was done; all zero at first. */
struct progress_rate { double since, from, last; };
/*
 * Seconds that are left at the time `now`, in seconds, where the share 0 ... 1 of the work is done: as long
 * in proportion as what was done since the first call took; -1: not known, in the first 2 seconds or before
 * anything was done since. A share that has fallen by half begins other work; one that falls by less is a
 * second model that goes through the same.
 */
double progress_left(struct progress_rate *r, double now, double share);
/* "1:02:03" or "2:03", of seconds. */
enum { PROGRESS_TIME = 32 };
void progress_time(double seconds, char text[PROGRESS_TIME]);
#endif
