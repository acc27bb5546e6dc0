/* SPDX-License-Identifier: GPL-3.0-or-later */
/* branch_private.h -- a run of a sub-branch method: what branch.c and branch_state.c share */
#ifndef BRANCH_BRANCH_PRIVATE_H
#define BRANCH_BRANCH_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "branch/branch.h"

enum { CHUNK = 64 };			/* rows of a sum: results depend on it */

/* A, B and the main path, in values and codes. */
struct factors {
	float *a, *b;
	struct codes code_a, code_b, main;
};

struct state {
	const struct branch_layer *l;
	const struct branch_settings *set;
	size_t m, n, r, steps, rounds;
	struct solver main, factor;	/* of the main path; of A and B, if they are stored in a format */
	bool weighted, in_format;
	bool begun;			/* there is a main path: P is W - Ŵ, not W */
	double ridge, add;		/* on H, for SVD_r and for losses */
	struct factors now, pair, *kept;	/* pair: the best of caldera's turns */
	float *residue;			/* [m][n] W - Ŵ or W - B A */
	float *panel;			/* [threads][2][CHUNK][n] */
	double (*sum)[2];		/* [chunks] */
	double *ah, *thin, *right;	/* [r][n]; [r][the larger extent]: A or Bᵀ, right-hand sides */
	double *gram;			/* [r][r] */
	void *scratch;
	size_t *index;
};

struct loss { double plain, square; };	/* tr(E H Eᵀ), or of I; ‖E‖² */
enum { PART_MAIN = 1, PART_BRANCH = 2 };

/* residue = W less the parts of f. */
void branch_residue(struct state *s, const struct factors *f, int parts);
/* The loss of W less the parts of f; without f of W itself. */
struct loss branch_loss(const struct state *s, const struct factors *f, int parts);
/* Ŵ = Q(W - B A), `first`: Q(W), unless it is given. */
enum status branch_main(struct state *s, bool first);
/* A and B become what is stored of them. */
enum status branch_store(struct state *s);
/* B and A anew, from the other one as stored, by turns; residue: W - Ŵ. */
enum status branch_rounds(struct state *s);
void branch_copy(const struct state *s, struct factors *to, const struct factors *from, bool main);
#endif
