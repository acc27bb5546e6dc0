/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * join.h -- blocks of a model that separate jobs have quantized, put together
 *
 * The inputs are one model, part by part: of each linear layer that some have quantized and others not, the
 * quantized one is taken; all else must be the same wherever it is, and may stand in some of them only.
 */
#ifndef TRANSFORM_JOIN_H
#define TRANSFORM_JOIN_H
#include "model/filter.h"

struct join {
	size_t n;
	struct filter *file;		/* [n], shards in their order; the first has config and output */
	bool shards;
	size_t layers, quantized;	/* joined so far */
	int *of_block;			/* [blocks] layers joined of each */
	char *plain;			/* names of some that none has quantized, or NULL */
};

/* A part of model_filter(). Dies, naming files and path, where two inputs have quantized a layer differently,
 * or differ otherwise, and, in the last part, where a layer of the model is in none. */
void join_part(void *join, const struct filter *f);
/* Warns of layers that none has quantized, if others were, and says how many were joined. Dies if an input
 * goes on. */
void join_end(struct join *j);
#endif
