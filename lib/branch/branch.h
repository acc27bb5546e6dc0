/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * branch.h -- methods for a low-rank branch of a quantized weight, as a table
 *
 *	y = (Ŵ + B A) x,	E = W - Ŵ - B A,	loss = tr(E H Eᵀ)/tr(W H Wᵀ)
 *
 * B [m][rank] and A [rank][n] are stored values: each fitted factor is rounded to the type or format of the
 * branch at once, and later updates use the rounded values. Q(·) is the solver with the settings of the main
 * path. SVD_r is the best approximation of rank r (num/svd.h), in the norm tr(E H Eᵀ) if H is mentioned.
 *
 *	fbquant		Adam on A and B, with Q(W - B A) held constant (branch/feedback.h); Q is rounding to
 *			nearest, without a search, which would lose the bound of each weight
 *	lowrank		Ŵ = Q(W), B A = SVD_r(W - Ŵ)
 *	svdquant	B A = SVD_r(W - Ŵ), at first SVD_r(W), and Ŵ = Q(W - B A), `steps` times or until the
 *			loss rises; the result of the smallest loss is kept (1 step: as in the paper)
 *	loftq		Ŵ = Q(W - B A), at first Q(W), and B A = SVD_r(W - Ŵ), `steps` times; the last result
 *			is kept
 *	caldera		as svdquant, with H' = H + 0.01 mean(diag H) I: SVD_r in its norm, the same damping in
 *			Q, losses after each of the two updates; without early stop
 *	eora		as lowrank, with SVD_r in the norm of H
 *
 * If the branch is stored in a format, caldera alternately fits B for A in the norm of H', and A for B. Each
 * is rounded, and the best pair is kept. A column of B and the corresponding row of A have the same norm.
 * EoRA projects on eigenvectors of H and back; its product B A is the same as that of num/svd.h, which needs
 * no inverse of H.
 *
 * Calling sequence: fill a struct branch_layer, with codes after codes_lay_out(); branch_workspace();
 * branch_run(). Errors are in the report: `status` and `index`.
 *
 * Sources: FBQuant; Li et al., SVDQuant (arXiv 2411.05007; deepcompressor: at most 100 steps, early stop);
 * Li et al., LoftQ (arXiv 2310.08659, algorithm 1, T = 5); Saha et al., CALDERA (arXiv 2405.18886;
 * pilancilab/caldera: 20 steps, 5 turns, sigma_reg 0.01, L R before Q); Liu et al., EoRA (arXiv 2410.21271).
 */
#ifndef BRANCH_BRANCH_H
#define BRANCH_BRANCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/half.h"
#include "quant/codes.h"
#include "solver/solver.h"

struct branch_settings {
	struct solver main;		/* of the main path, without a compute format; fbquant: group ≥ 0 */
	size_t rank;			/* from 1 to the smaller extent */
	size_t steps;			/* 0: the default of the method; unused by a method of one step */
	uint64_t seed;
	/* A and B are stored in this format, or, if its kind is NULL, as numbers of the type below. */
	struct format storage;
	long group;			/* columns per group of A and B in the format; 0: a row, -1: all */
	enum half_type type;		/* HALF_NONE: f32 */

	double rate, sigma;		/* these and the next, for fbquant: as in branch/feedback.h */
	size_t every, patience;
	void (*on_loss)(void *arg, size_t step, double loss);
	void *arg;			/* of on_loss */
};

struct branch_report {
	enum status status;
	size_t index;
	/* Losses with H, or with I if h is NULL; NaN if tr(W H Wᵀ) = 0. start: of the first main path,
	 * without a branch unless the method starts with a branch. */
	double start, loss;
	/* The largest ratio of |w - w_F| to its bound, see feedback_codes(); for fbquant, and for svdquant
	 * if Q is rounding to nearest without a search; else NaN. */
	double bound;
	size_t best, steps;		/* the kept step, from 1 (fbquant: from 0); number of steps made */
	size_t halved;			/* fbquant: how often the rate was halved */
	double seconds;			/* wall time */
};

/* A layer of m = weight->out rows and n = weight->in columns. */
struct branch_layer {
	const struct linear *weight;	/* its effective weight is W */
	const struct linear *main;	/* a quantized main path, which is kept; NULL: the method makes it */
	const struct branch_settings *settings;
	const char *name;		/* of the random stream */
	const float *h;			/* [n][n] Σ x xᵀ or any multiple; NULL: I, if the method allows it */

	float *a, *b;			/* result: [rank][n], [m][rank], the stored values */
	/* Results, after codes_lay_out(): of A and B, if they are stored in a format; of the main path, if
	 * `main` is NULL. */
	struct codes code_a, code_b, codes;
	struct branch_report report;
};

struct branch_method {
	const char *name;
	bool descends;			/* gradient descent, with rate and sigma; requires main.group ≥ 0 */
	enum compensate compensate;	/* of the algorithm; the caller copies it to settings.main */
	size_t steps;			/* default; 1: the method has no steps */
	const struct branch_plan *plan;	/* branch.c */
};
enum { BRANCH_FBQUANT, BRANCH_LOWRANK, BRANCH_SVDQUANT, BRANCH_LOFTQ, BRANCH_CALDERA, BRANCH_EORA };
extern const struct branch_method branch_methods[];	/* in this order, up to a row without a name */
extern const char *const branch_names[];		/* names of the methods, NULL-terminated */

/* branch_workspace() returns the bytes of the workspace, for the current number of `threads`. BLAS must use
 * one thread (linalg_init()). Results do not depend on `threads`. */
size_t branch_workspace(const struct branch_method *method, const struct branch_layer *layer);
void branch_run(const struct branch_method *method, struct branch_layer *layer, void *workspace);
#endif
