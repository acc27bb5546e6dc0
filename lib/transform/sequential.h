/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sequential.h -- sequential calibration: quantizes a model layer by layer, each layer calibrated on the
 * outputs of the quantized layers before it
 *
 * Within a block, the order is that of GPTQ (Frantar et al., 2022): queries, keys and values; output of
 * attention; gate and up; down. In a mixture of experts: the router and the other layers that all tokens
 * pass; the down projection of the shared expert; gate and up of all experts; their down projections. For
 * each of these inputs, all windows run up to it (forward/block.h), its Hessian is summed, and its layers are
 * quantized and replaced in the block. Layers that are not selected, or kept, run unchanged. Layers with
 * activation scales round their inputs. Memory holds one block, its quantized layers, and the hidden states.
 *
 * If a method reads cross moments Σ z xᵀ (QEP, Qronos), the windows also pass the unquantized layers of the
 * input file, in lockstep (calib/cross.h). x is the input of a layer after quantized layers, z that after
 * unquantized ones. Memory then holds two blocks and two sets of hidden states. The file is read once.
 *
 * Calling sequence: sequential_source() as the source of a struct quantize; sequential_open();
 * quantize_part() for each part; sequential_close().
 */
#ifndef TRANSFORM_SEQUENTIAL_H
#define TRANSFORM_SEQUENTIAL_H
#include "calib/calibrate.h"
#include "model/filter.h"
#include "transform/quantize.h"

struct sequential {
	struct quantize *quantize;
	struct calibrate_run *run;
	const char *name;			/* of the tokens file, for messages */
	struct run original;			/* of the unquantized layers; forward NULL: not run */
	/* The current part. */
	const struct filter *filter;
	const struct layer_list *list;
	struct calibration calibration;		/* config NULL: none yet */
};

/* Returns the source of moments for q, valid after sequential_open(), and sets q->walk and q->pass. tokens:
 * name of the file. */
struct moments_source sequential_source(struct sequential *s, struct quantize *q, const char *tokens);
/* f: filter of the model, with its configuration read. A missing configuration, or tokens that do not fit the
 * model, are fatal errors. */
void sequential_open(struct sequential *s, const struct calibrate_text *t, const struct filter *f);
void sequential_close(struct sequential *s);
#endif
