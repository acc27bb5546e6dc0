/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * coding.h -- weights of one column to codes, SEARCH_LANES rows at once, each with its scale and zero
 *
 * What the solver's loop over columns and a search of scales (refine.h) share: both round in the same way.
 */
#ifndef SOLVER_CODING_H
#define SOLVER_CODING_H
#include <stdint.h>
#include "num/format.h"
#include "solver/search.h"

struct coding {
	const struct format *storage;
	const struct format *first;	/* what weights are rounded to before they are coded, or NULL */
};

/* x as weights are before they are coded: rounded to `first`; x where there is none, else in `memory`. */
const double *coding_first(const struct coding *c, double memory[SEARCH_LANES], const double x[SEARCH_LANES]);
/* Codes of x, and y = (grid[code] - zero) · scale in float. zero is read only for asymmetric formats. */
void coding_round(const struct coding *c, uint8_t code[SEARCH_LANES], float y[SEARCH_LANES],
	const double x[SEARCH_LANES], const float scale[SEARCH_LANES], const uint8_t zero[SEARCH_LANES]);
#endif
