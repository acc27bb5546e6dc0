/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * execution.h -- how a model is run; what it is, its configuration says (model/config.h)
 *
 * Whoever runs a model has one, next to the model's configuration, and fills it before anything of the model
 * is read. Where two models are compared, each has its own. All zero: in float32, of text, as the model's
 * layers are.
 */
#ifndef FORWARD_EXECUTION_H
#define FORWARD_EXECUTION_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"
#include "model/cache_format.h"
#include "model/layer.h"
#include "product/product.h"

struct execution {
	enum compute_type compute_type;	/* what --compute-type says */
	size_t rows;			/* of activations in a product, at most; 0: many */
	size_t modalities;		/* of the tokens; 0, 1: text only */
	bool exact_inputs;		/* layers do not round their inputs, whatever they say */
	struct cache_format cache;	/* of keys and values, by cache_use() */
};

/* Dies if tokens of so many modalities cannot be run through the layer of the part, unless it is visual: it
 * sees one of them. With exact_inputs its inputs are not rounded from here on. */
void execution_layer(const struct execution *e, const struct part *part, struct layer *l, bool visual);
#endif
