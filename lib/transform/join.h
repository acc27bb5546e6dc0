/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * join.h -- joins a model whose blocks were quantized by separate jobs
 *
 * The inputs are the same model, part by part. If some inputs have quantized a linear layer, a quantized one
 * is taken. Everything else must be the same in all inputs that have it.
 *
 * Calling sequence: join_part() for each part (model_filter()); join_end().
 */
#ifndef TRANSFORM_JOIN_H
#define TRANSFORM_JOIN_H
#include "model/filter.h"

struct join {
	size_t n;
	struct filter *file;		/* [n], shards in order; the first has the config and the output */
	bool shards;
	size_t layers, quantized;	/* joined so far */
	int *of_block;			/* [blocks] joined layers of each */
	char *plain;			/* names of some layers that no input has quantized, or NULL */
};

/* part() of model_filter(). Fatal errors, which name files and path: two inputs have quantized a layer
 * differently, or differ elsewhere; in the last part: a layer of the model is in no input. */
void join_part(void *join, const struct filter *f);
/* Warns of layers that no input has quantized, if others are quantized. Prints the number of joined layers.
 * An input with further parts is a fatal error. */
void join_end(struct join *j);
#endif
