/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plot.h -- a picture by gnuplot: commands down a pipe
 *
 * The file appears under its name when it is whole.
 */
#ifndef BASE_PLOT_H
#define BASE_PLOT_H
#include <stdio.h>

struct plot { FILE *pipe; const char *path; char *part; };

/* SVG, PNG or PDF by the name; misuse for any other. Width and height in pixels. */
struct plot plot_open(const char *path, int width, int height);
void plot_say(struct plot *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plot_close(struct plot *p);
#endif
