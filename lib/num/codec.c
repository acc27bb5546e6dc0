/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * codec.c -- rounding to the values of a format, their codes and scales; see codec.h and format.h
 *
 * Integers: q = clamp(⌊x/s⌉ + z, 0, top), x/s in double; int<N> is stored with the fixed zero point
 * Q = 2ᴺ⁻¹ - 1. Floats: sign, exponent, mantissa of the nearest value, rounded on the bits of an IEEE
 * number: a normal one by adding half a last place, a subnormal one by adding a number so large that its
 * own last place is the format's smallest step. nf<N>: the rank of the nearest quantile, by halving a list
 * of midpoints.
 *
 * Sources: DPQ eq. 1, 3; Micikevicius et al., FP8 formats for deep learning (2022).
 */
#include "num/codec.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "num/bits.h"
#include "num/clones.h"

/* How many lanes there may be, and how many numbers are encoded at a time: in double, in float. */
enum { LANES_MOST = 256, WIDE_NUMBERS = 256, FAST_NUMBERS = 512 };

/* Nearest integer, ties to even, for |x| < 2⁵¹ and 2²²: no call and the same in every vector width. */
static inline double integer(double x)
{
	return x + 0x1.8p52 - 0x1.8p52;
}

static inline float integer_float(float x)
{
	return x + 0x1.8p23f - 0x1.8p23f;
}

/* The same with ties away from zero. */
static inline double integer_away(double x)
{
	double even = integer(x), rest = x - even;

	even += rest == 0.5 && x > 0 ? 1 : 0;
	return even - (rest == -0.5 && x < 0 ? 1 : 0);
}

static inline uint8_t int_code(double x, float scale, double z, double top, bool away)
{
	double q = x / scale;

	q = q > -z ? q : -z;
	q = q < top - z ? q : top - z;
	return (uint8_t)(int)((away ? integer_away(q) : integer(q)) + z);
}

CLONES(static, void, int_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	const double top = f->top;
	const bool away = f->away;

	if (f->asymmetric)
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			code[i] = int_code(x[i], scale[i], zero[i], top, away);
	else
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			code[i] = int_code(x[i], scale[i], top, 2 * top, away);
}

/* 1/scale and the product are rounded by at most 2⁻²⁴ of themselves: within 4 last places of the quotient. */
static const float doubt = 0x1p-22f;

CLONES(static, bool, int_encode_fast, (const struct format *f, size_t n, uint8_t code[restrict n],
	const float x[restrict n], float inverse, uint8_t zero), (f, n, code, x, inverse, zero))
{
	const float z = f->asymmetric ? zero : f->top, margin = doubt * 2 * f->top;
	const float low = -z, high = (f->asymmetric ? f->top : 2 * f->top) - z;
	uint32_t farthest = 0;

	for (size_t i = 0; i < n; i++) {
		float q = x[i] * inverse, nearest;
		uint32_t rest;

		q = q > low ? q : low;
		q = q < high ? q : high;
		nearest = integer_float(q);
		rest = float_bits(fabsf(q - nearest));
		farthest = rest > farthest ? rest : farthest;
		code[i] = (uint8_t)(int)(nearest + z);
	}
	return farthest <= float_bits(0.5f - margin);
}

CLONES(static, void, int_round, (const struct format *f, size_t n, float y[n], const float x[n], float scale,
	float limit, float by), (f, n, y, x, scale, limit, by))
{
	const double s = scale, high = limit, low = f->asymmetric ? 0 : -high;
	const bool away = f->away;

	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		double q = x[i] / s;

		q = q < low ? low : q;
		q = q > high ? high : q;
		y[i] = (float)(away ? integer_away(q) : integer(q)) * by;
	}
}

