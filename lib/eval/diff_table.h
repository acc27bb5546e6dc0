/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * diff_table.h -- table of the differences of a model from a reference, tensor by tensor
 *
 * Every linear layer has a row. Other weights, and biases, have a row only if they differ. Only selected
 * layers are compared.
 *
 * Calling sequence: diff_table_begin(); diff_table_part() for each part of the model; diff_table_end(); use
 * of the table; diff_table_free().
 */
#ifndef EVAL_DIFF_TABLE_H
#define EVAL_DIFF_TABLE_H
#include "base/selection.h"
#include "io/part.h"
#include "io/table.h"
#include "model/filter.h"

struct diff_table {
	struct table table;
	const struct selection *layers;
	struct part *reference, *hessian;	/* hessian NULL: no output error */
	char **seen;			/* [n] tensors that both have */
	size_t n;
	size_t compared, hessians;	/* layers; layers with a Hessian */
	size_t others, differ;		/* other weights and biases; how many of them differ */
	double logs[3];			/* sums of log mse, log error, log output */
	size_t counts[3];
};

struct diff_table diff_table_begin(struct part *reference, struct part *hessian,
	const struct selection *layers);
/* Compares a part of the model. Fatal errors: a tensor has another shape in the reference, or is not finite.
 */
void diff_table_part(void *diff_table, const struct filter *f);
/*
 * Adds the last row: geometric means over layers that differ, as in the report of dpq-run. name: file of the
 * model. Fatal errors: it has no layer, or the reference has a layer that it lacks.
 */
void diff_table_end(struct diff_table *c, const char *name);
void diff_table_free(struct diff_table *c);
#endif
