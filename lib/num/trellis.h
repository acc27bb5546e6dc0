/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trellis.h -- trellis codes: a code of 256 k bits for a tile of 16 x 16 weights
 *
 *	1mad<k>, 3inst<k>	k bits per weight, 1 to 4; states of L = 12 bits
 *	1mad<k>-<L>, 3inst<k>-<L>	states of 10 to 16 bits
 *
 * The bits of a code are a ring. Weight p = 16 row + column has the state t of the L bits from bit p k on,
 * the first bit counting most; bit j is bit 7 - j mod 8 of byte ⌊j/8⌋. The weight is a function of t:
 *
 *	1mad	z = (34038481 t + 76625530) mod 2³²; (sum of the four bytes of z - 510)/147.8005
 *	3inst	z = (89226354 t + 64248484) mod 2³²; z = (z & 8FFF8FFF) ^ 3B603B60 in hexadecimal digits; the
 *		sum of the two halves of z as FP16 numbers, rounded to FP16
 *
 * The Viterbi algorithm finds the states of least squared error in which each state continues the one before.
 * The ring is closed as in QTIP (tail-biting): the upper L - k bits of state 0 come from
 * a run over the tile that begins in its middle. Then a run over the tile begins and ends with them.
 *
 * Source: QTIP (Tseng et al., 2024), sections 3.1, 3.2.
 */
#ifndef NUM_TRELLIS_H
#define NUM_TRELLIS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/code_form.h"
#include "num/format.h"

enum { TRELLIS_SIDE = 16, TRELLIS_WEIGHTS = 256, TRELLIS_BYTES = 128 };

extern const struct code_form trellis_form;
/* Sets the bits of a format with f->x bits per weight and states of f->y bits, 0: 12. False: no such
 * format. */
bool trellis_fill_1mad(struct format *f);
bool trellis_fill_3inst(struct format *f);
/* The root mean square of Gaussian weights, in units of the scale, with about the least error. */
double trellis_rms(const struct format *f);
/* Memory of trellis_nearest(). Zero it before the first use. */
size_t trellis_workspace(const struct format *f);
/* The code of a tile, and its weights y. */
void trellis_nearest(const struct format *f, uint8_t code[], float y[TRELLIS_WEIGHTS],
	const float x[TRELLIS_WEIGHTS], void *workspace);
#endif