CLONES(static, void, int_nearest, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	const float top = f->asymmetric ? f->top : 2 * f->top;
	float low[LANES_MOST], high[LANES_MOST];

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

/* What rounding needs of a format, kept out of the loops. */
struct float_shape {
	int shift, wide_shift;		/* bits of a single's and a double's mantissa that are dropped */
	uint32_t half, mask, rebias;
	uint64_t wide_half, wide_mask, wide_rebias;
	float normal, magic, half_step;	/* smallest normal number; last place of it is a step; half a step */
	double wide_magic, per_step;	/* 1 / smallest step */
	bool away, up;			/* ties away from zero; y = 0: up, to where ⌊x/v⌉ = 2 */
};

/* 2ᵉ, a normal number */
static inline double power(int e)
{
	uint64_t u = (uint64_t)(1023 + e) << 52;
	double x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static inline struct float_shape float_shape(const struct format *f)
{
	struct float_shape s = { .shift = 23 - f->y, .wide_shift = 52 - f->y, .away = f->away };

	s.up = f->away || f->y == 0;
	s.half = (1u << (s.shift - 1)) - 1;
	s.mask = ~((1u << s.shift) - 1);
	s.rebias = (uint32_t)(127 - f->bias) << f->y;
	s.wide_half = ((uint64_t)1 << (s.wide_shift - 1)) - 1;
	s.wide_mask = ~(((uint64_t)1 << s.wide_shift) - 1);
	s.wide_rebias = (uint64_t)(1023 - f->bias) << f->y;
	s.normal = (float)power(1 - f->bias);
	s.magic = (float)power(1 - f->bias - f->y + 23);
	s.wide_magic = power(1 - f->bias - f->y + 52);
	s.half_step = (float)power(-f->bias - f->y);
	s.per_step = power(f->bias + f->y - 1);
	return s;
}

/* Nearest value of |x|, not saturated; NaN stays. */
static inline float float_nearest(struct float_shape s, float a)
{
	uint32_t u = float_bits(a);
	float big, small = a + s.magic - s.magic, y;

	small += s.away && a - small == s.half_step ? 2 * s.half_step : 0;
	u = (u + s.half + (s.up ? 1 : u >> s.shift & 1)) & s.mask;
	memcpy(&big, &u, sizeof big);
	y = a < s.normal ? small : big;
	return a != a ? a : y;
}

static inline double float_nearest_wide(struct float_shape s, double a)
{
	uint64_t u;
	double big, small = a + s.wide_magic - s.wide_magic, y;

	memcpy(&u, &a, sizeof u);
	small += s.away && a - small == s.half_step ? 2 * s.half_step : 0;
	u = (u + s.wide_half + (s.up ? 1 : u >> s.wide_shift & 1)) & s.wide_mask;
	memcpy(&big, &u, sizeof big);
	y = a < s.normal ? small : big;
	return a != a ? a : y;
}

CLONES(static, void, float_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	const struct float_shape s = float_shape(f);
	const double top = f->top;
	const int sign = f->bits - 1, y = f->y;
	const bool keeps_zero = f->kind->keeps_zero;

	(void)zero;
	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		double v = x[i] / scale[i], a = float_nearest_wide(s, fabs(v));
		uint64_t u, negative, normal, small, c;

		a = a > top ? top : a;
		memcpy(&u, &a, sizeof u);
		memcpy(&negative, &v, sizeof negative);
		normal = (u >> (52 - y)) - s.wide_rebias;
		small = (uint64_t)(int)((a < s.normal ? a : 0) * s.per_step);
		c = a < s.normal ? small : normal;
		c |= keeps_zero || c ? negative >> 63 << sign : 0;
		code[i] = (uint8_t)(v != v ? 0 : c);
	}
}

/* A subnormal number has the step of the first normal ones: with 1 added it is rounded as one of them. */
CLONES(static, bool, float_encode_fast, (const struct format *f, size_t n, uint8_t code[restrict n],
	const float x[restrict n], float inverse, uint8_t zero), (f, n, code, x, inverse, zero))
{
	const struct float_shape s = float_shape(f);
	const float normal = s.normal;
	const uint32_t tie = s.half + 1, rest = ~s.mask, rebias = s.rebias, further = rebias + (1u << f->y);
	const uint32_t minus = 1u << (f->bits - 1), keeps_zero = f->kind->keeps_zero;
	const uint32_t top_bits = float_bits(f->top < normal ? f->top + normal : f->top) >> s.shift;
	const uint32_t top = top_bits - (f->top < normal ? further : rebias);
	const uint32_t by = tie - (rebias << s.shift), by_less = tie - (further << s.shift);
	const int shift = s.shift, down = 32 - f->bits;
	uint32_t closest = UINT32_MAX, largest = 0;

	(void)zero;
	for (size_t i = 0; i < n; i++) {	/* codes of numbers without their signs grow with them */
		const float v = x[i] * inverse, a = fabsf(v);
		const uint32_t u = float_bits(a < normal ? a + normal : a);
		uint32_t c = (u + (a < normal ? by_less : by)) >> shift;
		uint32_t from_tie = (u & rest) - (tie - 4);

		closest = from_tie < closest ? from_tie : closest;
		largest = u > largest ? u : largest;
		c = c < top ? c : top;
		c |= c | keeps_zero ? float_bits(v) >> down & minus : 0;
		code[i] = (uint8_t)c;
	}
	return closest > 8 && largest <= float_bits(INFINITY);
}

CLONES(static, void, float_round, (const struct format *f, size_t n, float y[n], const float x[n],
	float scale, float limit, float by), (f, n, y, x, scale, limit, by))
{
	const struct float_shape s = float_shape(f);

	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		float v = x[i] / scale, a = float_nearest(s, fabsf(v));

		a = a > limit ? limit : a;
		y[i] = copysignf(a, v) * by;
	}
}

