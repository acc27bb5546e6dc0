/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plot.h -- a picture by gnuplot, which gets its commands through a pipe
 *
 * The file appears under its name when it is whole.
 */
#ifndef BASE_PLOT_H
#define BASE_PLOT_H
#include <stdio.h>
#include "base/replace.h"

struct plot { FILE *pipe; struct replace file; size_t type; };	/* type: a row of plot.c's table */

/*
 * SVG, PNG or PDF by the end of the name; misuse for any other, and for names that gnuplot cannot read. Dies
 * at once if there is no gnuplot, or nothing could be written.
 */
struct plot plot_open(const char *path);
void plot_begin(struct plot *p, int width, int height);	/* pixels; before what is drawn */
void plot_say(struct plot *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plot_close(struct plot *p);
#endif
