/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver.h -- quantization of linear layers: rounding to nearest, GPTQ, and dual precision quantization (DPQ)
 *
 * Columns are quantized one by one. The error of a column is compensated in the
 * following columns, by the second moments H of the inputs of the layer:
 *	UᵀU = P (H + λ·mean(diag H)·I)⁻¹ Pᵀ,  e = (w - ŵ)/U_ii,  w_j ← w_j - e·U_ij.
 * DPQ computes in units of an FP8 scale s₈:
 *	w/s₈ → [FP8] → code → (code - z)·s → FP8 → ·s₈ = ŵ,
 * so that the error of both roundings is compensated (DPQ eq. 6 to 12).
 *
 * With several paths, those of least Σ e² = tr(E (H + λ·mean(diag H)·I) Eᵀ) are kept of each row. A path is
 * extended by the nearest code and by the one on the other side of the weight (solver_paths.c).
 *
 * Calling sequence: fill a struct solver, by solver_recipe() if a recipe is given. For each layer,
 * solver_codes() and codes_lay_out(). Then solver_workspace() and solver_run() for several layers at once.
 *
 * Errors are in the report of each layer: `status` and `index`. The codes of such a layer are not valid.
 *
 * Sources: GPTQ (Frantar et al., 2022); DPQ section 3.
 */
#ifndef SOLVER_SOLVER_H
#define SOLVER_SOLVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "device/device.h"
#include "num/format.h"
#include "quant/codes.h"
#include "quant/linear.h"
#include "quant/status.h"
#include "solver/search.h"

/* The error that is compensated: of the weight that the hardware multiplies (both roundings); of the stored
 * weight before the FP8 rounding (GPTQ used for W4A8); none (round to nearest). */
enum compensate { COMPENSATE_BOTH, COMPENSATE_STORAGE, COMPENSATE_NONE };
/* The weights from which the parameters of a group are computed: compensated by all earlier columns;
 * compensated by finished blocks of 128 columns, as in public code; uncompensated. */
enum group_view { VIEW_EXACT, VIEW_BLOCK, VIEW_ORIGINAL };
enum recipe { RECIPE_LATE, RECIPE_PAPER, RECIPE_INC };
extern const char *const compensates[], *const group_views[], *const recipes[];	/* names, NULL-terminated */

enum { SOLVER_PATHS = 16 };

struct solver {
	struct format storage;		/* with the type of its scales; the solver sets their divisor */
	struct format compute;		/* kind NULL: 16-bit arithmetic, plain GPTQ */
	long group;			/* columns per group; 0: per channel; -1: per tensor */
	enum compensate compensate;
	enum group_view group_view;
	enum search search;		/* hessian and learned are mse if group is -1 */
	bool static_groups;		/* parameters of the original groups, from uncompensated weights */
	bool round_first;		/* rounding to FP8 before coding (DPQ algorithm 1, line 6) */
	bool pow2_scale;		/* s₈ is rounded up to a power of two */
	bool scale8_channel;		/* one s₈ per row, not one per tensor */
	float z_max;			/* s₈ = max|W|/z_max; 0: compute.max */
	float saturate;			/* largest |dequantized| in FP8 units; 0: compute.max */
	float min_scale8;		/* minimum of s₈ */
	double damp;			/* λ */
	size_t turns;			/* rounds of scales for the codes, then codes for the scales */
	size_t paths;			/* of each row, a power of two, at most SOLVER_PATHS; 0: 1, GPTQ */
	bool no_error;			/* no report.error, whose products take as long as the solver */
};

/*
 * Sets the members that a recipe decides: group_view, search, round_first, pow2_scale, z_max, saturate,
 * min_scale8. `compute` must be set before. The recipe inc uses 14/15 of compute.max, rounded to the format
 * (224 for 240).
 */
void solver_recipe(struct solver *s, enum recipe recipe);

struct solver_report {
	enum status status;
	size_t index;			/* row, column or position of an error (quant/status.h) */
	double lambda;			/* damping used; 0 without compensation */
	/* tr(E H Eᵀ)/tr(W H Wᵀ), E = W - Ŵ. NaN without H, with no_error, if W H Wᵀ = 0, or on overflow. */
	double error;
	double mse;			/* mean (W - Ŵ)² */
	double seconds;			/* sum over threads; first layer: plus the wall time of the factor */
	size_t dead;			/* dead channels, whose weights are set to 0 */
};

/* A layer to quantize, m = weight->out rows and n = weight->in columns. */
struct solver_layer {
	const struct linear *weight;	/* its effective weight is quantized */
	const struct solver *settings;	/* of this layer */
	/*
	 * [n][n] Σ x xᵀ over the calibration tokens, times any factor. NULL is allowed only with
	 * COMPENSATE_NONE and the searches minmax and mse; then no error is reported.
	 */
	const float *h;
	const int32_t *order;		/* [n] position → column; NULL: storage order */
	const struct device *device;	/* NULL: the processor; see solver_off_device() */

	struct codes *codes;		/* of solver_codes(), after codes_lay_out() */
	struct solver_report report;	/* set by solver_run() */
};

/* Why layers with n columns and these settings are quantized by the processor although they have a device, as
 * an option: "--turns". NULL: they are not. */
const char *solver_off_device(const struct solver *s, size_t n);

/* Codes of a weight with these settings, before codes_lay_out(). */
struct codes solver_codes(const struct solver *s, size_t out, size_t in);

/*
 * Quantizes layers. Groups are groups of original columns if the columns of each group are adjacent in the
 * order, or with static_groups. Otherwise groups are made of columns adjacent in the order. With
 * compensation, dead channels (H_ii = 0) are last, with weight 0.
 *
 * Consecutive layers with the same settings and h (by their addresses) and the same order share a factor.
 * The factor of one job is computed while columns of another are quantized. BLAS must use one thread
 * (linalg_init()). Results do not depend on `threads`, or on the set of layers in a call. workspace:
 * solver_workspace() bytes, for the current number of `threads`.
 */
size_t solver_workspace(size_t count, struct solver_layer layer[count]);
void solver_run(size_t count, struct solver_layer layer[count], void *workspace);
#endif