CLONES(static, void, float_values, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	const struct float_shape s = float_shape(f);
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

static inline uint32_t quantile_rank(const double edge[256], int bits, double x)
{
	uint32_t c = 0;

	for (int b = bits - 1; b >= 0; b--)
		c += (uint32_t)(x >= edge[c + (1u << b) - 1]) << b;
	return c;
}

CLONES(static, void, quantile_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	(void)zero;
	for (size_t i = 0; i < n; i++)
		code[i] = (uint8_t)quantile_rank(f->edge, f->bits, x[i] / scale[i]);
}

CLONES(static, void, quantile_round, (const struct format *f, size_t n, float y[n], const float x[n],
	float scale, float limit, float by), (f, n, y, x, scale, limit, by))
{
	for (size_t i = 0; i < n; i++) {
		float v = f->grid[quantile_rank(f->edge, f->bits, (double)x[i] / scale)];

		v = v > limit ? limit : v;
		v = v < -limit ? -limit : v;
		y[i] = x[i] != x[i] ? x[i] : v * by;
	}
}

CLONES(static, void, quantile_nearest, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	(void)zero;
	for (size_t i = 0; i < n; i++)
		for (size_t l = 0; l < lanes; l++) {
			float v = f->grid[quantile_rank(f->edge, f->bits, (double)x[i][l] * inverse[l])];

			y[i][l] = v * scale[l];
		}
}

const struct codec codec_integers = { int_encode, int_encode_fast, int_round, int_nearest };
const struct codec codec_floats = { float_encode, float_encode_fast, float_round, float_values };
const struct codec codec_quantiles = { quantile_encode, NULL, quantile_round, quantile_nearest };

void format_encode(const struct format *f, size_t n, uint8_t code[n], const float x[n], const float scale[n],
	const uint8_t *zero)
{
	double wide[WIDE_NUMBERS];

	for (size_t i = 0; i < n; i += WIDE_NUMBERS) {
		size_t c = n - i < WIDE_NUMBERS ? n - i : WIDE_NUMBERS;

		for (size_t j = 0; j < c; j++)
			wide[j] = x[i + j];
		f->kind->codec->encode(f, c, code + i, wide, scale + i, zero ? zero + i : NULL);
	}
}

void format_encode_group(const struct format *f, size_t n, uint8_t code[n], const float x[n], float scale,
	uint8_t zero)
{
	const float inverse = 1 / scale;
	const bool fast = f->kind->codec->encode_fast && inverse >= FLT_MIN && inverse <= FLT_MAX;
	float scales[WIDE_NUMBERS];
	uint8_t zeros[WIDE_NUMBERS];

	for (size_t i = 0, m; i < n; i += m) {
		m = n - i < FAST_NUMBERS ? n - i : FAST_NUMBERS;
		if (fast && f->kind->codec->encode_fast(f, m, code + i, x + i, inverse, zero))
			continue;
		m = n - i < WIDE_NUMBERS ? n - i : WIDE_NUMBERS;
		for (size_t j = 0; j < m; j++)
			scales[j] = scale, zeros[j] = zero;
		format_encode(f, m, code + i, x + i, scales, zeros);
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
	f->kind->codec->encode(f, n, code, x, scale, zero);
	format_decode(f, n, y, code, scale, zero);
}

void format_round(const struct format *f, size_t n, float y[n], const float x[n], float scale, float limit)
{
	f->kind->codec->round(f, n, y, x, scale, limit > 0 && limit < f->top ? limit : f->top, scale);
}

void format_values(const struct format *f, size_t n, float y[n], const float x[n], float scale)
{
	f->kind->codec->round(f, n, y, x, scale, f->top, 1);
}

void format_nearest(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const uint8_t *zero)
{
	float inverse[LANES_MOST];

	for (size_t l = 0; l < lanes; l++) {
		float i = 1 / scale[l];

		inverse[l] = i > 3e38f ? 3e38f : i;
	}
	f->kind->codec->nearest(f, n, lanes, y, x, scale, inverse, zero);
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
