/* SPDX-License-Identifier: GPL-3.0-or-later */
/* half.h -- conversion between f32 and the 16-bit types of model files */
#ifndef NUM_HALF_H
#define NUM_HALF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum half_type { HALF_NONE, HALF_F16, HALF_BF16 };	/* HALF_NONE: f32 */
size_t half_size(enum half_type type);		/* bytes of a number */

/* y = x, exactly; x has n elements of the type. */
void half_widen(size_t n, float y[n], const void *x, enum half_type type);
/* The f16 number of two bytes. */
float half_f16_at(const uint8_t x[2]);
/* Rounds to nearest, ties to even. NaN stays NaN, overflow becomes infinity. Not for HALF_NONE. */
void half_narrow(size_t n, uint16_t y[n], const float x[n], enum half_type type);
/* The same for doubles, rounded once; y has n elements of the type, which may be HALF_NONE. */
void half_narrow_double(size_t n, void *y, const double x[n], enum half_type type);
/* Whether all n elements are finite. Uses several threads if n is large. */
bool half_finite(size_t n, const void *x, enum half_type type);
#endif
