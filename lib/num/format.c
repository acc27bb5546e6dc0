/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format.c -- see format.h
 *
 * Integers: q = clamp(⌊x/s⌉ + z, 0, top), x/s in double; int<N> is stored with
 * the fixed zero point Q = 2ᴺ⁻¹ - 1. 8-bit floats: sign, exponent, mantissa of
 * the nearest value, rounded on the bits of an IEEE single: a normal number by
 * adding half a last place, a subnormal one by adding a number so large that
 * its own last place is the format's smallest step.
 *
 * Sources: DPQ eq. 1, 3; Micikevicius et al., FP8 formats for deep learning (2022).
 */
#include "num/format.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "num/bits.h"
#include "num/clones.h"

enum { CHUNK = 256 };

struct format_kind {
	const char *name;		/* '#' stands for a number: n, or x and y */
	bool (*fill)(struct format *f);	/* bits, top, grid from the numbers; false if they are out of range */
	/* Codes of x[i] under scale[i], zero[i]. */
	void (*encode)(const struct format *f, size_t n, uint8_t code[n], const double x[n], const float scale[n],
		const uint8_t *zero);
	void (*round)(const struct format *f, size_t n, float y[n], const float x[n], float scale, float limit);
	/* y = nearest(x·inverse) · scale under the zero of each lane, in float throughout. */
	void (*nearest)(const struct format *f, size_t n, size_t lanes, float y[n][lanes], const float x[n][lanes],
		const float scale[lanes], const float inverse[lanes], const uint8_t *zero);
	bool asymmetric;
	int x, y, bias;			/* 8-bit floats */
	float top;
};

/* --- integers --- */

/* Nearest integer, ties to even, for |x| < 2⁵¹ and 2²²: no call and the same in every vector width. */
static inline double integer(double x)
{
	return x + 0x1.8p52 - 0x1.8p52;
}

static inline float integer_float(float x)
{
	return x + 0x1.8p23f - 0x1.8p23f;
}

static bool int_fill(struct format *f)
{
	int half;

	if (f->n < 2 || f->n > 8)
		return false;
	half = 1 << (f->n - 1);
	f->bits = f->n;
	f->top = half - 1;
	for (int c = 0; c < 2 * half - 1; c++)
		f->grid[c] = c - (half - 1);
	return true;
}

static bool uint_fill(struct format *f)
{
	if (f->n < 1 || f->n > 8)
		return false;
	f->bits = f->n;
	f->top = (1 << f->n) - 1;
	for (int c = 0; c < 1 << f->n; c++)
		f->grid[c] = c;
	return true;
}

static inline uint8_t int_code(double x, float scale, double z, double top)
{
	double q = x / scale;

	q = q > -z ? q : -z;
	q = q < top - z ? q : top - z;
	return (uint8_t)(int)(integer(q) + z);
}

CLONES(static, void, int_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	const double top = f->top;

	if (f->asymmetric)
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			code[i] = int_code(x[i], scale[i], zero[i], top);
	else
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			code[i] = int_code(x[i], scale[i], top, 2 * top);
}

CLONES(static, void, int_round, (const struct format *f, size_t n, float y[n], const float x[n], float scale,
	float limit), (f, n, y, x, scale, limit))
{
	const double s = scale, high = limit, low = f->asymmetric ? 0 : -high;

	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		double q = x[i] / s;

		q = q < low ? low : q;
		q = q > high ? high : q;
		y[i] = (float)integer(q) * scale;
	}
}

CLONES(static, void, int_nearest, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	const float top = f->asymmetric ? f->top : 2 * f->top;
	float low[CHUNK], high[CHUNK];

	for (size_t l = 0; l < lanes; l++) {
		low[l] = f->asymmetric ? -zero[l] : -f->top;
		high[l] = top + low[l];
	}
	for (size_t i = 0; i < n; i++)
		#pragma omp simd
		for (size_t l = 0; l < lanes; l++) {
			float q = x[i][l] * inverse[l];

			q = q > low[l] ? q : low[l];
			q = q < high[l] ? q : high[l];
			y[i][l] = integer_float(q) * scale[l];
		}
}

/* --- 8-bit floats --- */

