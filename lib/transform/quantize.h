/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantize.h -- a layer of a file through the solver: its weight, Hessian and
 * order in, its codes and parameters out
 */
#ifndef TRANSFORM_QUANTIZE_H
#define TRANSFORM_QUANTIZE_H
#include "base/selection.h"
#include "io/image.h"
#include "model/filter.h"
#include "quant/linear.h"
#include "quant/solver.h"

struct quantize {
	struct solver solver;
	const struct selection *layers;
	bool inputs_given;		/* act_mode is; otherwise what the model says of inputs stays */
	enum input_mode act_mode;
	struct format act_format;	/* kind NULL: that of the arithmetic */
	float act_top;			/* static scales are max|X|/act_top, */
	bool act_pow2;			/* up to powers of two */
	struct image *hessian, *order;	/* NULL: none given */
	double logs;			/* of the errors reported, and how many there were */
	size_t reported, done;
};

/* A value of --top or --saturate, from 1 to the largest of the compute format if there is one; misuse outside. */
void quantize_top(const struct solver *s, const char *option, double value, float *to);
/* Warns of options that change nothing under the others: what is set so far is as the options say. */
void quantize_idle(const struct quantize *q);
/*
 * Completes how inputs are rounded, with the solver's recipe set: the format of the
 * arithmetic goes with its Z and its powers of two, any other has its own top and
 * powers of two only if act_pow2 is set. Unless act_mode was given, it is
 * static-tensor where there is a format.
 */
void quantize_inputs(struct quantize *q);

/* Dies, or calls misuse(), unless options and files fit together. */
void quantize_check(const struct quantize *q);

/* Dies if a layer of a whole model that is selected lacks its Hessian or its order: before the first is
 * quantized. The first part is at hand. */
void quantize_check_layers(struct quantize *q, const struct filter *f);

/*
 * Quantizes the selected layers of a part, reports each on
 * standard error, and copies the rest; a part that has none is passed on.
 * Activation scales are max|X|/Z over the calibration tokens (DPQ eq. 13).
 * Dies on a weight, Hessian or order that does not fit, naming file and path.
 */
void quantize_part(void *quantize, const struct filter *f);
/* The report's last line, the geometric mean of the errors; dies if there was no layer in `name`. */
void quantize_end(struct quantize *q, const char *name);
#endif
