/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * info.h -- what a file is: kind, shapes, formats, attributes and history, without reading weights
 *
 *	struct info info = info_begin();
 *
 *	while ((part = input_next(in)))
 *		info_part(&info, part);
 *	text = info_end(&info, input_whole(in), json);
 *
 * The facts are one JSON object, whose keys are in docs/man/tensor-info.1. The text is printed from it. Few
 * data are read: counts of Hessians, strings, and ids of tokens without a digest. A damaged file, or a layer
 * whose attributes or extents are not valid, is a fatal error.
 */
#ifndef EVAL_INFO_H
#define EVAL_INFO_H
#include <jansson.h>
#include <stdbool.h>
#include "io/part.h"
#include "model/config.h"

struct info {
	json_t *facts;
	const struct info_kind *kind;
	const struct config *config;	/* of a model, or NULL */
	struct info_sums {		/* over all parts */
		double parameters, weights, bits;
		size_t layers, inputs, priors;
		double tokens_min, tokens_max;
	} sum;
};

struct info info_begin(void);
void info_part(struct info *f, const struct part *part);
/* The text, or one line of JSON; the caller frees it. Frees the facts. whole: the input is not a stream. */
char *info_end(struct info *f, bool whole, bool json);
#endif
