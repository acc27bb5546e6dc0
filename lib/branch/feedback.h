/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * feedback.h -- a low-rank branch that is fed back into what is quantized (FBQuant)
 *
 *	W_F = Q(W - B A) + B A,		Δ = W - W_F = P - Q(P),		P = W - B A
 *
 * minimizes tr(Δ H Δᵀ) over A [rank][n] and B [m][rank], with Q(P), the feedback term, held constant in the
 * gradient:
 *	∂B = -2 Δ (H Aᵀ),	∂A = -2 (Bᵀ Δ) H
 * (FBQuant eq. 11-19, algorithm 1, which lacks the square of the norm). A ~ N(0, σ²), 0 of channels that
 * never fire, B = 0; steps are Adam's (β 0.9, 0.999, ε 1e-8) at a rate that falls to 0 in a line; H is
 * divided by the mean of its diagonal. Q is rounding to nearest under each group's range, taken anew in
 * each step. Every `every` steps, and at the end, the loss itself is taken; the iterate of the least one is
 * kept.
 *
 * Whatever A and B are, |w - w_F| is the rounding of one weight of P: at most half the widest cell of the
 * format, where ranges do not saturate. Codes are of P in double, of A and B as they are stored.
 *
 * Products in float, sums over rows in fixed chunks and in their order: no result depends on `threads`.
 */
#ifndef BRANCH_FEEDBACK_H
#define BRANCH_FEEDBACK_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"
#include "quant/linear.h"

struct feedback {
	struct format storage;
	long group;			/* columns a group; 0: per channel */
	size_t rank, steps;
	double rate;			/* Adam's, of the first step */
	double sigma;			/* of A's first numbers; 0: 1/(4√n) */
	size_t every;			/* steps from a loss to the next */
	size_t patience;		/* losses that do not fall before it stops; 0: it does not */
	uint64_t seed;
	void (*on_loss)(void *arg, size_t step, double loss);	/* is told each loss, as reported; or NULL */
	void *arg;
};

enum { FEEDBACK_EVERY = 10, FEEDBACK_PATIENCE = 10 };	/* usual values of the two */

struct feedback_report {
	/* tr(Δ H Δᵀ)/tr(W H Wᵀ) of A's start, where B A = 0, and of what is kept; infinite where none was
	 * finite */
	double start, loss;
	size_t best, steps;		/* the step of the iterate that is kept, and those that were made */
	size_t halved;			/* how often the loss was not finite, and the rate halved */
};

/* A layer of m = weight->out rows and n = weight->in columns. */
struct feedback_layer {
	const struct linear *weight;	/* its effective weight is W, finite */
	const struct feedback *settings;
	const char *name;		/* of the random stream that A begins with */
	const float *h;			/* [n][n] Σ x xᵀ or any multiple of it, finite */
	float *a, *b;			/* [rank][n], [m][rank]: the iterate that is kept */
	struct feedback_report report;
};

/*
 * rank is from 1 to the smaller extent. A loss that is not finite halves the rate, and the run goes on from
 * the best iterate. BLAS must be on one thread. workspace: feedback_workspace() bytes, for the present number
 * of `threads`.
 */
size_t feedback_workspace(const struct feedback_layer *layer);
void feedback_run(struct feedback_layer *layer, void *workspace);
/* ∂A [rank][n] and ∂B [m][rank] of tr(Δ H Δᵀ)/mean(diag H) at A and B as they stand. */
void feedback_gradients(const struct feedback_layer *layer, float *ga, float *gb, void *workspace);

/*
 * Codes and parameters of P = W - B A in double, of rows [first, first + rows): code [rows][n], scale and
 * zero [rows][groups]. Returns the largest |w - w_F| as a part of its bound (FBQuant eq. 13: half the widest
 * cell, and the rounding of ŵ), at most 1 for float32 scales and ranges that do not saturate.
 * w [rows][n] and p [rows][n]: workspace.
 */
double feedback_codes(const struct feedback_layer *layer, size_t first, size_t rows, uint8_t *code,
	float *scale, uint8_t *zero, float *w, double *p);
#endif
