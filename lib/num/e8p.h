/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * e8p.h -- the codebook E8P: a code for eight neighbouring weights of a row, from the lattice E8
 *
 *	e8p	16 bits, 2 bits per weight	w = g₁
 *	e8p3	24 bits, 3 bits			w = g₁ + g₂/2.04, g₂ of 256 points of E8
 *	e8p4	32 bits, 4 bits			w = g₁ + g₂/3.45, g₂ of E8P
 *
 * A point g of E8P has the magnitudes of one of 256 patterns a, signs with which the sum of a is even, and a
 * shift of ¼ or -¼ that is added to all eight entries. The patterns are the vectors of ½, 3/2 and 5/2 with
 * ‖a‖² ≤ 10, in ascending order (the first entry counts most), then 29 of those with five 3/2 and three ½. A
 * code is pattern · 256 + signs. If `signs` has an odd number of bits, the shift is -¼, and bit 0 is
 * inverted. If the sum of a is odd, bit 7 is inverted. Then each bit that is 1 negates the entry of its
 * number.
 *
 * The 256 points of E8 of e8p3: codes below 128 are ±½, their bits 0 to 6 negate entries, and the last entry
 * is negated if their number is odd. From 128 on, four codes for each pair of entries i < j, first (0, 1),
 * then (0, 2): ±1 at both, bit 0 negates that at i, bit 1 that at j. From 240 on, 2 and -2 at each entry, but
 * 0 in place of the last -2.
 *
 * Codes are stored with the low byte first, g₁ before g₂.
 *
 * Sources: QuIP# (Tseng et al., 2024), sections 4.2, 4.3; Conway and Sloane, Sphere Packings, Lattices and
 * Groups, chapter 20.
 */
#ifndef NUM_E8P_H
#define NUM_E8P_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/code_form.h"
#include "num/format.h"

enum { E8P_COLUMNS = 8, E8P_BYTES = 4, E8P_LANES = 64 };

extern const struct code_form e8p_form;
/* Fills in the bits of a format with f->n bits per weight. False: no such format. */
bool e8p_fill(struct format *f);
/* The root mean square of Gaussian weights, in units of the scale, with about the least error. */
double e8p_rms(const struct format *f);
/*
 * The nearest codes of the vectors x of LANES lanes, and their points y. The code of each lane is the nearest
 * of all 2¹⁶; residual codes are the nearest to what remains. Distances are compared in float.
 */
void e8p_nearest(const struct format *f, uint8_t code[E8P_LANES][E8P_BYTES],
	float y[E8P_COLUMNS][E8P_LANES], const float x[E8P_COLUMNS][E8P_LANES]);
#endif