static bool float_fill(struct format *f)
{
	const struct format_kind *k = f->kind;

	f->x = k->x;
	f->y = k->y;
	f->bits = 1 + k->x + k->y;
	f->top = k->top;
	for (int c = 0; c < 1 << (f->bits - 1); c++) {
		int e = c >> k->y, m = c & ((1 << k->y) - 1);
		double v = e ? ldexp((1 << k->y) + m, e - k->bias - k->y) : ldexp(m, 1 - k->bias - k->y);

		if (v > k->top)
			break;
		f->grid[c] = v;
		f->grid[c | 1 << (f->bits - 1)] = -v;
	}
	return true;
}

/* What rounding needs of a kind, kept out of the loops. */
struct float_shape {
	int shift;			/* bits of a single's mantissa that go */
	uint32_t half, mask, rebias;
	float normal, magic, per_step;	/* smallest normal number; see above; 1 / smallest step */
};

static inline struct float_shape float_shape(const struct format_kind *k)
{
	struct float_shape s = { .shift = 23 - k->y };

	s.half = (1u << (s.shift - 1)) - 1;
	s.mask = ~((1u << s.shift) - 1);
	s.rebias = (uint32_t)(127 - k->bias) << k->y;
	s.normal = bits_float((uint32_t)(128 - k->bias) << 23);
	s.magic = bits_float((uint32_t)(128 - k->bias - k->y + 23) << 23);
	s.per_step = bits_float((uint32_t)(126 + k->bias + k->y) << 23);
	return s;
}

/* Nearest value of |x|, not saturated; NaN stays. */
static inline float float_nearest(struct float_shape s, float a)
{
	uint32_t u = float_bits(a);
	float big, small = a + s.magic - s.magic, y;

	u = (u + s.half + (u >> s.shift & 1)) & s.mask;
	memcpy(&big, &u, sizeof big);
	y = a < s.normal ? small : big;
	return a != a ? a : y;
}

CLONES(static, void, float_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	const struct float_shape s = float_shape(f->kind);
	const float top = f->top;
	const int sign = f->bits - 1, x_y = f->kind->y;

	(void)zero;
	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		float v = (float)(x[i] / scale[i]), a = float_nearest(s, fabsf(v));
		uint32_t normal, small, c;

		a = a > top ? top : a;
		normal = (float_bits(a) >> (23 - x_y)) - s.rebias;
		small = (uint32_t)(int)((a < s.normal ? a : 0) * s.per_step);
		c = a < s.normal ? small : normal;
		c |= float_bits(v) >> 31 << sign;
		code[i] = (uint8_t)(v != v ? 0 : c);
	}
}

CLONES(static, void, float_round, (const struct format *f, size_t n, float y[n], const float x[n], float scale,
	float limit), (f, n, y, x, scale, limit))
{
	const struct float_shape s = float_shape(f->kind);

	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		float v = x[i] / scale, a = float_nearest(s, fabsf(v));

		a = a > limit ? limit : a;
		y[i] = copysignf(a, v) * scale;
	}
}

CLONES(static, void, float_values, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	const struct float_shape s = float_shape(f->kind);
	const float top = f->top;

	(void)zero;
	for (size_t i = 0; i < n; i++)
		#pragma omp simd
		for (size_t l = 0; l < lanes; l++) {
			float v = x[i][l] * inverse[l], a = float_nearest(s, fabsf(v));

			a = a > top ? top : a;
			y[i][l] = copysignf(a, v) * scale[l];
		}
}

/* --- kinds --- */

#define INTEGERS .encode = int_encode, .round = int_round, .nearest = int_nearest
#define FLOATS .fill = float_fill, .encode = float_encode, .round = float_round, .nearest = float_values

/* ROW(name, what there is of it, how it works) */
#define KINDS(ROW) \
	ROW("int#", "int2..int8", .fill = int_fill, INTEGERS) \
	ROW("uint#", "uint1..uint8", .fill = uint_fill, INTEGERS, .asymmetric = true) \
	ROW("e4m3fn", "e4m3fn", FLOATS, .x = 4, .y = 3, .bias = 7, .top = 448) \
	ROW("e4m3ieee", "e4m3ieee", FLOATS, .x = 4, .y = 3, .bias = 7, .top = 240) \
	ROW("e5m2ieee", "e5m2ieee", FLOATS, .x = 5, .y = 2, .bias = 15, .top = 57344)

#define KIND(n, list, ...) { .name = n, __VA_ARGS__ },
static const struct format_kind kinds[] = { KINDS(KIND) };
#define LIST(n, list, ...) ", " list

