/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format_codec.c -- rounding to the values of a format, codes and scales; see format.h and format_private.h
 *
 * Integers: q = clamp(⌊x/s⌉ + z, 0, max), x/s in double; int<N> is stored with the fixed zero point Q = 2ᴺ⁻¹
 * - 1. Floats: sign, exponent and mantissa of the nearest value. Adding a large number, whose last place is
 * the step between the values near x, rounds x. nf<N>: the rank of the nearest quantile, by bisection of the
 * list of midpoints. For floats x and s, the quotient in double is on the same side of a tie as the exact
 * quotient.
 *
 * Sources: DPQ eq. 1, 3; Micikevicius et al., FP8 formats for deep learning (2022).
 */
#include <float.h>
#include <math.h>
#include <string.h>
#include "num/bits.h"
#include "num/format_private.h"
#include "num/clones.h"

/* Maximum number of lanes; numbers at a time that are encoded in double, encoded in float, rounded. */
enum { LANES_MAX = 256, WIDE_NUMBERS = 256, FAST_NUMBERS = 512, ROUND_NUMBERS = 256 };

/* min(x, max); NaN stays NaN. */
static inline float lesser(float x, float max)
{
	return x > max ? max : x;
}

static inline double lesser_wide(double x, double max)
{
	return x > max ? max : x;
}

/* Nearest integer, ties to even, for |x| < 2⁵¹ in double and 2²² in float. It needs no call, and has the same
 * result in every vector width. */
static inline double integer(double x)
{
	return x + 0x1.8p52 - 0x1.8p52;
}

static inline float integer_float(float x)
{
	return x + 0x1.8p23f - 0x1.8p23f;
}

/* Nearest integer, ties away from zero. */
static inline double integer_away(double x)
{
	double even = integer(x), rest = x - even;

	even += rest == 0.5 && x > 0 ? 1 : 0;
	return even - (rest == -0.5 && x < 0 ? 1 : 0);
}

static inline uint8_t int_code(double x, float scale, double z, double max, bool away)
{
	double q = x / scale;

	q = q > -z ? q : -z;
	q = q < max - z ? q : max - z;
	return (uint8_t)(int)((away ? integer_away(q) : integer(q)) + z);
}

CLONES(static, void, int_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	const double max = f->max;
	const bool away = f->away;

	if (f->asymmetric)
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			code[i] = int_code(x[i], scale[i], zero[i], max, away);
	else
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			code[i] = int_code(x[i], scale[i], max, 2 * max, away);
}

/* 1/scale and the product have relative rounding errors of at most 2⁻²⁴: the result is within 4 last places
 * of the quotient. */
static const float doubt = 0x1p-22f;

