/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * input_scale.h -- writes activation scales into a model, whose weights are not changed
 *
 *	static-tensor	act_scale = min(max|X|, percentile of |X|)/max over the tokens of a calibration
 *			(DPQ eq. 13; the percentiles are the clipping ranges of MQuant table 1)
 *	static-modality	the same formula, for text and visual tokens separately (MQuant section 4.1)
 *	dynamic-token	scale = act_clip·max|x|/max of each token
 *
 * where /max is the maximum of the format. Inputs of split columns are left out, since they are not rounded.
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

/* Modalities: text (0), visual (1; also all inputs of an encoder), and all. */
enum clipped { CLIPPED_TEXT, CLIPPED_VISUAL, CLIPPED_ALL };
extern const char *const input_scale_clipped[];

struct input_scales {
	const struct selection *layers;
	struct input_scale input;	/* format, mode, clip; the scale is computed in static modes */
	double percentile;		/* of |X|; 100: no clipping */
	enum clipped clipped;		/* static-modality: the modality that the percentile clips */
	struct calibrate_run *run;	/* of the input model, for static modes; NULL: dynamic */
	const struct cache_format *kv;	/* of the result; not given: as in the model */
	bool kv_alone;			/* layers are not changed */
	size_t done;			/* layers so far */
};

/* part() of a filter (model/filter.h). In static modes it reports max|X|, the clipped maximum and the scale
 * of each layer. Embeddings have no inputs to round. */
void input_scales_part(void *scales, const struct filter *f);

/* Fatal error: a static scale is asked for a layer with an own rotation (linear_own_rotation()), whose
 * statistics are those of the inputs before it. */
_Noreturn void input_scale_refuse(const struct part *part, const char *layer);
#endif