const char *format_list(void)
{
	static const char list[] = KINDS(LIST);

	return list + 2;
}

/* Matches a whole name and stores what stands for each '#'. */
static bool match(const char *pattern, const char *name, int number[2])
{
	for (; *pattern; pattern++) {
		if (*pattern != '#') {
			if (tolower((unsigned char)*name++) != *pattern)
				return false;
			continue;
		}
		if (!isdigit((unsigned char)*name) || (*name == '0' && isdigit((unsigned char)name[1])))
			return false;
		for (*number = 0; isdigit((unsigned char)*name); name++)
			if ((*number = *number * 10 + *name - '0') > 99)
				return false;
		number++;
	}
	return !*name;
}

bool format_parse(struct format *f, const char *name)
{
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		int number[2] = { 0, 0 };
		size_t i;

		if (!match(kinds[k].name, name, number))
			continue;
		*f = (struct format){ .kind = &kinds[k], .asymmetric = kinds[k].asymmetric };
		f->n = f->x = number[0];
		f->y = number[1];
		for (i = 0; name[i] && i + 1 < sizeof f->name; i++)
			f->name[i] = (char)tolower((unsigned char)name[i]);
		if (kinds[k].fill(f))
			return true;
	}
	*f = (struct format){ .bits = 0 };
	return false;
}

void format_encode(const struct format *f, size_t n, uint8_t code[n], const float x[n], const float scale[n],
	const uint8_t *zero)
{
	double wide[CHUNK];

	for (size_t i = 0; i < n; i += CHUNK) {
		size_t c = n - i < CHUNK ? n - i : CHUNK;

		for (size_t j = 0; j < c; j++)
			wide[j] = x[i + j];
		f->kind->encode(f, c, code + i, wide, scale + i, zero ? zero + i : NULL);
	}
}

CLONES(, void, format_decode, (const struct format *f, size_t n, float x[n], const uint8_t code[n],
	const float scale[n], const uint8_t *zero), (f, n, x, code, scale, zero))
{
	if (f->asymmetric)
		for (size_t i = 0; i < n; i++)
			x[i] = (f->grid[code[i]] - zero[i]) * scale[i];
	else
		for (size_t i = 0; i < n; i++)
			x[i] = f->grid[code[i]] * scale[i];
}

void format_quantize(const struct format *f, size_t n, uint8_t code[n], float y[n], const double x[n],
	const float scale[n], const uint8_t *zero)
{
	f->kind->encode(f, n, code, x, scale, zero);
	format_decode(f, n, y, code, scale, zero);
}

void format_round(const struct format *f, size_t n, float y[n], const float x[n], float scale, float limit)
{
	f->kind->round(f, n, y, x, scale, limit > 0 && limit < f->top ? limit : f->top);
}

void format_nearest(const struct format *f, size_t n, size_t lanes, float y[n][lanes], const float x[n][lanes],
	const float scale[lanes], const uint8_t *zero)
{
	float inverse[CHUNK];

	for (size_t l = 0; l < lanes; l++) {
		float i = 1 / scale[l];

		inverse[l] = i > 3e38f ? 3e38f : i;
	}
	f->kind->nearest(f, n, lanes, y, x, scale, inverse, zero);
}

CLONES(, void, format_fit_all, (const struct format *f, size_t n, float scale[n], uint8_t *zero,
	const double min[n], const double max[n]), (f, n, scale, zero, min, max))
{
	const double top = f->top;

	if (!f->asymmetric) {
		#pragma omp simd
		for (size_t i = 0; i < n; i++) {
			double a = fabs(min[i]), b = fabs(max[i]);
			float s = (float)((a > b ? a : b) / top);

			scale[i] = s > 0 ? s : 1;
		}
		return;
	}
	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		double a = min[i] < 0 ? min[i] : 0, b = max[i] > 0 ? max[i] : 0, range = b - a;
		float s = (float)(range / top);
		double z = integer(-a * top / (range > 0 ? range : 1));

		scale[i] = s > 0 ? s : 1;
		zero[i] = (uint8_t)(int)(s > 0 ? z : 0);
	}
}

void format_fit(const struct format *f, float *scale, uint8_t *zero, double min, double max)
{
	format_fit_all(f, 1, scale, zero, &min, &max);
}
