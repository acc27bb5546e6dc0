/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantize.h -- layers of a file through the solver, each by its method: weight, second moments and order in,
 * codes and parameters out
 */
#ifndef TRANSFORM_QUANTIZE_H
#define TRANSFORM_QUANTIZE_H
#include "base/selection.h"
#include "io/image.h"
#include "model/filter.h"
#include "model/hessian.h"
#include "transform/plan.h"

struct quantize {
	struct plan *plan;
	const struct selection *layers;
	struct moments_source source;	/* name, order_name NULL: it knows no Hessian, no order */
	struct moments_files files;	/* behind it, for the history; NULL: none */
	double logs;			/* of the errors reported, and how many there were */
	size_t reported, done;
	bool needs_hessian;		/* a method asked for so far does */
};

/* Dies, or calls misuse(), unless the options fit the files; under a plan that is asked of each layer. */
void quantize_check(struct quantize *q);

/*
 * Dies, before the first layer is quantized, if none is selected, a line of the plan matches none, or one
 * lacks its Hessian or its order: as far as the first part, which is at hand, tells which there are.
 */
void quantize_check_layers(struct quantize *q, const struct filter *f);

/*
 * Quantizes the selected layers of a part, reports each on standard error, and
 * copies the rest; a part that has none is passed on. Activation scales are
 * max|X|/Z over the calibration tokens (DPQ eq. 13). Dies on a weight, Hessian
 * or order that does not fit, naming file and path.
 */
void quantize_part(void *quantize, const struct filter *f);
/* For the filter's finished(): reports the layers that an earlier run has quantized, as that has. */
void quantize_finished(void *quantize, const struct filter *f);
/* The report's last line, the geometric mean of the errors; dies if there was no layer in `name`. */
void quantize_end(struct quantize *q, const char *name);
#endif
