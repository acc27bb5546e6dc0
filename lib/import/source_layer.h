/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * source_layer.h -- a quantized layer of a source: codes and parameters, in separate memory
 *
 *	struct source_layer y = source_layer_make(out, in, &storage, group);
 *
 *	... y.codes.codes, .scale, .zero; y.input ...
 *	source_layer_view(&y, &linear);
 *	...
 *	source_layer_free(&y);
 */
#ifndef IMPORT_SOURCE_LAYER_H
#define IMPORT_SOURCE_LAYER_H
#include <stdbool.h>
#include "model/stack.h"
#include "quant/codes.h"
#include "quant/member.h"

struct source_layer {
	struct codes codes;		/* rows and columns in the order of the tree, [out, in] */
	struct input_scale input;	/* all 0 if the source does not specify a rounding of inputs */
	float input_scale;		/* of static modes; input.scale need not be set */
};

/* A layer with all parameters 0 and scale_tensor 1. storage: its member `scales` is set. */
struct source_layer source_layer_make(size_t out, size_t in, const struct format *storage, long group);
void source_layer_free(struct source_layer *y);
/* Sets *l to views of y, valid as long as y. */
void source_layer_view(const struct source_layer *y, struct linear *l);
/* A new layer with the rows p of y. */
struct source_layer source_layer_rows(const struct source_layer *y, struct row_slice p);
/* Whether all members are valid in a layer of a file. If not, *member is the invalid one, why the reason. */
bool source_layer_is_valid(const struct source_layer *y, const char **member, char why[MEMBER_WHY]);
#endif
