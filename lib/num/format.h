/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format.h -- number formats of at most 8 bits: int<N>, uint<N>, e<x>m<y>, nf<N>, mxfp4, nvfp4, e4m3fn,
 * e4m3ieee, e5m2ieee; and formats with a code for several weights: e8p (num/e8p.h), trellis codes
 * (num/trellis.h), blocks of GGUF (num/gguf_block.h)
 *
 * A format is a list of values, one per code. A stored number is
 *	x̂ = (grid[code] - zero) · scale,
 * where zero = 0 for formats without a zero point; uint<N> has one. A scale is a number of the scale type,
 * divided by the divisor of the tensor if the type has divisors (num/scale_type.h).
 *
 * A format whose codes represent several weights has a form (num/code_form.h), and may have no list of values
 * (format_has_grid()). Kinds of formats are rows of a table in format.c; no other file depends on the kind.
 *
 * Calling sequence: format_parse(), then format_ties(), format_scales() and, for each tensor,
 * format_tensor(); then format_fit() for each group, format_encode() and format_decode(). Arguments are not
 * checked; only format_parse() and format_scales() can fail.
 */
#ifndef NUM_FORMAT_H
#define NUM_FORMAT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/scale_type.h"

struct code_form;
struct format_kind;
struct format {
	char name[12];			/* canonical, lower case */
	int bits;
	bool asymmetric;		/* codes count from a zero point */
	bool integers;			/* int<N> and uint<N>: values are integers, one per code */
	float max;			/* largest value; asymmetric: the largest code */
	float unit;			/* largest power of two that divides all values; 0: none */
	float grid[256];		/* value of a code; 0 for codes without a value */
	uint8_t code_mask, code_last;	/* a code c has a value if (c & code_mask) <= code_last */
	const struct format_kind *kind;
	const struct code_form *form;	/* NULL: a code represents one weight (num/code_form.h) */
	int n, x, y, bias;		/* parameters of the kind */
	bool away;			/* ties are rounded away from zero, not to even */
	double edge[256];		/* nf<N>: edge[c] is the smallest x whose code is above c */
	enum scale_type scales;		/* type of scales; fixed for mxfp4 and nvfp4, else f32 by default */
	int scale_bits;			/* maximum significant bits of a scale; 0: those of the type */
	float divisor;			/* divides the scales; 1 until format_tensor() */
	long group;			/* columns per scale, by the standard of the kind; 0: any; -1: all */
};

/* Fills *f; false if no format has this name. Case is ignored. */
bool format_parse(struct format *f, const char *name);
/* Whether the format has a list of values, to which numbers can be rounded. If not, only a special quantizer
 * makes its codes. */
bool format_has_grid(const struct format *f);
extern const char *const format_tie_names[];	/* "even", "away" */
/* From now on, ties are rounded away from zero, or to even. */
void format_ties(struct format *f, bool away);
/* Sets the type of scales. False if the format requires another type. */
bool format_scales(struct format *f, enum scale_type type);
/* The set of numbers to which scales are rounded; whether it is smaller than the set of floats. */
struct scale_kind format_scale_kind(const struct format *f);
bool format_rounds_scales(const struct format *f);
/* Sets the divisor for a tensor with numbers in min .. max, so that no scale in it exceeds the largest
 * number of the type. */
void format_tensor(struct format *f, double min, double max);
/* A scale s > 0 rounded to the nearest number of the scale type under the divisor. */
float format_scale(const struct format *f, double s);
/* Converts scales to stored scales: times the divisor, numbers of the type. */
void format_store(const struct format *f, size_t n, float scale[n]);
/* The name of the format that was probably meant, or NULL if no name is similar; free() it. */
char *format_closest(const char *name);
/* The FP8 format of hardware that this one is easily confused with (e4m3: e4m3fn), or NULL. */
const char *format_hint(const struct format *f);
/* The names of all formats, or of those with a grid, for messages: "int2..int8, uint1..uint8, ..." */
const char *format_list(bool grids);
/* f->unit if no value is more than `max` units from zero; else 0. */
float format_unit(const struct format *f, float max);

/*
 * Codes of x under scale and zero, one per number: the value nearest to x/scale, computed in double and
 * saturated. Ties are rounded to even: ⌊x/v⌉ is even, where v is the step there; for nf<N> the rank is even.
 * zero is read for asymmetric formats only, and may be NULL for others.
 */
void format_encode(const struct format *f, size_t n, uint8_t code[n], const float x[n],
	const float scale[n], const uint8_t *zero);
/* The same with one scale and zero for all, and faster. */
void format_encode_group(const struct format *f, size_t n, uint8_t code[n], const float x[n], float scale,
	uint8_t zero);
/* x = (grid[code] - zero) · scale in float. */
void format_decode(const struct format *f, size_t n, float x[n], const uint8_t code[n],
	const float scale[n], const uint8_t *zero);
/* Codes of x, in double, and their decoded values y. */
void format_quantize(const struct format *f, size_t n, uint8_t code[n], float y[n], const double x[n],
	const float scale[n], const uint8_t *zero);
/*
 * Simulated arithmetic: y = scale · nearest(x / scale). The result is that of the exact quotient. Magnitudes
 * of nearest() are at most `limit` (0: f->max). NaN stays NaN. y may be x.
 */
void format_round(const struct format *f, size_t n, float y[n], const float x[n], float scale, float limit);
/* Values without the scale: y = nearest(x / scale); NaN stays NaN. */
void format_values(const struct format *f, size_t n, float y[n], const float x[n], float scale);

/*
 * Scale s and zero z of a range (DPQ eq. 1, 8), with M = f->max:
 *	asymmetric	s = (max - min)/M, z = round(-min·M/(max - min)), over the range widened to include 0
 *	symmetric	s = max(|min|, |max|)/M
 * z is computed in double, the product first. s is clamped to the floats above 0. If the range is 0, s = 1
 * and z = 0. min and max are a range, not data, so that a search can shrink it.
 *
 * s is rounded once, in double, to the type of scales: s·divisor to the nearest number, never to zero, and
 * then divided by the divisor in float. Powers of two (MX) are 2^(⌊log₂ range⌋ - ⌊log₂ M⌋); under them the
 * largest number of the range saturates if its quotient is above M. If the range is 0, s = 1/divisor.
 */
void format_fit(const struct format *f, float *scale, uint8_t *zero, double min, double max);
void format_fit_all(const struct format *f, size_t n, float scale[n], uint8_t *zero, const double min[n],
	const double max[n]);

/*
 * For searches: y = decoded value of x, for n numbers in each of at most 256 lanes; scale and zero are per
 * lane. The quotient is x · (1/scale) in float, so that near a tie y may be the other neighbour. A subnormal
 * scale has no reciprocal: format_nearest_subnormal() then computes these lanes again, by division.
 */
void format_nearest(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const uint8_t *zero);
void format_nearest_subnormal(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const uint8_t *zero);
#endif
