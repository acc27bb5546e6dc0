/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layers.h -- functions of filters that quantize linear layers: the selected layers of a model, and the
 * statistics of their inputs
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

/* Calls visit() for the selected layers of the model; without a configuration, for those of the current part,
 * with in = 0. Returns their number. */
size_t layers_each(const struct filter *f, const struct selection *layers,
	void (*visit)(void *arg, const struct layer_ref *layer, size_t in), void *arg);
/* Whether layers_each() visits exactly the layers of the input. It does not if the input has only some of the
 * blocks, or has no configuration and several parts. */
bool layers_whole(const struct filter *f);
/* Fatal error: no layer of the file is selected. */
_Noreturn void layers_none_selected(const char *name, const struct selection *layers);

/*
 * Restricts moments to the columns of the main weight: in a copy, rows and columns of H, and absmax, become 0
 * for split columns. Methods keep such columns at 0. An invalid Hessian, or cross moments of a layer with
 * split columns, are a fatal error, which names file and layer. Returns NULL, or the memory of the copy, to
 * be freed.
 */
float *layers_moments(struct second_moments *moments, const char *file, const char *path,
	const struct linear *l);

/* Lays codes out in new memory: free(c->memory). */
void layers_codes(struct codes *c);
/* Fatal error for a layer that could not be quantized. It names the file and the member that are the cause.
 */
_Noreturn void layers_fail(enum status status, size_t index, const char *path, const struct part *model,
	const struct moments_source *source);
#endif
