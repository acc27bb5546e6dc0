/* SPDX-License-Identifier: GPL-3.0-or-later */
/* coding.c -- see coding.h */
#include "solver/coding.h"
#include <stddef.h>
#include "num/clones.h"

enum { LANES = SEARCH_LANES };

const double *coding_first(const struct coding *c, double memory[LANES], const double x[LANES])
{
	float y[LANES];

	if (!c->first)
		return x;
	for (size_t l = 0; l < LANES; l++)
		y[l] = (float)x[l];
	format_round(c->first, LANES, y, y, 1, 0);
	for (size_t l = 0; l < LANES; l++)
		memory[l] = y[l];
	return memory;
}

void coding_round(const struct coding *c, uint8_t code[LANES], float y[LANES], const double x[LANES],
	const float scale[LANES], const uint8_t zero[LANES])
{
	double memory[LANES];

	format_quantize(c->storage, LANES, code, y, coding_first(c, memory, x), scale, zero);
}
