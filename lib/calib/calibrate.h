/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrate.h -- Hessians of linear layers from what a model feeds them
 *
 * Layers that see the same input share one Hessian, stored once by a hard link. An expert of a mixture that
 * fewer tokens reached than it has inputs gets a prior (calib/hessian.h): gate and up the inputs of all
 * tokens, as they stand at the router; down, of the first tokens as many as it has inputs, which are sent
 * through this expert for the purpose.
 */
#ifndef CALIB_CALIBRATE_H
#define CALIB_CALIBRATE_H
#include <stddef.h>
#include "base/selection.h"
#include "calib/sums.h"
#include "forward/block.h"
#include "forward/execution.h"
#include "forward/forward.h"
#include "io/part.h"
#include "model/config.h"
#include "model/filter.h"
#include "model/layer_list.h"

/* What a model is calibrated on, as options say it. */
struct calibrate_text {
	const char *tokens;
	size_t ctx, limit, memory, stride;
	enum windows_convention convention;
	enum compute_type compute_type;
	struct cache_format kv;		/* all zero: as the model says */
	bool force_tokens;
	struct shard shard;
};
/* The rows of its options, but for tokens, kv and shard, and their names; t: a struct calibrate_text. */
#define CALIBRATE_NAMES "ctx convention stride limit compute-type force-tokens memory"
#define CALIBRATE_OPTIONS(t) \
	OPTION_CTX(&(t)->ctx), OPTION_CONVENTION(&(t)->convention), OPTION_STRIDE(&(t)->stride), \
	OPTION_LIMIT(&(t)->limit), \
	OPTION_COMPUTE_TYPE(&(t)->compute_type), OPTION_FORCE_TOKENS(&(t)->force_tokens), \
	OPTION_MEMORY(&(t)->memory)
/* A model that is about to run over it. */
struct calibrate_run {
	struct part *tokens;		/* the file, for the history */
	char *calibration;		/* the line of its ids that are used (model/calibrated.h) */
	struct windows windows;
	struct execution execution;
	struct forward *forward;
};
/* c: of the model, of which `first` is the first part; it must outlive the run. Dies where the tokens do not
 * fit the model. */
struct calibrate_run *calibrate_open(const struct calibrate_text *t, const struct config *c,
	const struct part *first);
void calibrate_close(struct calibrate_run *r);

/* Dies, naming the model, if none of its linear layers is selected: before the model is run. */
void calibrate_check(const struct config *c, const struct selection *layers, const char *name);
/* The Hessians of one part of a model: of every layer that is selected. */
struct calibration {
	const struct config *config;
	const struct execution *execution;
	struct layer_list list;
	size_t modalities;		/* of tokens; experts and what sees images alone have one */
	struct sums *input;		/* [config_inputs()] */
	struct sums *sent;		/* [config_inputs()]: priors of experts' down projections */
	const char *name;		/* of the source, for messages */
};
/* products: whether Σ x xᵀ is summed; magnitudes always are, without them only of what weights multiply */
struct calibration calibrate_begin(const struct part *part, const struct config *c,
	const struct execution *e, const struct selection *layers, bool products);
struct observer calibrate_observer(struct calibration *k);
/* Runs what of the model stands in the part, the head too if it is selected. */
void calibrate_observe(struct calibration *k, struct forward *f, const struct part *part);
/* The layer's sums, or NULL; those of an expert may be of no tokens. */
struct sums *calibrate_find(const struct calibration *k, const struct layer_ref *layer);
/* The same moments as a source in memory, in place of a Hessian file, which sums modalities for good;
 * name: for messages. */
struct moments_source calibrate_source(struct calibration *k, const char *name);
/* Reports how many tokens reached the experts of each block, if any were calibrated. */
void calibrate_report(const struct calibration *k, struct report *report);
/* file: of the model, for messages */
void calibrate_write(struct calibration *k, struct output *out, const char *file);
void calibrate_end(struct calibration *k);
/* All of it: runs what of the model stands in the part, and writes its Hessians; of a part whose Hessians are
 * finished (model/filter.h), runs it without sums, since the parts behind it are fed what it makes. */
struct calibrate {
	struct forward *forward;
	const struct selection *layers;
	const struct part *tokens;		/* the file, for the history */
	const char *calibration;		/* the line of its ids */
	const struct shard *shard;		/* of the windows, which were cut already */
};
void calibrate_part(void *calibrate, const struct filter *f);
void calibrate_finished(void *calibrate, const struct filter *f);
#endif
