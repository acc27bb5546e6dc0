/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stats_table.h -- what the linear layers of a model are like, or their inputs by a Hessian file, a row
 * each
 */
#ifndef EVAL_STATS_TABLE_H
#define EVAL_STATS_TABLE_H
#include "base/selection.h"
#include "io/part.h"
#include "io/table.h"
#include "model/filter.h"
#include "quant/linear.h"

struct stats_table {
	struct table table;
	const struct selection *layers;
	double weights, bits, absmax;	/* of all layers: how many, bits they take, the largest */
};

/* kind: "model" or "hessian" */
struct stats_table stats_table_begin(const char *kind, const struct selection *layers);
/* The selected layers of a part. */
void stats_table_part(void *stats_table, const struct filter *f);
/* Of a model the last row: bits a weight, and the largest weight. Dies if `name` holds no layer. */
void stats_table_end(struct stats_table *s, const char *name);

/* "bf16", "uint4" */
const char *stats_table_storage(const struct linear *l);
#endif
