/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantizer.h -- the ways to quantize a linear layer, as rows of one table
 *
 * Calling sequence, of layers whose rows have one run() (transform/quantize.c):
 *
 *	z = t->method->quantizer
 *	z->check(method, ...)		before the layer is read: dies where it does not fit
 *	t->layer, weight, main, inputs, codes	are set, codes laid out
 *	z->begin(t)			t->state: memory of the row's own
 *	z->run(n, t, workspace)		of z->workspace(n, t) bytes, for the present number of `threads`
 *	t->status is STATUS_DONE, or says with t->index what is at fault
 *	z->view(t)			t->layer.linear has views of what was made
 *	z->values(t, value)		a row of the report
 *	z->judge(t, &warned)		warns or dies where the result is not usable
 *	z->free(t)			t->state and what it holds
 *
 * BLAS must be on one thread. No result depends on `threads`, nor on which layers are taken together.
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
#include "model/layer.h"
#include "model/layer_ref.h"
#include "quant/codes.h"
#include "solver/solver.h"
#include "transform/method.h"

/* A layer, what is known of it, and what is made of it. */
struct quantized {
	struct layer_ref ref;
	struct layer layer, reference;	/* with views of the current part, then of what was made */
	const struct method *method;
	const struct linear *weight;	/* what is quantized: the layer's, or that of reference */
	const struct linear *main;	/* quantized already and kept; NULL: codes are made */
	struct second_moments inputs;	/* hessian NULL: not known; order NULL: columns in their own order */
	float *own;			/* NULL, or the memory of these */
	int32_t *order;			/* NULL, or an order of its own */
	float act_scale;
	void (*on_loss)(void *arg, size_t step, double loss);	/* is told how far run() is */
	void *arg;

	struct codes codes;		/* of the main path */
	void *state;			/* of its row alone: begin() allocates it, free() frees it */
	enum status status;
	size_t index;
};

enum { QUANTIZER_LAYERS = 9 };	/* at once: those of a block, or of three experts, which have three each */

struct quantizer {
	const char *name;
	const struct code_form *form;	/* of its codes, which the storage format names; NULL: one a weight */
	bool needs_hessian;
	bool reads_hessian;		/* what it makes depends on the Hessian where there is one */
	bool takes_order;
	bool makes_branch;
	bool keeps_main;		/* it may be given a layer that is quantized, whose codes stay */
	/* Layers of one run(), QUANTIZER_LAYERS at most; those of one Hessian stand side by side, and share
	 * what is made of it. */
	size_t max_layers;
	const struct report_table *report[2];	/* of models without experts, and with them */
	const struct branch_method *branch;	/* of rows that make one */
	struct option_idle unread[2];	/* options that change nothing under it, of those of its tool */

	/* Before a layer is read, from its extents: dies where it does not fit. NULL: any does. */
	void (*check)(const struct method *m, const char *file, const char *path, size_t out, size_t in);
	void (*begin)(struct quantized *t);
	size_t (*workspace)(size_t n, struct quantized *const t[n]);
	void (*run)(size_t n, struct quantized *const t[n], void *workspace);
	void (*view)(struct quantized *t);
	void (*values)(const struct quantized *t, double value[]);
	/* After that: warns, unless *warned, or dies where the result is not usable. NULL: any is. */
	void (*judge)(const struct quantized *t, bool *warned);
	void (*free)(struct quantized *t);
};
extern const struct quantizer quantizers[];	/* up to a row without a name */

/* The row of this name; NULL: no row has it. */
const struct quantizer *quantizer_named(const char *name);
/*
 * The row without a branch that makes codes of the storage's form: one that needs a Hessian, where errors are
 * compensated and there is one, else one that does not. NULL: there is none.
 */
const struct quantizer *quantizer_of(const struct solver *s);
/* Names of rows that keep a main path, for messages; free() it. */
char *quantizer_keepers(void);
#endif
