/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format.h -- number formats of at most 8 bits: int<N>, uint<N>, e<x>m<y>, nf<N>, mxfp4, nvfp4, e4m3fn,
 * e4m3ieee, e5m2ieee
 *
 * A format is a list of values, one a code; a stored number is
 *	x̂ = (grid[code] - zero) · scale,
 * with zero = 0 but for formats that have a zero point (uint<N>). Scales are numbers of a type, over a
 * divisor that a tensor has where the type asks for one (num/scale_type.h). A format whose codes stand for
 * several weights names their form, and may have no values of its own (format_has_grid()). Kinds of formats
 * are rows of a table in format.c; nothing outside it knows which kind a format is of.
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
	bool integers;			/* int<N> and uint<N>: values are whole numbers, one a code */
	float max;			/* largest value; asymmetric: the largest code */
	float unit;			/* power of two of which all values are multiples */
	float grid[256];		/* value of a code; codes that stand for none repeat 0 */
	uint8_t code_mask, code_last;	/* a code c stands for a value where (c & code_mask) <= code_last */
	const struct format_kind *kind;
	const struct code_form *form;	/* NULL: a code stands for one weight (num/code_form.h) */
	int n, x, y, bias;		/* parameters of the kind */
	bool away;			/* ties go away from zero, not to even */
	double edge[256];		/* nf<N>: edge[c] is the least x whose code is above c */
	enum scale_type scales;		/* of mxfp4, nvfp4 their own; of others f32 */
	int scale_bits;			/* significant ones of a scale, at most; 0: those of their type */
	float divisor;			/* of scales; 1 until format_tensor() */
	long group;			/* columns under one scale by the kind's standard; 0: any */
};

/* Fills *f; false if there is no such format. Case does not matter. */
bool format_parse(struct format *f, const char *name);
/* Whether numbers can be rounded to its values; otherwise only a quantizer of its own makes its codes. */
bool format_has_grid(const struct format *f);
extern const char *const format_tie_names[];	/* "even", "away" */
/* Ties away from zero, for all that follows; or to even again. */
void format_ties(struct format *f, bool away);
/* Scales of this type for all that follows; false if the format has its own, of another one. */
bool format_scales(struct format *f, enum scale_type type);
/* The numbers that scales are rounded to; whether there are fewer of them than floats. */
struct scale_kind format_scale_kind(const struct format *f);
bool format_rounds_scales(const struct format *f);
/* The divisor of a tensor whose numbers lie in min .. max: no scale within goes beyond the type's largest. */
void format_tensor(struct format *f, double min, double max);
/* A scale s > 0 in the type of scales, the nearest that there is under the divisor. */
float format_scale(const struct format *f, double s);
/* Scales as they are stored: times the divisor, numbers of the type. */
void format_store(const struct format *f, size_t n, float scale[n]);
/* The name of the format that was probably meant, or NULL if none is like it; free() it. */
char *format_closest(const char *name);
/* The FP8 format of hardware that is easily taken for this one (e4m3: e4m3fn), or NULL. */
const char *format_hint(const struct format *f);
/* What formats there are, for messages: "int2..int8, uint1..uint8, ..." */
const char *format_list(void);
/* The largest power of two of which every value is an integer multiple, none beyond ±max; 0: none is. */
float format_unit(const struct format *f, float max);

/*
 * Codes of x under scale and zero, one each: the nearest value of x/scale, taken in double, ties to even
 * (of ⌊x/v⌉, v the step there; of the rank for nf<N>), saturating. zero is read only for
 * asymmetric formats, else may be NULL.
 */
void format_encode(const struct format *f, size_t n, uint8_t code[n], const float x[n],
	const float scale[n], const uint8_t *zero);
/* The same under one scale and zero, and quicker. */
void format_encode_group(const struct format *f, size_t n, uint8_t code[n], const float x[n], float scale,
	uint8_t zero);
/* x = (grid[code] - zero) · scale in float. */
void format_decode(const struct format *f, size_t n, float x[n], const uint8_t code[n],
	const float scale[n], const uint8_t *zero);
/* Codes of x in double, and their values y as format_decode() gives them. */
void format_quantize(const struct format *f, size_t n, uint8_t code[n], float y[n], const double x[n],
	const float scale[n], const uint8_t *zero);
/*
 * Simulated arithmetic: y = scale · nearest(x / scale), of the exact quotient, at most limit (0: f->max); NaN
 * stays, y may be x.
 */
void format_round(const struct format *f, size_t n, float y[n], const float x[n], float scale, float limit);
/* The values themselves: y = nearest(x / scale); NaN stays. */
void format_values(const struct format *f, size_t n, float y[n], const float x[n], float scale);

/*
 * Scale and zero of n values from their range (DPQ eq. 1, 8): asymmetric s = (max - min)/top over the range
 * widened to hold 0, z = round(-min·top/(max - min)), product first, in double; otherwise s = max|x|/top.
 * All zero: s = 1, z = 0 (asymmetric: the code of zero). min and max are the range, not the data, so that a
 * search can shrink them. s is rounded to the type of scales, once and in double: s·divisor to nearest,
 * never to zero, over the divisor in float; or to 2^(⌊log₂ range⌋ - ⌊log₂ top⌋), under which the largest
 * number saturates unless it lies below the top (MX). All zero: 1/divisor.
 */
void format_fit(const struct format *f, float *scale, uint8_t *zero, double min, double max);
void format_fit_all(const struct format *f, size_t n, float scale[n], uint8_t *zero, const double min[n],
	const double max[n]);

/*
 * For searches: what becomes of n values in each of at most 256 lanes under the lane's scale and zero, as
 * x · (1/scale) in float: at a tie it may be the other neighbour.
 */
void format_nearest(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const uint8_t *zero);
#endif
