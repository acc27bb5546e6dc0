/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * execution.h -- settings for a run of a model, in addition to its configuration (model/config.h)
 *
 * A tool has one struct execution for each model that it runs, and fills it before it reads the model's
 * layers. All zero: float32, tokens of text, inputs rounded as the layers specify, keys and values not
 * rounded, on the processor.
 */
#ifndef FORWARD_EXECUTION_H
#define FORWARD_EXECUTION_H
#include <stdbool.h>
#include <stddef.h>
#include "device/device.h"
#include "io/part.h"
#include "model/cache_format.h"
#include "model/layer.h"
#include "product/product.h"

struct execution {
	enum compute_type compute_type;	/* of --compute-type */
	size_t rows;			/* most rows of activations in a product; 0: many */
	size_t modalities;		/* of the tokens; 0, 1: text only */
	bool exact_inputs;		/* inputs are not rounded, even if layers specify it */
	struct cache_format cache;	/* of keys and values, from cache_use() */
	const struct device *device;	/* where blocks run (device/device_open.h) */
};

/* Fatal error if the layer has static input scales for fewer modalities than the tokens have. A visual layer
 * has tokens of one modality only and is not checked. With exact_inputs, the layer's rounding of inputs is
 * removed. */
void execution_layer(const struct execution *e, const struct part *part, struct layer *l, bool visual);
#endif
