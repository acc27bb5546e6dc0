/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * knapsack.h -- one choice for each item, of least cost within a budget (multiple-choice knapsack)
 *
 *	min Σ_i cost[i][c_i]  such that  Σ_i size[i][c_i] ≤ budget
 *
 * Partial sums that another one dominates are dropped (Nemhauser and Ullmann 1969), and so are those whose
 * Lagrangian bound exceeds the cost of a known solution (Sinha and Zoltners 1979; Kellerer et al.,
 * *Knapsack Problems*, 2004, section 11). The result is exact unless more than `limit` partial sums remain
 * after an item. Then those with the best bounds are kept, and `bound` is below the cost.
 */
#ifndef EVAL_KNAPSACK_H
#define EVAL_KNAPSACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct knapsack {
	size_t items, choices;
	const uint64_t *size;		/* [items][choices]; sums must be below 2^63 */
	const double *cost;		/* [items][choices], finite */
	uint64_t budget;
	size_t limit;			/* partial sums that are kept, at least 1 */
};

/* The sum of the smallest sizes, the least budget that a choice fits. Costs are not read. */
uint64_t knapsack_least(const struct knapsack *k);
/* choice[items] of least cost, and its cost. bound: no solution costs less; equal to the cost if that is
 * exact. False if no choice fits the budget. */
bool knapsack_solve(const struct knapsack *k, size_t choice[k->items], double *cost, double *bound);
#endif
