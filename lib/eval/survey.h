/* SPDX-License-Identifier: GPL-3.0-or-later */
/* survey.h -- what the linear layers of a model are like, or their inputs by a Hessian file, a row each */
#ifndef EVAL_SURVEY_H
#define EVAL_SURVEY_H
#include "base/selection.h"
#include "io/part.h"
#include "io/table.h"
#include "model/filter.h"
#include "quant/linear.h"

struct survey {
	struct table table;
	const struct selection *layers;
	double weights, bits, absmax;	/* of all layers: how many, bits they take, the largest */
};

struct survey survey_begin(const char *kind, const struct selection *layers);	/* "model" or "hessian" */
/* The selected layers of a part. */
void survey_part(void *survey, const struct filter *f);
/* Of a model the last row: bits a weight, and the largest weight. Dies if `name` holds no layer. */
void survey_end(struct survey *s, const char *name);

/* "bf16", "uint4" */
const char *survey_storage(const struct linear *l);
#endif
