/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * diff_table.h -- a model against a reference, tensor by tensor
 *
 * Every linear layer gets a row. Of the other weights and of the biases those that differ get one, so that
 * a table without them says that nothing else has changed. Only what is selected is looked at.
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
	char **seen;			/* tensors that both have */
	size_t n;
	size_t compared, hessians;	/* layers, and those that had a Hessian */
	size_t others, differ;		/* other weights and biases, and those that differ */
	double logs[3];			/* of mse, error, output */
	size_t counts[3];
};

struct diff_table diff_table_begin(struct part *reference, struct part *hessian,
	const struct selection *layers);
/* A part of the model. Dies on a tensor of another shape in the reference, and on one that is not finite. */
void diff_table_part(void *diff_table, const struct filter *f);
/*
 * The last row: geometric means over layers that differ, as dpq-run reports them. Dies if there was no
 * layer in `name`, or if the reference has a tensor that `name` lacks.
 */
void diff_table_end(struct diff_table *c, const char *name);
void diff_table_free(struct diff_table *c);
#endif
