/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sequential.h -- a model quantized block by block, each calibrated on what the quantized layers before it
 * make of the tokens
 *
 * Inside a block in the order of GPTQ (Frantar et al., 2022): queries, keys and values; attention's output;
 * gate and up; down. Of a mixture of experts: the router and what else all tokens pass; its down projection;
 * all experts' gate and up; their down. For each of these inputs all windows run up to it (forward/block.h),
 * its Hessian is summed, its layers are quantized and take their place in the block. Layers that are not
 * selected, or kept, run as they are, and those with activation scales round their inputs. In memory are one
 * block, what is made of it, and the hidden states.
 */
#ifndef TRANSFORM_SEQUENTIAL_H
#define TRANSFORM_SEQUENTIAL_H
#include "calib/calibrate.h"
#include "model/filter.h"
#include "transform/quantize.h"

struct sequential {
	struct quantize *quantize;
	struct calibrate_run *run;
	const char *name;			/* of the tokens, for messages */
	/* The current part. */
	const struct filter *filter;
	const struct layer_list *list;
	struct calibration calibration;		/* config NULL: there is none yet */
};

/* The source of what q asks for, once s is open; q then goes by the blocks. tokens: the file's name. */
struct moments_source sequential_source(struct sequential *s, struct quantize *q, const char *tokens);
/* f: of the model, its configuration read; dies if it has none, or the tokens do not fit. */
void sequential_open(struct sequential *s, const struct calibrate_text *t, const struct filter *f);
void sequential_close(struct sequential *s);
#endif
