/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plot.h -- a picture by gnuplot: commands down a pipe
 *
 * The file appears under its name when it is whole.
 */
#ifndef BASE_PLOT_H
#define BASE_PLOT_H
#include <stdio.h>
#include "base/replace.h"

struct plot { FILE *pipe; struct replace file; };

/* SVG, PNG or PDF by the name; misuse for any other, and for names that cannot be said to gnuplot. */
void plot_check(const char *path);
/* Width and height in pixels; path: checked. */
struct plot plot_open(const char *path, int width, int height);
void plot_say(struct plot *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plot_close(struct plot *p);
#endif
