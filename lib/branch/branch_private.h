/* SPDX-License-Identifier: GPL-3.0-or-later */
/* branch_private.h -- state of a run of a branch method, shared by branch.c and branch_state.c */
#ifndef BRANCH_BRANCH_PRIVATE_H
#define BRANCH_BRANCH_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "branch/branch.h"

enum { CHUNK = 64 };			/* rows of a partial sum; results depend on it */

/* A, B and the main path, in values and codes. */
struct factors {
	float *a, *b;
	struct codes code_a, code_b, main;
};

struct state {
	const struct branch_layer *l;
	const struct branch_settings *set;
	size_t m, n, r, steps, rounds;
	struct solver main, factor;	/* settings of the main path, and of A and B in a format */
	bool weighted, in_format;	/* SVD_r in the norm of H; A and B are stored in a format */
	bool begun;			/* the main path exists: the residue is W - Ŵ, not W */
	double ridge, add;		/* on H, for SVD_r and for losses */
	struct factors now, pair, *kept;	/* pair: the best pair of branch_rounds() */
	float *residue;			/* [m][n] W - Ŵ or W - B A */
	float *panel;			/* [threads][2][CHUNK][n] */
	double (*sum)[2];		/* [chunks] */
	double *ah, *thin, *right;	/* [r][n]; [r][the larger extent]: A or Bᵀ, right-hand sides */
	double *gram;			/* [r][r] */
	void *scratch;
	size_t *index;
};

struct loss { double plain, square; };	/* tr(E H Eᵀ), with I without H; ‖E‖² */
enum { PART_MAIN = 1, PART_BRANCH = 2 };

/* residue = W - the parts of f. */
void branch_residue(struct state *s, const struct factors *f, int parts);
/* The loss of W - the parts of f; parts 0: of W. */
struct loss branch_loss(const struct state *s, const struct factors *f, int parts);
/* Ŵ = Q(W - B A), with `first` Q(W); nothing if the main path is given. */
enum status branch_main(struct state *s, bool first);
/* Rounds A and B to their stored values. */
enum status branch_store(struct state *s);
/* Alternately fits B to the stored A and A to the stored B; residue: W - Ŵ. */
enum status branch_rounds(struct state *s);
void branch_copy(const struct state *s, struct factors *to, const struct factors *from, bool main);
#endif
