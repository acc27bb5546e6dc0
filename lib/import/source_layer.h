/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * source_layer.h -- a layer that a source gives in place of a weight: codes and parameters, in its own memory
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
	struct codes codes;		/* rows and columns as the tree has them, [out, in] */
	struct input_scale input;	/* as it is, unless the source says how inputs are rounded */
	float input_scale;		/* of static modes; input.scale need not be set */
};

/* All parameters 0, scale_tensor 1. storage: with the type of its scales. */
struct source_layer source_layer_make(size_t out, size_t in, const struct format *storage, long group);
void source_layer_free(struct source_layer *y);
/* Gives *l views of it, valid as long as it is. */
void source_layer_view(const struct source_layer *y, struct linear *l);
/* The layer of some of its rows. */
struct source_layer source_layer_rows(const struct source_layer *y, struct row_place p);
/* Whether all is what a layer of a file may hold; else the member that is not, and why. */
bool source_layer_sound(const struct source_layer *y, const char **member, char why[MEMBER_WHY]);
#endif
