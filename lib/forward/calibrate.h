/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrate.h -- Hessians of linear layers from what a model feeds them
 *
 * Layers that see the same input share one Hessian, stored once by a hard link. An expert of a mixture that
 * fewer tokens reached than it has inputs gets a prior (model/hessian.h): gate and up the inputs of all
 * tokens, as they stand at the router; down, of the first tokens as many as it has inputs, which are sent
 * through this expert for the purpose.
 */
#ifndef FORWARD_CALIBRATE_H
#define FORWARD_CALIBRATE_H
#include <stddef.h>
#include "base/selection.h"
#include "forward/block.h"
#include "forward/forward.h"
#include "forward/moments.h"
#include "io/image.h"
#include "model/config.h"
#include "model/filter.h"
#include "model/hessian.h"
#include "model/layer.h"

/* Dies, naming the model, if none of its linear layers is selected: before the model is run. */
void calibrate_check(const struct config *c, const struct selection *layers, const char *name);
/* The Hessians of one part of a model: of every layer that is selected. */
struct calibration {
	const struct config *config;
	struct layer_list list;
	struct moments *projection;	/* [config_inputs()]; in = 0: none */
	struct moments *sent;		/* likewise: of experts' down projections, the prior */
	const char *name;		/* of the source, for messages */
};
struct calibration calibrate_begin(const struct image *image, const struct config *c,
	const struct selection *layers);
struct observer calibrate_observer(struct calibration *k);
/* The layer's sums, or NULL; those of an expert may be of no tokens. */
const struct moments *calibrate_find(const struct calibration *k, const char *layer);
/* The same moments as a source in memory, in place of a Hessian file; name: for messages. */
struct moments_source calibrate_source(struct calibration *k, const char *name);
/* Tells on standard error how many tokens reached the experts of each block, if any were calibrated. */
void calibrate_report(const struct calibration *k);
/* file: of the model, for messages */
void calibrate_write(struct calibration *k, struct output *out, const char *file);
void calibrate_end(struct calibration *k);
/* All of it: runs what of the model stands in the part, and writes its Hessians. */
struct calibrate {
	struct forward *forward;
	const struct selection *layers;
	const struct image *tokens;		/* the file, for the history */
};
void calibrate_part(void *calibrate, const struct filter *f);
#endif
