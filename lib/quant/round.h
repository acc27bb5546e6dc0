/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * round.h -- rounding to nearest (RTN) of a row, in groups of neighbouring columns
 *
 * The result is that of the solver without compensation, search and reordering,
 * but panels of rows need not be transposed. Scale and zero of a group come from
 * its range (format_fit()).
 */
#ifndef QUANT_ROUND_H
#define QUANT_ROUND_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

/* Codes and parameters (num/format.h) of n finite weights in groups of `group`. zero is written for
 * asymmetric formats only, and may be NULL for others. */
void round_row(const struct format *f, size_t n, size_t group, uint8_t code[n], float scale[], uint8_t zero[],
	const float w[n]);
/* Values x of codes, by format_decode(). */
void round_values(const struct format *f, size_t n, size_t group, float x[n], const uint8_t code[n],
	const float scale[], const uint8_t zero[]);
/* x becomes x - x̂, for optimizers: near a tie x̂ may be the other neighbour (format_nearest()). */
void round_residue(const struct format *f, size_t n, size_t group, float x[n]);
/* Σ (w - ŵ)² for the results of round_row(). */
double round_error(const struct format *f, size_t n, size_t group, const uint8_t code[n],
	const float scale[], const uint8_t zero[], const float w[n]);
#endif
