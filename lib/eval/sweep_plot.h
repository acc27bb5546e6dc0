/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sweep_plot.h -- plots the error of number formats by sigma, with gnuplot
 *
 * Calling sequence: plot_open() before the computation, so that errors of the plot are reported early;
 * sweep_plot() when the tables are complete. gnuplot receives commands through a pipe. The file gets its name
 * when it is complete.
 */
#ifndef EVAL_SWEEP_PLOT_H
#define EVAL_SWEEP_PLOT_H
#include <stdio.h>
#include "base/replace.h"
#include "eval/sweep.h"

struct plot { FILE *pipe; struct replace file; size_t type; };	/* type: a row of sweep_plot.c's table */

/*
 * Opens a plot. The end of the name selects SVG, PNG or PDF. Other endings, and names that gnuplot cannot
 * read, are a misuse(). Fatal errors: gnuplot is not installed, or the file cannot be written.
 */
struct plot plot_open(const char *path);
/*
 * Plots errors by sigma, with a point for each layer of the model, if there is one. low .. high is shaded as
 * the range of sigma in models. Closes the plot. A failure of gnuplot is a fatal error.
 */
void sweep_plot(struct plot *p, const struct sweep *s);
#endif
