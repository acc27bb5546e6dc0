/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * round.h -- rounding to nearest of a row (RTN): each group of neighbouring columns under its own range
 *
 * What the solver does where nothing is compensated, searched or moved, without
 * turning panels of rows over.
 */
#ifndef QUANT_ROUND_H
#define QUANT_ROUND_H
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

/* Codes and parameters (num/format.h) of n finite weights in groups of `group`; zero: asymmetric formats
 * only, else may be NULL. */
void round_row(const struct format *f, size_t n, size_t group, uint8_t code[n], float scale[], uint8_t zero[],
	const float w[n]);
/* Their values, as format_decode() gives them. */
void round_values(const struct format *f, size_t n, size_t group, float x[n], const uint8_t code[n],
	const float scale[], const uint8_t zero[]);
/* x becomes x - x̂, as optimizers want it: at a tie x̂ may be the other neighbour. */
void round_residue(const struct format *f, size_t n, size_t group, float x[n]);
/* Σ (w - ŵ)² of what round_row() made. */
double round_error(const struct format *f, size_t n, size_t group, const uint8_t code[n],
	const float scale[], const uint8_t zero[], const float w[n]);
#endif
