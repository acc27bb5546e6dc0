/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * input_scale.h -- how layers round their inputs, written into a model that is otherwise left as it is
 *
 *	static-tensor	act_scale = min(max|X|, percentile of |X|)/top over the tokens of a calibration
 *			(DPQ eq. 13; the quantiles are MQuant table 1's clipping ranges)
 *			or of the tokens of each modality (static-modality)
 *	dynamic-token	scale = act_clip·max|x|/top of each token
 *
 *	static-modality	the first of these, of visual and of text tokens
 *
 * of inputs that the weight multiplies, which those of columns split off are not.
 */
#ifndef CALIB_INPUT_SCALE_H
#define CALIB_INPUT_SCALE_H
#include <stddef.h>
#include "base/selection.h"
#include "calib/calibrate.h"
#include "model/filter.h"
#include "quant/linear.h"

/* Names of input modes, NULL-terminated. */
extern const char *const input_scale_modes[];

/* Modalities, 0 text, 1 visual, which an encoder's inputs are, and all. */
enum clipped { CLIPPED_TEXT, CLIPPED_VISUAL, CLIPPED_ALL };
extern const char *const input_scale_clipped[];

struct input_scales {
	const struct selection *layers;
	struct input_scale input;	/* format, mode, clip; of a static mode the scale is made */
	double percentile;		/* of |X|; 100: none is cut off */
	enum clipped clipped;		/* static-modality: of whose inputs that is */
	struct calibrate_run *run;	/* static modes; of the model as it is given */
	const struct cache_format *kv;	/* of the result; not given: as the model has it */
	bool kv_alone;			/* layers stay as they are */
	size_t done;			/* layers so far */
};

/* A part(): of static modes it reports max|X|, what was taken for it and the scale of each layer. Embeddings
 * have no inputs to round. */
void input_scales_part(void *scales, const struct filter *f);
#endif