CLONES(static, bool, int_encode_fast, (const struct format *f, size_t n, uint8_t code[restrict n],
	const float x[restrict n], float inverse, uint8_t zero), (f, n, code, x, inverse, zero))
{
	const float z = f->asymmetric ? zero : f->max, margin = doubt * 2 * f->max;
	const float low = -z, high = (f->asymmetric ? f->max : 2 * f->max) - z;
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

/* In float, only a quotient that becomes a tie may be rounded to the wrong side. A chunk with such a
 * quotient is rounded again in double. Quotients by powers of two are exact. */
CLONES(static, void, int_round, (const struct format *f, size_t n, float y[n], const float x[n], float scale,
	float limit, float by), (f, n, y, x, scale, limit, by))
{
	const float low = f->asymmetric ? 0 : -limit;
	const bool away = f->away, exact = !away && (float_bits(scale) & 0x7fffff) == 0;

	for (size_t i = 0, m; i < n; i += m) {
		float copy[ROUND_NUMBERS], *to = y + i;
		const float *from = x + i;
		uint32_t ties = 0;

		m = n - i < ROUND_NUMBERS ? n - i : ROUND_NUMBERS;
		if (x == y && !exact)
			from = memcpy(copy, from, m * sizeof *from);
		#pragma GCC ivdep
		for (size_t j = 0; j < m; j++) {
			float q = from[j] / scale, nearest;

			q = q < low ? low : q;
			q = q > limit ? limit : q;
			nearest = integer_float(q);
			ties |= !exact && fabsf(q - nearest) == 0.5f ? 1 : 0;
			to[j] = nearest * by;
		}
		if (ties)
			#pragma omp simd
			for (size_t j = 0; j < m; j++) {
				double q = from[j] / (double)scale;

				q = q < low ? low : q;
				q = q > limit ? limit : q;
				to[j] = (float)(away ? integer_away(q) : integer(q)) * by;
			}
	}
}

CLONES(static, void, int_nearest, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	const float max = f->asymmetric ? f->max : 2 * f->max;
	float low[LANES_MAX], high[LANES_MAX];

	for (size_t l = 0; l < lanes; l++) {
		low[l] = f->asymmetric ? -zero[l] : -f->max;
		high[l] = max + low[l];
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

/* 2ᵉ, a normal number */
static inline float power(int e)
{
	return bits_float((uint32_t)(127 + e) << 23);
}

/* Properties of a format for rounding: largest value, smallest normal value, half of the last place of 1. */
struct float_shape { float max, normal, half; bool away; };

static inline struct float_shape float_shape(const struct format *f)
{
	return (struct float_shape){ f->max, power(1 - f->bias), power(-f->y - 1), f->away };
}

/* Half of the last place of a ≥ 0, at least half of the last place of the smallest normal value. */
static inline float float_half(struct float_shape s, float a)
{
	const float e = bits_float(float_bits(a) & 0x7f800000);

	return (e > s.normal ? e : s.normal) * s.half;
}

static inline double float_half_wide(struct float_shape s, double a)
{
	const double e = bits_double(double_bits(a) & (uint64_t)0x7ff << 52);

	return (e > s.normal ? e : s.normal) * s.half;
}

/* The value nearest to a, 0 ≤ a ≤ max; NaN stays NaN. */
static inline float float_nearest(struct float_shape s, float a)
{
	const float half = float_half(s, a), magic = half * 0x1.8p24f, y = a + magic - magic;

	return s.away && a - y == half ? y + 2 * half : y;
}

static inline double float_nearest_wide(struct float_shape s, double a)
{
	const double half = float_half_wide(s, a), magic = half * 0x1.8p53, y = a + magic - magic;

	return s.away && a - y == half ? y + 2 * half : y;
}

CLONES(static, void, float_encode, (const struct format *f, size_t n, uint8_t code[n], const double x[n],
	const float scale[n], const uint8_t *zero), (f, n, code, x, scale, zero))
{
	const struct float_shape s = float_shape(f);
	const double per_step = 1 / (2.0 * s.normal * s.half);
	const int sign = f->bits - 1, y = f->y;
	const uint64_t rebias = (uint64_t)(1023 - f->bias) << y;
	const bool keeps_zero = f->kind->keeps_zero;

	(void)zero;
	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		const double v = x[i] / scale[i], a = float_nearest_wide(s, lesser_wide(fabs(v), s.max));
		const uint64_t normal = (double_bits(a) >> (52 - y)) - rebias;
		const uint64_t small = (uint64_t)(int)((a < s.normal ? a : 0) * per_step);
		uint64_t c = a < s.normal ? small : normal;

		c |= keeps_zero || c ? double_bits(v) >> 63 << sign : 0;
		code[i] = (uint8_t)(v != v ? 0 : c);
	}
}

/* A subnormal number has the step of the first normal numbers. So the smallest normal number is added to it,
 * and the sum is rounded as a normal number. */
CLONES(static, bool, float_encode_fast, (const struct format *f, size_t n, uint8_t code[restrict n],
	const float x[restrict n], float inverse, uint8_t zero), (f, n, code, x, inverse, zero))
{
	const float normal = power(1 - f->bias);
	const int shift = 23 - f->y, down = 32 - f->bits;
	const uint32_t tie = 1u << (shift - 1), rest = (1u << shift) - 1;
	const uint32_t rebias = (uint32_t)(127 - f->bias) << f->y, further = rebias + (1u << f->y);
	const uint32_t minus = 1u << (f->bits - 1), keeps_zero = f->kind->keeps_zero;
	const uint32_t max_bits = float_bits(f->max < normal ? f->max + normal : f->max) >> shift;
	const uint32_t max = max_bits - (f->max < normal ? further : rebias);
	const uint32_t by = tie - (rebias << shift), by_less = tie - (further << shift);
	uint32_t closest = UINT32_MAX, largest = 0;

	(void)zero;
	for (size_t i = 0; i < n; i++) {	/* codes increase with the magnitudes */
		const float v = x[i] * inverse, a = fabsf(v);
		const uint32_t u = float_bits(a < normal ? a + normal : a);
		uint32_t c = (u + (a < normal ? by_less : by)) >> shift;
		uint32_t from_tie = (u & rest) - (tie - 4);

		closest = from_tie < closest ? from_tie : closest;
		largest = u > largest ? u : largest;
		c = c < max ? c : max;
		c |= c | keeps_zero ? float_bits(v) >> down & minus : 0;
		code[i] = (uint8_t)c;
	}
	return closest > 8 && largest <= float_bits(INFINITY);
}

/*
 * In float, x/scale may become a tie although it is none. A chunk with such a quotient is rounded again in
 * double. There it cannot happen, as x/scale differs from a tie by at least 2⁻³³ of itself. Quotients by
 * powers of two are exact.
 */
CLONES(static, void, float_round, (const struct format *f, size_t n, float y[n], const float x[n],
	float scale, float limit, float by), (f, n, y, x, scale, limit, by))
{
	const struct float_shape s = float_shape(f);
	const bool exact = (float_bits(scale) & 0x7fffff) == 0;

	for (size_t i = 0, m; i < n; i += m) {
		float copy[ROUND_NUMBERS], *to = y + i;
		const float *from = x + i;
		uint32_t ties = 0;

		m = n - i < ROUND_NUMBERS ? n - i : ROUND_NUMBERS;
		if (x == y && !exact)
			from = memcpy(copy, from, m * sizeof *from);
		#pragma GCC ivdep
		for (size_t j = 0; j < m; j++) {
			float v = from[j] / scale, a = lesser(fabsf(v), s.max), b = float_nearest(s, a);

			ties |= !exact && fabsf(a - b) == float_half(s, a) ? 1 : 0;
			to[j] = copysignf(lesser(b, limit), v) * by;
		}
		if (ties)
			#pragma omp simd
			for (size_t j = 0; j < m; j++) {
				double v = from[j] / (double)scale, a = lesser_wide(fabs(v), s.max);
				float b = (float)float_nearest_wide(s, a);

				to[j] = copysignf(lesser(b, limit), from[j]) * by;
			}
	}
}

CLONES(static, void, float_values, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	const struct float_shape s = float_shape(f);

	(void)zero;
	for (size_t i = 0; i < n; i++)
		#pragma omp simd
		for (size_t l = 0; l < lanes; l++) {
			float v = x[i][l] * inverse[l], a = float_nearest(s, lesser(fabsf(v), s.max));

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
	f->kind->codec->round(f, n, y, x, scale, limit > 0 && limit < f->max ? limit : f->max, scale);
}

void format_values(const struct format *f, size_t n, float y[n], const float x[n], float scale)
{
	f->kind->codec->round(f, n, y, x, scale, f->max, 1);
}

void format_nearest(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const uint8_t *zero)
{
	float inverse[LANES_MAX];

	for (size_t l = 0; l < lanes; l++) {
		float i = 1 / scale[l];

		inverse[l] = i > 3e38f ? 3e38f : i;
	}
	f->kind->codec->nearest(f, n, lanes, y, x, scale, inverse, zero);
}

void format_nearest_subnormal(const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const uint8_t *zero)
{
	for (size_t l = 0; l < lanes; l++) {
		if (scale[l] >= FLT_MIN)
			continue;
		for (size_t i = 0; i < n; i++) {
			const double one = (double)x[i][l];
			uint8_t code;

			format_quantize(f, 1, &code, &y[i][l], &one, &scale[l], zero ? &zero[l] : NULL);
		}
	}
}

/* Scales of types that have fewer numbers than floats. */
CLONES(static, void, fit_rounded, (const struct format *f, size_t n, float scale[n], const double min[n],
	const double max[n]), (f, n, scale, min, max))
{
	const struct scale_kind t = format_scale_kind(f);
	const double code_max = f->max, last = scale_power(code_max), divisor = f->divisor;

	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		const double low = f->asymmetric && min[i] > 0 ? 0 : min[i];
		const double high = f->asymmetric && max[i] < 0 ? 0 : max[i];
		const double a = fabs(low), b = fabs(high), wider = a > b ? a : b;
		const double range = f->asymmetric ? high - low : wider;
		const double s = t.power ? scale_power(range) / last : range / code_max * divisor;

		scale[i] = scale_nearest(&t, range > 0 ? s : 1) / f->divisor;
	}
}

/* The float nearest to range / code_max that is neither 0 nor infinite; 1 for a range of 0. */
static inline __attribute__((always_inline)) float exact_scale(double range, double code_max)
{
	const double s = range / code_max, low = s > 0x1p-149 ? s : 0x1p-149;

	return (float)(!(range > 0) ? 1 : low < FLT_MAX ? low : FLT_MAX);
}

CLONES(, void, format_fit_all, (const struct format *f, size_t n, float scale[n], uint8_t *zero,
	const double min[n], const double max[n]), (f, n, scale, zero, min, max))
{
	const double code_max = f->max;

	if (!f->asymmetric) {
		#pragma omp simd
		for (size_t i = 0; i < n; i++) {
			double a = fabs(min[i]), b = fabs(max[i]), range = a > b ? a : b;

			scale[i] = exact_scale(range, code_max);
		}
		if (format_rounds_scales(f))
			fit_rounded(f, n, scale, min, max);
		return;
	}
	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		double a = min[i] < 0 ? min[i] : 0, b = max[i] > 0 ? max[i] : 0, range = b - a;
		double z = integer(-a * code_max / (range > 0 ? range : 1));

		scale[i] = exact_scale(range, code_max);
		zero[i] = (uint8_t)(int)(range > 0 ? z : 0);
	}
	if (format_rounds_scales(f))
		fit_rounded(f, n, scale, min, max);
}

void format_fit(const struct format *f, float *scale, uint8_t *zero, double min, double max)
{
	format_fit_all(f, 1, scale, zero, &min, &max);
}
