/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrate.h -- Hessians of the inputs of linear layers, from a run of the model
 *
 * Layers with the same input share one Hessian, which is stored once, with hard links. If an expert receives
 * fewer tokens than it has inputs (n), it gets a prior (calib/hessian.h). For gate and up, the prior is over
 * the inputs of all tokens at the router. For down, the first n tokens are run through the expert; the result
 * is used for the prior only.
 *
 * With a second model, the pair, the sums have Σ z xᵀ too (calib/cross.h). Both models run in lockstep, and
 * memory holds one block of each.
 *
 * Calling sequence: calibrate_open(); for each part of the model calibrate_begin(), calibrate_observe(), then
 * calibrate_find(), calibrate_source() or calibrate_write(), and calibrate_end(); calibrate_close(). With a
 * pair, calibrate_pair() follows calibrate_begin().
 * calibrate_part() does this for a part of a filter. Bad data is a fatal error.
 */
#ifndef CALIB_CALIBRATE_H
#define CALIB_CALIBRATE_H
#include <stddef.h>
#include "base/selection.h"
#include "calib/cross.h"
#include "calib/sums.h"
#include "device/device_open.h"
#include "forward/block.h"
#include "forward/execution.h"
#include "forward/forward.h"
#include "forward/run.h"
#include "io/part.h"
#include "model/config.h"
#include "model/filter.h"
#include "model/layer_list.h"

/* Options of a calibration. */
struct calibrate_text {
	const char *tokens;
	struct windows_options windows;
	size_t memory;
	enum compute_type compute_type;
	const char *device;
	struct cache_format kv;		/* all zero: the format of the model's attribute */
	bool force_tokens;
	struct shard shard;
	struct run *pair;		/* an opened model (forward/run.h); NULL: none */
};
/* The rows of its options, without tokens, kv and shard, and their names. t: a struct calibrate_text *. */
#define CALIBRATE_NAMES WINDOWS_NAMES " compute-type device force-tokens memory"
#define CALIBRATE_OPTIONS(t) \
	WINDOWS_OPTIONS(&(t)->windows), \
	OPTION_COMPUTE_TYPE(&(t)->compute_type), OPTION_DEVICE(&(t)->device), \
	OPTION_FORCE_TOKENS(&(t)->force_tokens), \
	OPTION_MEMORY(&(t)->memory)
/* A run of a model over the tokens. */
struct calibrate_run {
	struct part *tokens;		/* the file, for the history */
	char *calibration;		/* line of the attribute `calibration` (model/calibrated.h) */
	struct windows windows;
	struct execution execution;
	struct forward *forward;
	struct run *pair;		/* its current part is that of the model; NULL: none */
};
/* c: configuration of the model; it must outlive the run. first: its first part. Tokens that do not fit the
 * model are a fatal error, and so are a pair of other sizes, or on a device, and one shard of a model.
 * calibrate_close() closes it. */
struct calibrate_run *calibrate_open(const struct calibrate_text *t, const struct config *c,
	const struct part *first);
void calibrate_close(struct calibrate_run *r);

/* Fatal error if no linear layer of the model is selected. Call it before the model is run. name: the name of
 * the model, for messages. */
void calibrate_check(const struct config *c, const struct selection *layers, const char *name);
/* The sums of the selected layers of one part of a model. */
struct calibration {
	const struct config *config;
	const struct execution *execution;
	struct layer_list list;
	size_t modalities;		/* of tokens; experts and layers of images have 1 */
	struct sums *input;		/* [config_inputs()] */
	struct sums *extra;		/* [config_inputs()]: priors of experts' down projections */
	const char *name;		/* name of the source, for messages */
	struct workspace rounded;	/* rows of an input as bf16 */
	struct run *pair;
	struct cross *cross;		/* NULL: no pair */
};
/* products: also sum Σ x xᵀ. Without products, the magnitudes of split columns are left out. */
struct calibration calibrate_begin(const struct part *part, const struct config *c,
	const struct execution *e, const struct selection *layers, bool products);
/* Also sums Σ z xᵀ, with z of the pair, whose current part is the same. */
void calibrate_pair(struct calibration *k, struct run *pair);
struct observer calibrate_observer(struct calibration *k);
/* Runs the part of the model and sums; runs the head too if it is selected. A pair runs in lockstep. */
void calibrate_observe(struct calibration *k, struct forward *f, const struct part *part);
/*
 * The same in steps, for a caller that changes a block between its stages:
 *
 *	calibrate_blocks(k, f, part, run, arg)	calls run() for each block, as forward_blocks() does
 *		calibrate_stage(k, f, stage)	in run(): the inputs of a stage are summed
 *		forward_stage() of each model	in run(): to the end of the block, without sums
 *	calibrate_head(k, f, part)		sums the input of the head, if it is selected
 *
 * calibrate_blocks() returns whether the part has the head.
 */
bool calibrate_blocks(struct calibration *k, struct forward *f, const struct part *part,
	void (*run)(void *arg, struct forward *f), void *arg);
void calibrate_stage(struct calibration *k, struct forward *f, struct stage stage);
void calibrate_head(struct calibration *k, struct forward *f, const struct part *part);
/* The sums of a layer, or NULL. Sums of an expert may have no tokens. */
struct sums *calibrate_find(const struct calibration *k, const struct layer_ref *layer);
/* The sums as a source of moments, instead of a Hessian file. Using it adds the modalities into one sum,
 * irreversibly. name: the name of the source, for messages. */
struct moments_source calibrate_source(struct calibration *k, const char *name);
/* Writes the Hessians. file: the name of the model's file, for messages. */
void calibrate_write(struct calibration *k, struct output *out, const char *file);
void calibrate_end(struct calibration *k);
/* calibrate_part(): runs a part of the model and writes its Hessians. calibrate_finished(): runs a part whose
 * Hessians are finished (model/filter.h), without sums, since the next parts need its outputs. */
struct calibrate {
	struct forward *forward;
	const struct selection *layers;
	const struct part *tokens;		/* the file, for the history */
	const char *calibration;		/* line of the attribute `calibration` */
	const struct shard *shard;		/* of the windows; they have been divided already */
	struct run *pair;			/* NULL: none */
};
void calibrate_part(void *calibrate, const struct filter *f);
void calibrate_finished(void *calibrate, const struct filter *f);
#endif
