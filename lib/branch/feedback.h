/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * feedback.h -- optimization of a low-rank branch that is subtracted before quantization (FBQuant)
 *
 *	W_F = Q(W - B A) + B A,		Δ = W - W_F = P - Q(P),		P = W - B A
 *
 * tr(Δ H Δᵀ) is minimized over A [rank][n] and B [m][rank]. The feedback term Q(P) is held constant in the
 * gradient:
 *	∂B = -2 Δ (H Aᵀ),	∂A = -2 (Bᵀ Δ) H
 * (FBQuant eq. 11-19, and algorithm 1, which lacks the square of the norm).
 *
 * At the start A ~ N(0, σ²), with 0 for dead channels, and B = 0. Steps are steps of Adam (β 0.9, 0.999, ε
 * 1e-8) at a rate that decreases linearly to 0. H is divided by the mean of its diagonal. Q is rounding to
 * nearest with the range of each group, which is computed in each step. The loss is computed every `every`
 * steps and at the end. The iterate of the smallest loss is kept.
 *
 * For any A and B, |w - w_F| is the rounding error of one weight of P: at most half the widest cell of the
 * format, if ranges do not saturate. Codes are computed from P in double, from the stored A and B.
 *
 * Products are in float. Sums over rows are in fixed chunks and in their order: results do not depend on
 * `threads`.
 *
 * Calling sequence: feedback_workspace(), feedback_run(), rounding of A and B to their stored type by the
 * caller, feedback_codes().
 */
#ifndef BRANCH_FEEDBACK_H
#define BRANCH_FEEDBACK_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"
#include "quant/linear.h"

struct feedback {
	struct format storage;
	long group;			/* columns per group; 0: per channel */
	size_t rank, steps;
	double rate;			/* rate of Adam in the first step */
	double sigma;			/* standard deviation of the initial A; 0: 1/(4√n) */
	size_t every;			/* steps from one loss to the next */
	size_t patience;		/* stop after so many losses without decrease; 0: do not stop */
	uint64_t seed;
	void (*on_loss)(void *arg, size_t step, double loss);	/* called with each relative loss; or NULL */
	void *arg;
};

enum { FEEDBACK_EVERY = 10, FEEDBACK_PATIENCE = 10 };	/* usual values of `every` and `patience` */

struct feedback_report {
	/* tr(Δ H Δᵀ)/tr(W H Wᵀ) at the start, where B A = 0, and of the kept iterate; infinite if no loss was
	 * finite */
	double start, loss;
	size_t best, steps;		/* the step of the kept iterate; number of steps made */
	size_t halved;			/* how often the loss was not finite and the rate was halved */
};

/* A layer of m = weight->out rows and n = weight->in columns. */
struct feedback_layer {
	const struct linear *weight;	/* its effective weight is W, finite */
	const struct feedback *settings;
	const char *name;		/* of the random stream of the initial A */
	const float *h;			/* [n][n] Σ x xᵀ or any multiple of it, finite */
	double whole;			/* tr(W H Wᵀ), for the relative losses of the report */
	float *a, *b;			/* [rank][n], [m][rank]: the kept iterate */
	struct feedback_report report;
};

/*
 * rank is from 1 to the smaller extent. If a loss is not finite, the rate is halved, and the run continues
 * from the best iterate. BLAS must use one thread (linalg_init()). workspace: feedback_workspace() bytes,
 * for the current number of `threads`.
 */
size_t feedback_workspace(const struct feedback_layer *layer);
void feedback_run(struct feedback_layer *layer, void *workspace);
/* Gradients ga [rank][n] and gb [m][rank] of tr(Δ H Δᵀ)/mean(diag H) at layer->a and layer->b. */
void feedback_gradients(const struct feedback_layer *layer, float *ga, float *gb, void *workspace);

/*
 * Codes and parameters of P = W - B A in double, of rows [first, first + rows): code [rows][n], scale and
 * zero [rows][groups]. Returns the largest ratio of |w - w_F| to its bound (FBQuant eq. 13: half the widest
 * cell, plus the rounding of ŵ). The ratio is at most 1 if scales are float32 and ranges do not saturate. w
 * [rows][n] and p [rows][n]: workspace.
 */
double feedback_codes(const struct feedback_layer *layer, size_t first, size_t rows, uint8_t *code,
	float *scale, uint8_t *zero, float *w, double *p);
#endif
