/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * scale_type.h -- what the scales of groups are stored as: f32, bf16, f16, e8m0 (powers of two), e4m3fn
 *
 * Types are rows of a table. One that is divided has a float a tensor beside it, which divides its scales,
 * so that the largest of them can be the type's largest value. e8m0 is rounded down, from the range of a
 * group, so that its largest number lies in the format's last octave (num/format.h); others to nearest. A
 * kind may be made coarser, to fewer significant bits than its type has.
 *
 * Source: OCP Microscaling Formats (MX) 1.0, sections 5.4 and 6.3.
 */
#ifndef NUM_SCALE_TYPE_H
#define NUM_SCALE_TYPE_H
#include <stdbool.h>
#include <stdint.h>
#include "num/bits.h"

enum scale_type { SCALE_F32, SCALE_BF16, SCALE_F16, SCALE_E8M0, SCALE_E4M3FN };
extern const char *const scale_types[];		/* names by number, NULL-terminated */

struct scale_kind {
	int bits;
	double least, step, max;	/* smallest number; last place of 1; largest number */
	bool power;			/* powers of two alone: rounded down */
	bool divided;
};
extern const struct scale_kind scale_kinds[];	/* by number */
/* The numbers of the type that have so many significant bits, at most; 0: all of them. */
struct scale_kind scale_kind_of(enum scale_type type, int bits);

/* 2^⌊log₂ x⌋ of a normal x > 0; 0 of 0 */
static inline __attribute__((always_inline)) double scale_power(double x)
{
	return bits_double(double_bits(x) & (uint64_t)0x7ff << 52);
}

/* The nearest number of the type to a finite x > 0, ties to even, from its smallest to its largest one. */
static inline __attribute__((always_inline)) float scale_nearest(const struct scale_kind *t, double x)
{
	const double place = scale_power(x) * t->step;
	const double magic = (place > t->least ? place : t->least) * 0x1.8p52, y = x + magic - magic;

	return (float)(y < t->least ? t->least : y > t->max ? t->max : y);
}
#endif
