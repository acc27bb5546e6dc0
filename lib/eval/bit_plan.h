/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bit_plan.h -- the plan of least KL within a budget of bits
 *
 * With kl[u][c] of the model whose layers of unit u are those of candidate c, and size[u][c] their bits
 * (eval/unit.h), the plan takes the layers of each unit from the candidate
 *	c_u:  min Σ_u kl[u][c_u]  such that  Σ_u size[u][c_u] ≤ budget
 * The sum predicts the KL of the model of the plan.
 *
 * Calling sequence: bit_plan_budget(); bit_plan_make(); bit_plan_print(); bit_plan_free().
 */
#ifndef EVAL_BIT_PLAN_H
#define EVAL_BIT_PLAN_H
#include <stddef.h>
#include <stdint.h>
#include "eval/unit.h"

/*
 * Bits of all units together, from bits per weight, or from bytes of the whole model if bits is negative.
 * Fatal error if the smallest candidates have more. It needs no KL, so that it can be called before they are
 * measured.
 */
uint64_t bit_plan_budget(const struct units *u, double bits, size_t bytes);

struct bit_plan {
	size_t *candidate;		/* [units] */
	double kl, bound;		/* the sum; bound: of the least possible sum */
};
/* kl: [units][candidates]. budget: of bit_plan_budget(). */
struct bit_plan bit_plan_make(const struct units *u, const double kl[], uint64_t budget);
void bit_plan_free(struct bit_plan *p);

/* Prints a plan for dpq-run: comments, "* keep", and the lines of each unit. measured: the KL of its model,
 * or NULL. Fatal error if standard output cannot be written. */
struct measured_kl { double kl, se; size_t tokens; };
void bit_plan_print(const struct bit_plan *p, const struct units *u, const double kl[],
	const struct measured_kl *measured);
#endif
