/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cross.h -- cross moments Σ z xᵀ of the inputs of layers in two models, for the same tokens
 *
 * x is the input of a layer in the model of a calibration, z that in another model, the pair, which usually
 * is the unquantized one. Windows pass a block in groups, first of the model, then of the pair
 * (forward_stages()). The inputs x of a group are held until the pair has run it. An expert's rows are the
 * tokens that the router of the model sends to it: the pair runs its own expert for these tokens too, and for
 * the tokens of the prior.
 *
 * Calling sequence: cross_open(); for each group cross_hold() and cross_hold_extra() with the inputs of the
 * model, then a run of the pair with cross_observer(); cross_close().
 */
#ifndef CALIB_CROSS_H
#define CALIB_CROSS_H
#include <stddef.h>
#include <stdint.h>
#include "calib/sums.h"
#include "forward/observer.h"
#include "model/config.h"
#include "num/half.h"

/* Inputs of a projection in the current group. */
struct held {
	size_t rows;
	float *x;			/* [rows][in]; NULL: the input is not summed */
	int32_t *token;			/* [rows] numbers of the tokens in the batch, of an expert */
};

struct cross {
	const struct config *config;
	enum half_type type;		/* to which inputs are rounded */
	struct sums *input, *extra;	/* of the calibration: [config_inputs()] each */
	struct held *held, *held_extra;	/* [config_inputs()] */
};
/* input, extra: the sums to which Σ z xᵀ is added. They must outlive the result. */
struct cross *cross_open(const struct config *c, enum half_type type, struct sums *input, struct sums *extra);
void cross_close(struct cross *c);
/* Holds rows of input number i (model/layer_ref.h). token: of an expert, else NULL. Threads may hold
 * different inputs at the same time. */
void cross_hold(struct cross *c, size_t i, size_t rows, const int32_t token[], const float *x);
/* Holds the inputs of an expert's down projection for the first `rows` tokens, which are those of a prior. */
void cross_hold_extra(struct cross *c, size_t i, size_t rows, const float *x);
/* The observer of the pair. */
struct observer cross_observer(struct cross *c);
#endif
