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
#include "model/filter.h"
#include "model/hessian.h"
#include "quant/linear.h"

/* Layers of the model that are selected; without a configuration those of the part at hand, with 0 inputs.
 * Returns how many. */
size_t layers_each(const struct filter *f, const struct selection *layers,
	void (*visit)(void *arg, const char *path, size_t in), void *arg);
/* Whether layers_each() tells all that are in the input: no more, as of some blocks by themselves, and no
 * fewer. */
bool layers_whole(const struct filter *f);
_Noreturn void layers_none(const char *name, const struct selection *layers);

/*
 * Moments of a layer's inputs, as a source has found them, made those of its main weight: columns that were
 * taken out have no error, and the others are compensated under their part of the Hessian; without moments
 * such a column is a channel that never fired, which methods keep at 0. Dies, naming file and layer, on a
 * Hessian that is none. Returns NULL, or memory that they are in: free() it.
 */
float *layers_moments(struct second_moments *moments, const char *file, const char *path,
	const struct linear *l);
#endif
