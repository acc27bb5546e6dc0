/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * scale_type.h -- number formats of scales: f32, bf16, f16, e8m0 (powers of two), e4m3fn, u8 (1 to 255)
 *
 * Types are rows of a table. For a type that is divided, each tensor has a float that divides its scales, so
 * that the largest scale can be the largest number of the type. Scales are rounded to nearest. Only e8m0 is
 * rounded down from the range of a group, so that the largest number of the group is in the last octave of
 * the format (num/format.h). A type may be restricted to fewer significant bits.
 *
 * Scales in u8 are integers. They multiply a second scale s₈, so only layers with a compute format
 * (quant/linear.h) can have them: w = (code - zero) · scale · s₈. If codes are integers too, so is w / s₈,
 * and the compute format int8 needs no rounding.
 *
 * Sources: OCP Microscaling Formats (MX) 1.0, sections 5.4 and 6.3; for u8 QServe (Lin et al. 2024, section
 * 4.1).
 */
#ifndef NUM_SCALE_TYPE_H
#define NUM_SCALE_TYPE_H
#include <stdbool.h>
#include <stdint.h>
#include "num/bits.h"

enum scale_type { SCALE_F32, SCALE_BF16, SCALE_F16, SCALE_E8M0, SCALE_E4M3FN, SCALE_U8 };
extern const char *const scale_types[];		/* names by number, NULL-terminated */
extern const char *const scale_types_single[];	/* the first of them: those that need no second scale */

struct scale_kind {
	int bits;
	double min, step, max;		/* smallest number; last place of 1; largest number */
	bool power;			/* powers of two only, rounded down */
	bool divided;			/* scales have a divisor per tensor */
	bool units;			/* scales multiply a second scale, s₈ */
};
extern const struct scale_kind scale_kinds[];	/* by number */
/* The numbers of the type with at most `bits` significant bits; 0: all of them. */
struct scale_kind scale_kind_of(enum scale_type type, int bits);

/* 2^⌊log₂ x⌋ for a normal x > 0; 0 for 0 */
static inline __attribute__((always_inline)) double scale_power(double x)
{
	return bits_double(double_bits(x) & (uint64_t)0x7ff << 52);
}

/* The number of the type nearest to a finite x > 0, ties to even, clamped to its smallest and largest
 * number. */
static inline __attribute__((always_inline)) float scale_nearest(const struct scale_kind *t, double x)
{
	const double place = scale_power(x) * t->step;
	const double magic = (place > t->min ? place : t->min) * 0x1.8p52, y = x + magic - magic;

	return (float)(y < t->min ? t->min : y > t->max ? t->max : y);
}
#endif
