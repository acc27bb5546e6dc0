/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver.h -- quantizing a linear layer: rounding to nearest, GPTQ, and dual precision quantization (DPQ)
 *
 * Columns are quantized one by one; what is lost on one is made good on those
 * that follow, by the second moments H of the layer's input:
 *	UᵀU = P (H + λ·mean(diag H)·I)⁻¹ Pᵀ,  e = (w - ŵ)/U_ii,  w_j ← w_j - e·U_ij.
 * DPQ works in units of an FP8 scale s₈, and
 *	w/s₈ → [FP8] → code → (code - z)·s → FP8 → ·s₈ = ŵ,
 * so that the error of both steps is compensated (DPQ eq. 6 to 12).
 *
 * Sources: GPTQ (Frantar et al., 2022); DPQ section 3.
 */
#ifndef SOLVER_SOLVER_H
#define SOLVER_SOLVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"
#include "quant/codes.h"
#include "quant/linear.h"
#include "quant/status.h"
#include "solver/search.h"

/* Which error later columns make good: of what the hardware computes; of the stored value before
 * FP8 rounding (GPTQ carried over to W4A8); none (round to nearest). */
enum compensate { COMPENSATE_BOTH, COMPENSATE_STORAGE, COMPENSATE_NONE };
/* From which weights a group's parameters come: compensated by all earlier columns; by finished blocks
 * of 128 columns, as public code does; not compensated. */
enum group_view { VIEW_EXACT, VIEW_BLOCK, VIEW_ORIGINAL };
enum recipe { RECIPE_LATE, RECIPE_PAPER, RECIPE_INC };
extern const char *const compensates[], *const group_views[], *const recipes[];	/* names, NULL-terminated */

struct solver {
	struct format storage;		/* with the type of its scales; the solver finds their divisor */
	struct format compute;		/* kind NULL: 16-bit arithmetic, plain GPTQ */
	long group;			/* columns a group; 0: per channel; -1: per tensor */
	enum compensate compensate;
	enum group_view group_view;
	enum search search;		/* hessian and learned, with group -1: mse */
	bool static_groups;		/* parameters of the original groups, of uncompensated weights */
	bool round_first;		/* to FP8 before the code is taken (DPQ algorithm 1, line 6) */
	bool pow2_scale;		/* s₈ rounded up to a power of two */
	bool scale8_channel;		/* one s₈ a row, not one for all */
	float z_max;			/* s₈ = max|W|/z_max; 0: the top of `compute` */
	float saturate;			/* largest |dequantized| in FP8 units; 0: the top of `compute` */
	float min_scale8;
	double damp;			/* λ */
	bool no_error;			/* no report.error, whose products cost what the solver costs */
};

/*
 * Sets what a recipe decides: group_view, search, round_first, pow2_scale, z_max, saturate, min_scale8.
 * `compute` must be set before: the recipe inc takes 14/15 of its top, rounded to the format (224 of 240).
 */
void solver_recipe(struct solver *s, enum recipe recipe);

struct solver_report {
	enum status status;
	size_t index;			/* where, when it failed */
	double lambda;			/* damping used; 0 without compensation */
	/* tr(E H Eᵀ)/tr(W H Wᵀ), E = W - Ŵ; NaN without H or with no_error, where W H Wᵀ = 0, beyond float */
	double error;
	double mse;			/* mean (W - Ŵ)² */
	double seconds;			/* of all threads; with the factor, by the clock, if it is first */
	size_t dead;			/* channels that never fired and got weight 0 */
};

/* A layer to quantize, m = weight->out rows and n = weight->in columns. */
struct solver_layer {
	const struct linear *weight;	/* its effective weight is quantized */
	const struct solver *settings;	/* of this layer */
	/*
	 * [n][n] Σ x xᵀ over the calibration tokens, or any multiple of it: only ratios
	 * count. NULL, with COMPENSATE_NONE and the searches minmax and mse only: no error is reported.
	 */
	const float *h;
	const int32_t *order;		/* [n] position → column; NULL: as they stand */

	struct codes *codes;		/* of solver_codes(), laid out */
	struct solver_report report;
};

/* What the settings make of a weight; to be laid out. */
struct codes solver_codes(const struct solver *s, size_t out, size_t in);

/*
 * Groups are those of the original columns if each stands together in the order, or with static_groups;
 * otherwise they are cut from the order. Dead channels (H_ii = 0) go last with weight 0.
 *
 * Layers that follow each other with the same h, order and settings (by their
 * addresses) share the factor; that of one overlaps the columns of another. BLAS must be on one thread
 * (linalg_init()). No result depends on `threads`, nor on which layers are
 * taken together. workspace: solver_workspace() bytes, for the present number of `threads`.
 */
size_t solver_workspace(size_t count, struct solver_layer layer[count]);
void solver_run(size_t count, struct solver_layer layer[count], void *workspace);
#endif
