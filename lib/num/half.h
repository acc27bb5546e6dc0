/* SPDX-License-Identifier: GPL-3.0-or-later */
/* half.h -- f32 from and to the 16-bit types of model files */
#ifndef NUM_HALF_H
#define NUM_HALF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum half_type { HALF_NONE, HALF_F16, HALF_BF16 };	/* HALF_NONE: the data is f32 already */
size_t half_size(enum half_type type);		/* bytes of a number */

/* Exact. x has n elements of the given type. */
void half_widen(size_t n, float y[n], const void *x, enum half_type type);
/* To nearest, ties to even; NaN stays NaN, overflow becomes infinity. */
void half_narrow(size_t n, uint16_t y[n], const float x[n], enum half_type type);
/* The same of doubles, rounded once; y has n elements of the type, of floats too. */
void half_narrow_double(size_t n, void *y, const double x[n], enum half_type type);
/* Whether none of the n elements is infinite or NaN; by several threads where there are many. */
bool half_finite(size_t n, const void *x, enum half_type type);
#endif
