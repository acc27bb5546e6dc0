/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sweep.h -- number formats against the spread of weights: tables
 *
 * Weights and grids are scaled to [-1, 1] by the largest weight of an output channel; sigma is the standard
 * deviation of what comes out, error the mean squared difference there (FPE2M2 figures 3 and 9).
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
 * Of Gaussian weights: curve is format, bits, sigma, error, error over the weights' variance, and the error
 * of a sample with its standard error; best is the sigma where a format is best against the others of as many
 * bits, and their least error over its own; crossover is where two of them change order.
 * Of formats alone: values is what each code stands for, before zero point and scale.
 * Of a model: layer is the distribution of sigma over the channels of each layer and of all, and the share of
 * it in low .. high; error that of each format there, with one scale a channel.
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
	size_t live, channels;		/* so far: those that are not all zero, and all */
	double *sigma;			/* [live] */
};

/* names: separated by commas; dies on one that is no format, with the closest. */
struct sweep sweep_begin(const char *names, bool ties_away, double low, double high,
	const struct selection *layers);
void sweep_free(struct sweep *s);

/* Sigmas that the formulas are good for. */
#define SWEEP_MIN 1e-6
#define SWEEP_MAX 10.0
/* "LOW:HIGH:STEP" or numbers separated by commas, misuse outside that range; free() them. */
double *sweep_sigmas(const char *text, size_t *n);
/* "LOW:HIGH", misuse for anything else. */
void sweep_band(const char *text, double *low, double *high);
/* samples: weights drawn for each point; 0: none. */
void sweep_gauss(struct sweep *s, size_t n, const double sigma[n], size_t samples, uint64_t number);
/* The selected linear layers of a part. Dies on a weight that is not finite. */
void sweep_part(void *sweep, const struct filter *f);
/* After the last part: the row of all channels. */
void sweep_end(struct sweep *s, const char *name);	/* dies if `name`, the model, gave no row */
#endif
