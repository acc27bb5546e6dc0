/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layers.h -- what filters share that quantize the linear layers of a model: which these are, before the
 * first is read, and what a method may know of their inputs
 */
#ifndef TRANSFORM_LAYERS_H
#define TRANSFORM_LAYERS_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"
#include "calib/hessian.h"
#include "model/filter.h"
#include "model/layer_list.h"
#include "quant/codes.h"
#include "quant/linear.h"
#include "quant/status.h"

/* Layers of the model that are selected; without a configuration those of the current part, with 0 inputs.
 * Returns how many. */
size_t layers_each(const struct filter *f, const struct selection *layers,
	void (*visit)(void *arg, const struct layer_ref *layer, size_t in), void *arg);
/* Whether layers_each() visits exactly the input's layers: not if it holds some blocks only, nor, without a
 * configuration, on a stream of several parts. */
bool layers_whole(const struct filter *f);
_Noreturn void layers_none(const char *name, const struct selection *layers);

/*
 * Restricts moments to the columns that the main weight holds: rows and columns of H, and absmax, of columns
 * taken out become 0, in a copy; methods keep such columns at 0. Dies, naming file and layer, on a Hessian
 * that is none. Returns NULL, or the memory of the copy: free() it.
 */
float *layers_moments(struct second_moments *moments, const char *file, const char *path,
	const struct linear *l);

/* Lays codes out in new memory: free(c->memory). */
void layers_codes(struct codes *c);
/* Dies of a layer that was not quantized, naming the file and what of it is at fault. */
_Noreturn void layers_fail(enum status status, size_t index, const char *path, const struct part *model,
	const struct moments_source *source);
#endif
