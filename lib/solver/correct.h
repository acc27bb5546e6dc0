/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * correct.h -- weights corrected for the error of their inputs, by cross moments
 *
 *	W ← W + α W P,	H = Σ x xᵀ, G = Σ z xᵀ, C = G - H
 *	QEP (Arai and Ichikawa, arXiv 2504.09629)
 *		P = C (H + λ I)⁻¹
 *	Qronos (Zhang et al., arXiv 2505.11695), with column a alone:
 *		P_a = C_a / H_aa,	P_rest = (C_rest - P_a H_a,rest) ((H + λ I)_rest,rest)⁻¹
 *
 * where x is the input of a layer whose earlier layers are quantized, and z that of the unquantized model. P
 * of QEP minimizes ‖W Z - (W + W P) X‖² with a ridge of λ. P_a is what minimizes it over column a with all
 * other columns as they are, and P_rest over these for the column a of the result. GPTQ of the result, with
 * the same λ and with a first, is Qronos: its first code is that of W_a + W P_a, and the compensation for it
 * leads to the least-squares weights of the rest.
 *
 * Columns with H_jj = 0 are dead: W_j is 0, before and after. λ = damp · mean live H_jj, times the first
 * factor of factor_ladder (solver/factor.h) with which the matrix is positive definite. All numbers are
 * double.
 *
 * Calling sequence: fill a struct correction; correct_make() with correct_workspace() bytes; correct_apply()
 * for weights of layers with these inputs.
 */
#ifndef SOLVER_CORRECT_H
#define SOLVER_CORRECT_H
#include <stddef.h>
#include <stdint.h>
#include "quant/status.h"

struct correction {
	size_t n;
	const float *h, *cross;		/* [n][n] H, symmetric, and G; finite */
	double damp;
	size_t alone;			/* the column that is alone, n: none; none if it is dead */

	/* Set by correct_make(): */
	size_t live;
	int32_t *column;		/* [live] live columns; `alone` is last */
	double *p;			/* [live][live] P, in this order */
	double lambda;			/* λ over the mean */
};

size_t correct_workspace(size_t n);
/* workspace: must outlive the correction. STATUS_NOT_POSITIVE: at column *index. */
enum status correct_make(struct correction *c, void *workspace, size_t *index);
/* W ← W + share · W P for m rows of W, on the calling thread; buffer: correct_buffer() bytes. The bits of a
 * row depend on m: callers take CORRECT_ROWS at once, from a multiple of it on. */
enum { CORRECT_ROWS = 64 };
size_t correct_buffer(size_t n, size_t m);
void correct_apply(const struct correction *c, double share, size_t m, float w[m][c->n], double buffer[]);
#endif
