/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sweep_plot.h -- an image of number formats against sigma, by gnuplot
 *
 * Calling sequence: plot_open() before anything is computed, so that what cannot be drawn is said at once;
 * sweep_plot() when the tables are whole. gnuplot gets its commands through a pipe. The file appears under
 * its name when it is whole.
 */
#ifndef EVAL_SWEEP_PLOT_H
#define EVAL_SWEEP_PLOT_H
#include <stdio.h>
#include "base/replace.h"
#include "eval/sweep.h"

struct plot { FILE *pipe; struct replace file; size_t type; };	/* type: a row of sweep_plot.c's table */

/*
 * SVG, PNG or PDF by the end of the name; misuse for any other, and for names that gnuplot cannot read. Dies
 * at once if there is no gnuplot, or nothing could be written.
 */
struct plot plot_open(const char *path);
/*
 * Draws errors against sigma, with the points of the model's layers if there are any; low .. high is shaded
 * as the band of sigmas that models have. Closes the plot; dies where gnuplot could not make it.
 */
void sweep_plot(struct plot *p, const struct sweep *s);
#endif
