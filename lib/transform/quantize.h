/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantize.h -- a layer of a file through the solver: its weight, Hessian and
 * order in, its codes and parameters out
 */
#ifndef TRANSFORM_QUANTIZE_H
#define TRANSFORM_QUANTIZE_H
#include "base/selection.h"
#include "io/image.h"
#include "model/config.h"
#include "quant/linear.h"
#include "quant/solver.h"

struct quantize {
	struct solver solver;
	const struct selection *layers;
	bool inputs_given;		/* how inputs are rounded; otherwise what the model says of that stays */
	enum input_mode act_mode;
	struct format act_format;
	float act_top;			/* static scales are max|X|/act_top, */
	bool act_pow2;			/* up to powers of two */
	struct image *hessian, *order;	/* NULL: none given */
	double logs;			/* of the errors reported, and how many there were */
	size_t reported, done;
};

/* A value of --top or --saturate, NaN: not given, from 1 to the compute format's largest value; misuse outside. */
void quantize_top(const struct solver *s, const char *option, double value, float *to);
/* Warns of options that change nothing under the others; format, mode: as for quantize_inputs(). */
void quantize_idle(const struct quantize *q, const char *format, int mode);
/*
 * How inputs are rounded, with the solver's recipe set: format NULL is that of the
 * arithmetic, with its Z and its powers of two; any other has its own top and, but
 * for pow2 > 0, scales of any value. mode < 0: static-tensor where there is a format.
 */
void quantize_inputs(struct quantize *q, const char *format, int mode, int pow2);

/* Dies, or calls misuse(), unless options and files fit together. */
void quantize_check(const struct quantize *q);

/* Dies if a layer of a whole model that is selected lacks its Hessian or its order: before the first is
 * quantized. image: its first part. */
void quantize_check_layers(struct quantize *q, const struct config *c, const struct image *image);

/*
 * Quantizes the selected layers of a part, reports each on
 * standard error, and copies the rest; a part that has none is passed on.
 * Activation scales are max|X|/Z over the calibration tokens (DPQ eq. 13).
 * Dies on a weight, Hessian or order that does not fit, naming file and path.
 */
void quantize_part(struct quantize *q, struct output *out, const struct image *image, const struct config *config);
/* The report's last line, the geometric mean of the errors; dies if there was no layer in `name`. */
void quantize_end(struct quantize *q, const char *name);
#endif
