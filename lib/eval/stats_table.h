/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stats_table.h -- table of statistics of the weights of a model, or of the inputs in a Hessian file, by
 * layer, or by input channel of each layer
 *
 * Calling sequence: stats_table_begin(); stats_table_part() for each part; stats_table_end(); use and
 * table_free() of the table.
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
	bool model, channels;
	double weights, bits, absmax;	/* of all layers: number of weights, their bits, the largest |w| */
};

/* kind: "model" or "hessian". channels: a row for each input channel: its root mean square and largest
 * magnitude, over the rows of the effective weight, or over the tokens. */
struct stats_table stats_table_begin(const char *kind, bool channels,
	const struct selection *layers);
/* Adds the selected layers of a part. */
void stats_table_part(void *stats_table, const struct filter *f);
/* For layers of a model, adds the last row: bits per weight, and the largest weight. A file `name` without a
 * layer is a fatal error. */
void stats_table_end(struct stats_table *s, const char *name);

/* The type or format of the weights, such as "bf16" or "uint4". */
const char *stats_table_storage(const struct linear *l);
/* The columns that share a scale: a number, "channel", "tensor", or "-" for a plain layer and for codes with
 * their own scales; the caller frees the text. */
char *stats_table_group(const struct linear *l);
#endif
