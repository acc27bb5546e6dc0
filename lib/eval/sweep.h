/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sweep.h -- tables of the error of number formats by the spread of weights (FPE2M2 figures 3 and 9)
 *
 * Weights of an output channel, and grids, are scaled to [-1, 1] by the largest weight of the channel. sigma
 * is the standard deviation of the scaled weights, error the mean squared error of the scaled weights.
 *
 * Calling sequence: sweep_begin(); sweep_gauss() for weights of a density; sweep_part() for each part of a
 * model, then sweep_end(); use of the tables; sweep_free().
 */
#ifndef EVAL_SWEEP_H
#define EVAL_SWEEP_H
#include <stddef.h>
#include <stdint.h>
#include "base/selection.h"
#include "io/part.h"
#include "io/table.h"
#include "model/filter.h"
#include "num/format.h"

/*
 * Gaussian or uniform weights: `curve` has format, bits, sigma, error, error over the weights' variance,
 * and the error of a sample with its standard error. `best` has the sigma at which a format is best
 * compared with the others of as many bits, and their smallest error over its own. `crossover` has the
 * sigmas at which two formats of as many bits change order. Formats alone: `values` has the value of each
 * code, before zero point and scale. A model: `layer` has the distribution of sigma over the channels of
 * each layer and of all layers, and the share of channels in low .. high. `error` has the error of each
 * format in each layer, with one scale per channel.
 */
enum sweep_table {
	SWEEP_CURVE, SWEEP_BEST, SWEEP_CROSSOVER, SWEEP_VALUES, SWEEP_LAYER, SWEEP_ERROR, SWEEP_TABLES
};
extern const char *const sweep_tables[];	/* their names, NULL-terminated */

struct sweep {
	const struct selection *layers;	/* of a model */
	size_t formats;
	struct format *format;
	struct table table[SWEEP_TABLES];
	double low, high;
	size_t live, channels;		/* channels so far: not all zero, and all */
	double *sigma;			/* [live] */
};

/* names: separated by commas. A name that is no format is an error, whose message suggests the closest
 * format. */
struct sweep sweep_begin(const char *names, bool ties_away, double low, double high,
	const struct selection *layers);
void sweep_free(struct sweep *s);

/* Range of sigma for which the formulas are valid. */
#define SWEEP_MIN 1e-6
#define SWEEP_MAX 10.0
/* Parses "LOW:HIGH:STEP" or numbers separated by commas; free() them. Numbers outside that range are a
 * misuse(). */
double *sweep_sigmas(const char *text, size_t *n);
/* Parses "LOW:HIGH"; anything else is a misuse(). */
void sweep_band(const char *text, double *low, double *high);
/* samples: random weights for each point, 0: none. number: the seed. compare: also the rows of `best` and
 * `crossover`, whose searches take most of the time. One infinite sigma: uniform weights, whose `curve` has
 * their standard deviation 1/√3 as sigma; `best` and `crossover` get no rows. */
void sweep_gauss(struct sweep *s, size_t n, const double sigma[n], size_t samples, uint64_t number,
	bool compare);
/* Adds the selected linear layers of a part. A weight that is not finite is a fatal error. */
void sweep_part(void *sweep, const struct filter *f);
/* Adds the row of all channels, after the last part. */
void sweep_end(struct sweep *s, const char *name);	/* fatal error if the model `name` gave no row */
#endif
