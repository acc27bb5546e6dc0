/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format_private.h -- kinds of number formats, and their functions for rounding and encoding
 *
 * format.c has the table of kinds and fills in the values of a format. format_codec.c rounds numbers to them.
 */
#ifndef NUM_FORMAT_PRIVATE_H
#define NUM_FORMAT_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"

struct codec {
	/* Codes of x[i] under scale[i], zero[i]. */
	void (*encode)(const struct format *f, size_t n, uint8_t code[n], const double x[n],
		const float scale[n], const uint8_t *zero);
	/* The same by x · inverse in float; NULL: not available. False if a number is so near a tie that its
	 * code may be wrong. */
	bool (*encode_fast)(const struct format *f, size_t n, uint8_t code[n], const float x[n],
		float inverse, uint8_t zero);
	/* y = nearest(x / scale) · by */
	void (*round)(const struct format *f, size_t n, float y[n], const float x[n], float scale,
		float limit, float by);
	/* y = nearest(x·inverse) · scale under the zero of each lane, all in float. */
	void (*nearest)(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
		const float x[n][lanes], const float scale[lanes], const float inverse[lanes],
		const uint8_t *zero);
};
extern const struct codec codec_integers, codec_floats, codec_quantiles;

struct format_kind {
	const char *name;		/* '#': a number, n, or x and y */
	int min;			/* n is from min to 8; 0: the kind has no n */
	bool (*fill)(struct format *f);	/* sets bits, max, grid from the numbers; false: out of range */
	void (*ties)(struct format *f);	/* updates members that depend on f->away; NULL: none does */
	const struct codec *codec;	/* NULL: the format has no grid */
	const struct code_form *form;	/* of codes for several weights; NULL: one weight */
	bool asymmetric;
	int x, y, bias;			/* 8-bit floats of hardware */
	float max;
	bool keeps_zero;		/* has a negative zero */
	enum scale_type scales;
	long group;
};
#endif
