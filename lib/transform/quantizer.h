/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantizer.h -- the table of quantizers, which quantize linear layers
 *
 * Calling sequence, for layers whose rows have the same run() (transform/quantize.c):
 *
 *	z = t->method->quantizer
 *	z->check(method, ...)		before the layer is read; fatal error if it does not fit
 *	set t->layer, weight, main, inputs, codes; lay codes out
 *	z->begin(t)			allocates t->state
 *	z->run(n, t, workspace)		workspace: z->workspace(n, t) bytes, for the current `threads`
 *	t->status is STATUS_DONE, or names the error, with t->index
 *	z->view(t)			t->layer.linear gets views of the result
 *	z->values(t, value)		a row of the report
 *	z->check_result(t, &warned)	warning or fatal error if the result is not usable
 *	z->free(t)			frees t->state
 *
 * BLAS must run on one thread. No result depends on `threads`, nor on the layers that are in the same run().
 */
#ifndef TRANSFORM_QUANTIZER_H
#define TRANSFORM_QUANTIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/option.h"
#include "base/report.h"
#include "branch/branch.h"
#include "calib/hessian.h"
#include "device/device.h"
#include "model/layer.h"
#include "model/layer_ref.h"
#include "quant/codes.h"
#include "solver/solver.h"
#include "transform/layer_rotation.h"
#include "transform/method.h"

/* A layer, the inputs of its quantization, and the result. */
struct quantized {
	struct layer_ref ref;
	struct layer layer, reference;	/* views of the current part; layer: later, of the result */
	const struct method *method;
	const struct device *device;	/* NULL: the processor */
	/* The weight to quantize: of `layer` or of `reference`, corrected, rotated. */
	const struct linear *weight;
	struct layer_rotation rotation;	/* all 0: none; weight NULL: the weight was rotated before */
	const float *plain_hessian;	/* NULL, or the Hessian before the rotation */
	float *rotated, *rotated_cross;	/* NULL, or memory of rotated moments; later layers share it */
	float *corrected;		/* NULL, or memory of the weight that QEP made */
	struct linear corrected_linear;	/* views of it */
	const struct linear *main;	/* codes that are kept; NULL: codes are computed */
	struct second_moments inputs;	/* hessian NULL: unknown; order NULL: storage order */
	float *own;			/* NULL, or the memory of `inputs` */
	int32_t *order;			/* NULL, or an order computed for the layer */
	float act_scale;
	void (*on_loss)(void *arg, size_t step, double loss);	/* progress of run() */
	void *arg;

	struct codes codes;		/* of the main path */
	void *state;			/* private to the row; begin() allocates it, free() frees it */
	enum status status;
	size_t index;
};

enum { QUANTIZER_LAYERS = 9 };	/* most layers of a run(): of a block, or of three experts with three each */

struct quantizer {
	const char *name;
	const struct code_form *form;	/* of its codes, as in the storage format; NULL: one per weight */
	bool needs_hessian;
	bool reads_hessian;		/* the result depends on a Hessian that exists */
	bool needs_cross;		/* and cross moments */
	bool takes_order;		/* quantize_takes_order() */
	bool rotates;			/* layers are rotated by default: its codes fit Gaussian weights */
	bool makes_branch;
	bool keeps_main;		/* accepts a quantized layer, whose codes are kept */
	/* Most layers of one run(), at most QUANTIZER_LAYERS. Layers with the same Hessian are neighbours and
	 * share its factor. */
	size_t max_layers;
	const struct report_table *report[2];	/* for models without and with experts */
	const struct branch_method *branch;	/* of rows with a branch */
	struct option_without_effect without_effect;	/* options of its tool that have none */

	/* Checks the extents of a layer before it is read; fatal error if they do not fit. NULL: any fit. */
	void (*check)(const struct method *m, const char *file, const char *path, size_t out, size_t in);
	void (*begin)(struct quantized *t);
	size_t (*workspace)(size_t n, struct quantized *const t[n]);
	void (*run)(size_t n, struct quantized *const t[n], void *workspace);
	void (*view)(struct quantized *t);
	void (*values)(const struct quantized *t, double value[]);
	/* Warns, unless *warned, or ends with a fatal error, if the result is not usable. NULL: no check. */
	void (*check_result)(const struct quantized *t, bool *warned);
	void (*free)(struct quantized *t);
};
extern const struct quantizer quantizers[];	/* ends with a row without a name */

/* The row of this name; NULL: none. */
const struct quantizer *quantizer_named(const char *name);
/*
 * The first row without a branch whose codes have the storage's form. If errors are compensated, a row that
 * needs a Hessian, if such a row exists; otherwise a row that needs none. NULL: no row.
 */
const struct quantizer *quantizer_of(const struct solver *s);
/* "NAME or NAME": rows that keep a main path; free() it. */
char *quantizer_keepers(void);
#endif
