/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * branch.h -- the ways to spend a low-rank branch beside a quantized weight: a table of methods
 *
 *	y = (Ŵ + B A) x,	E = W - Ŵ - B A,	loss = tr(E H Eᵀ)/tr(W H Wᵀ)
 *
 * with B [m][rank] and A [rank][n] as they are stored: what a method fits is rounded to the type or format
 * of the branch at once, and all that follows sees the rounded values. Q(·) is the solver under the settings
 * of the main path; SVD_r the best approximation of rank r (num/svd.h), in the norm tr(E H Eᵀ) where H is
 * named.
 *
 *	fbquant		Adam on A and B, Q(W - B A) held (branch/feedback.h); Q rounds to nearest, unsearched
 *	lowrank		Ŵ = Q(W), B A = SVD_r(W - Ŵ)
 *	svdquant	B A = SVD_r(W - Ŵ), at first of W, and Ŵ = Q(W - B A), `steps` times or until the
 *			loss rises; the least is kept (1 step: the paper's form)
 *	loftq		Ŵ = Q(W - B A), at first of W, and B A = SVD_r(W - Ŵ), `steps` times; the last is kept
 *	caldera		as svdquant under H' = H + 0.01 mean(diag H) I: SVD_r in its norm, Q damped by as
 *			much, losses taken after each of both updates; it does not stop early
 *	eora		as lowrank with SVD_r in the norm of H
 *
 * Where the branch is stored in a format, caldera fits B to A under H', and A to B, in turns, each rounded,
 * and keeps the best pair. A column of B and its row of A have the same norm. EoRA's projection on
 * eigenvectors of H and back has the same product B A: see num/svd.h, which needs no inverse of H.
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
	size_t steps;			/* 0, and of a method of one step: the method's own */
	uint64_t seed;
	/* How A and B are stored: in a format, or, where its kind is NULL, as numbers of a type. */
	struct format storage;
	long group;			/* of the format: columns of A and of B; 0: a row, -1: all */
	enum half_type type;		/* HALF_NONE: f32 */

	double rate, sigma;		/* of fbquant, as in branch/feedback.h */
	size_t every, patience;
	void (*on_loss)(void *arg, size_t step, double loss);
	void *arg;			/* of on_loss */
};

struct branch_report {
	enum status status;
	size_t index;
	/* Under H, or under I where there is none; NaN where tr(W H Wᵀ) = 0. start: of the first main path,
	 * without a branch unless the method begins with one. */
	double start, loss;
	/* fbquant and svdquant, where Q rounds to nearest unsearched: the largest |w - w_F| as a part of its
	 * bound, see feedback_codes(); else NaN. */
	double bound;
	size_t best, steps;		/* the step that is kept, from 1 (of fbquant 0), and those made */
	size_t halved;			/* of fbquant: how often it halved its rate */
	double seconds;			/* by the clock */
};

/* A layer of m = weight->out rows and n = weight->in columns. */
struct branch_layer {
	const struct linear *weight;	/* its effective weight is W */
	const struct linear *main;	/* quantized and kept, where the method takes one; NULL: it is made */
	const struct branch_settings *settings;
	const char *name;		/* of the random stream */
	const float *h;			/* [n][n] Σ x xᵀ or any multiple; NULL: I, if no step needs it */

	float *a, *b;			/* [rank][n], [m][rank]: values as they are stored */
	/* Laid out: of A and B, if they are stored in a format; of the main path, without `main`. */
	struct codes code_a, code_b, codes;
	struct branch_report report;
};

struct branch_method {
	const char *name;
	bool descends;			/* by gradient: from sigma at a rate; main.group ≥ 0 */
	enum compensate compensate;	/* the algorithm's own; the caller copies it to settings.main */
	size_t steps;			/* its own; 1: it has no steps */
	const struct branch_plan *plan;	/* branch.c */
};
enum { BRANCH_FBQUANT, BRANCH_LOWRANK, BRANCH_SVDQUANT, BRANCH_LOFTQ, BRANCH_CALDERA, BRANCH_EORA };
extern const struct branch_method branch_methods[];	/* in this order, up to a row without a name */
extern const char *const branch_names[];		/* theirs, NULL-terminated */

/* BLAS must be on one thread. workspace: bytes, for the present number of `threads`. No result depends on
 * `threads`. */
size_t branch_workspace(const struct branch_method *method, const struct branch_layer *layer);
void branch_run(const struct branch_method *method, struct branch_layer *layer, void *workspace);
#endif
