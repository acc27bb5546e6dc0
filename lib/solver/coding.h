/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * coding.h -- codes of the weights of one column, for SEARCH_LANES rows, each with its scale and zero
 *
 * The loop of the solver over columns and the scale search of refine.h use these functions, so that both
 * round in the same way.
 */
#ifndef SOLVER_CODING_H
#define SOLVER_CODING_H
#include <stdint.h>
#include "num/format.h"
#include "solver/search.h"

struct coding {
	const struct format *storage;
	const struct format *first;	/* format to which weights are rounded before coding, or NULL */
};

/* Weights before they are coded: x rounded to `first`, in `memory`; x itself if `first` is NULL. */
const double *coding_first(const struct coding *c, double memory[SEARCH_LANES], const double x[SEARCH_LANES]);
/* Codes of x after coding_first(), and y = (grid[code] - zero) · scale in float. zero is read for asymmetric
 * formats only. */
void coding_round(const struct coding *c, uint8_t code[SEARCH_LANES], float y[SEARCH_LANES],
	const double x[SEARCH_LANES], const float scale[SEARCH_LANES], const uint8_t zero[SEARCH_LANES]);
#endif
