/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format.c -- see format.h
 *
 * Integers: q = clamp(⌊x/s⌉ + z, 0, top), x/s in double; int<N> is stored with
 * the fixed zero point Q = 2ᴺ⁻¹ - 1. Floats: sign, exponent, mantissa of the
 * nearest value, rounded on the bits of an IEEE number: a normal one by adding
 * half a last place, a subnormal one by adding a number so large that its own
 * last place is the format's smallest step. nf<N>: the rank of the nearest
 * quantile, by halving a list of midpoints.
 *
 * Sources: DPQ eq. 1, 3; FPE2M2 section 3.1; Micikevicius et al., FP8 formats for
 * deep learning (2022); QLoRA (Dettmers et al., 2023), appendix E.
 */
#include "num/format.h"
#include <ctype.h>
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "num/bits.h"
#include "num/clones.h"

enum { CHUNK = 256, LONG = 512 };

struct format_kind {
	const char *name;		/* '#' stands for a number: n, or x and y */
	bool (*fill)(struct format *f);	/* bits, top, grid from the numbers; false if they are out of range */
	/* Codes of x[i] under scale[i], zero[i]. */
	void (*encode)(const struct format *f, size_t n, uint8_t code[n], const double x[n], const float scale[n],
		const uint8_t *zero);
	/* The same of x · (1/scale) in float, NULL if there is none: false if a product is so close to a tie that the quotient
	 * may be beyond it, or on it. */
	bool (*encode_fast)(const struct format *f, size_t n, uint8_t code[n], const float x[n], float inverse, uint8_t zero);
	void (*round)(const struct format *f, size_t n, float y[n], const float x[n], float scale, float limit);
	/* y = nearest(x·inverse) · scale under the zero of each lane, in float throughout. */
	void (*nearest)(const struct format *f, size_t n, size_t lanes, float y[n][lanes], const float x[n][lanes],
		const float scale[lanes], const float inverse[lanes], const uint8_t *zero);
	void (*ties)(struct format *f);	/* what is kept of f->away beside it; NULL: nothing */
	bool asymmetric;
	int x, y, bias;			/* 8-bit floats of hardware */
	float top;
	bool keeps_zero;		/* has a negative zero */
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

/* The same with ties away from zero. */
static inline double integer_away(double x)
{
	double even = integer(x), rest = x - even;

	even += rest == 0.5 && x > 0 ? 1 : 0;
	return even - (rest == -0.5 && x < 0 ? 1 : 0);
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
	f->code_last = (uint8_t)(2 * half - 2);
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

/* 1/scale and the product are each rounded by at most 2⁻²⁴ of themselves: within 4 last places of the quotient. */
static const float doubt = 0x1p-22f;

CLONES(static, bool, int_encode_fast, (const struct format *f, size_t n, uint8_t code[restrict n], const float x[restrict n],
	float inverse, uint8_t zero), (f, n, code, x, inverse, zero))
{
	const float z = f->asymmetric ? zero : f->top, low = -z, high = (f->asymmetric ? f->top : 2 * f->top) - z;
	const float margin = doubt * 2 * f->top;
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
	float limit), (f, n, y, x, scale, limit))
{
	const double s = scale, high = limit, low = f->asymmetric ? 0 : -high;
	const bool away = f->away;

	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		double q = x[i] / s;

		q = q < low ? low : q;
		q = q > high ? high : q;
		y[i] = (float)(away ? integer_away(q) : integer(q)) * scale;
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

/* --- floats --- */

static bool float_fill(struct format *f)
{
	f->bits = 1 + f->x + f->y;
	for (int c = 0; c < 1 << (f->bits - 1); c++) {
		int e = c >> f->y, m = c & ((1 << f->y) - 1);
		double v = e ? ldexp((1 << f->y) + m, e - f->bias - f->y) : ldexp(m, 1 - f->bias - f->y);

		if (v > f->top)
			break;
		f->grid[c] = (float)v;
		f->grid[c | 1 << (f->bits - 1)] = c || f->kind->keeps_zero ? (float)-v : 0;
	}
	return true;
}

static bool hardware_fill(struct format *f)
{
	f->x = f->kind->x;
	f->y = f->kind->y;
	f->bias = f->kind->bias;
	f->top = f->kind->top;
	float_fill(f);
	f->code_mask = 0x7f;		/* above the largest value there are infinity and NaN */
	for (f->code_last = 0; f->grid[f->code_last] < f->top; f->code_last++)
		;
	return true;
}

/* FPE2M2 section 3.1: bias 0, and every code is a number. */
static bool exmy_fill(struct format *f)
{
	if (f->x + f->y < 1 || f->x + f->y > 7 || f->x > 6)
		return false;
	f->bias = 0;
	f->top = (float)(f->x ? ldexp((2 << f->y) - 1, (1 << f->x) - 1 - f->y) : ldexp((1 << f->y) - 1, 1 - f->y));
	return float_fill(f);
}

/* What rounding needs of a format, kept out of the loops. */
struct float_shape {
	int shift, wide_shift;			/* bits of a single's and a double's mantissa that go */
	uint32_t half, mask, rebias;
	uint64_t wide_half, wide_mask, wide_rebias;
	float normal, magic, half_step;		/* smallest normal number; see above; half the smallest step */
	double wide_magic, per_step;		/* 1 / smallest step */
	bool away, up;				/* ties away from zero; y = 0: up, to where ⌊x/v⌉ = 2 */
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

/* A subnormal number has the step of the first normal ones, so that it can be rounded as one of them, 1 further on. */
CLONES(static, bool, float_encode_fast, (const struct format *f, size_t n, uint8_t code[restrict n], const float x[restrict n],
	float inverse, uint8_t zero), (f, n, code, x, inverse, zero))
{
	const struct float_shape s = float_shape(f);
	const float normal = s.normal;
	const uint32_t tie = s.half + 1, rest = ~s.mask, rebias = s.rebias, further = rebias + (1u << f->y);
	const uint32_t minus = 1u << (f->bits - 1), keeps_zero = f->kind->keeps_zero;
	const uint32_t top = (f->top < normal ? float_bits(f->top + normal) >> s.shift : (float_bits(f->top) >> s.shift) + (1u << f->y)) - further;
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

CLONES(static, void, float_round, (const struct format *f, size_t n, float y[n], const float x[n], float scale,
	float limit), (f, n, y, x, scale, limit))
{
	const struct float_shape s = float_shape(f);

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

/* --- quantiles of the normal distribution --- */

/* Where x passes to the next code. */
static void quantile_edges(struct format *f)
{
	const int n = 1 << f->bits;

	for (int c = 0; c + 1 < n; c++) {
		double middle = ((double)f->grid[c] + f->grid[c + 1]) / 2;
		bool tie_goes_up = f->away ? middle > 0 : c % 2;

		f->edge[c] = tie_goes_up ? middle : nextafter(middle, INFINITY);
	}
}

static bool quantile_fill(struct format *f)
{
	if (f->n < 2 || f->n > 8)
		return false;

	const int half = 1 << (f->n - 1);
	const double o = ((1 - 0.5 / (2 * half - 1)) + (1 - 0.25 / half)) / 2, top = gsl_cdf_ugaussian_Pinv(o);

	f->bits = f->n;
	f->top = 1;
	for (int i = 0; i < half; i++)		/* positives: half of them, negatives: one less */
		f->grid[2 * half - 1 - i] = (float)(gsl_cdf_ugaussian_Pinv(o + (0.5 - o) * i / half) / top);
	for (int i = 0; i + 1 < half; i++)
		f->grid[i] = (float)(-gsl_cdf_ugaussian_Pinv(o + (0.5 - o) * i / (half - 1)) / top);
	quantile_edges(f);
	return true;
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

CLONES(static, void, quantile_round, (const struct format *f, size_t n, float y[n], const float x[n], float scale,
	float limit), (f, n, y, x, scale, limit))
{
	for (size_t i = 0; i < n; i++) {
		float v = f->grid[quantile_rank(f->edge, f->bits, (double)x[i] / scale)];

		v = v > limit ? limit : v;
		v = v < -limit ? -limit : v;
		y[i] = x[i] != x[i] ? x[i] : v * scale;
	}
}

CLONES(static, void, quantile_nearest, (const struct format *f, size_t n, size_t lanes, float y[n][lanes],
	const float x[n][lanes], const float scale[lanes], const float inverse[lanes], const uint8_t *zero),
	(f, n, lanes, y, x, scale, inverse, zero))
{
	(void)zero;
	for (size_t i = 0; i < n; i++)
		for (size_t l = 0; l < lanes; l++)
			y[i][l] = f->grid[quantile_rank(f->edge, f->bits, (double)x[i][l] * inverse[l])] * scale[l];
}

/* --- kinds --- */

#define INTEGERS .encode = int_encode, .encode_fast = int_encode_fast, .round = int_round, .nearest = int_nearest
#define FLOATS .encode = float_encode, .encode_fast = float_encode_fast, .round = float_round, .nearest = float_values
#define HARDWARE FLOATS, .fill = hardware_fill, .keeps_zero = true
#define QUANTILES .encode = quantile_encode, .round = quantile_round, .nearest = quantile_nearest, .ties = quantile_edges

/* ROW(name, what there is of it, how it works) */
#define KINDS(ROW) \
	ROW("int#", "int2..int8", .fill = int_fill, INTEGERS) \
	ROW("uint#", "uint1..uint8", .fill = uint_fill, INTEGERS, .asymmetric = true) \
	ROW("e#m#", "e<x>m<y> (1 <= x + y <= 7, x <= 6)", .fill = exmy_fill, FLOATS) \
	ROW("nf#", "nf2..nf8", .fill = quantile_fill, QUANTILES) \
	ROW("e4m3fn", "e4m3fn", HARDWARE, .x = 4, .y = 3, .bias = 7, .top = 448) \
	ROW("e4m3ieee", "e4m3ieee", HARDWARE, .x = 4, .y = 3, .bias = 7, .top = 240) \
	ROW("e5m2ieee", "e5m2ieee", HARDWARE, .x = 5, .y = 2, .bias = 15, .top = 57344)

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
		if (!kinds[k].fill(f))
			continue;
		f->code_mask = f->code_mask ? f->code_mask : 0xff;
		f->code_last = f->code_last ? f->code_last : (uint8_t)((1 << f->bits) - 1);
		return true;
	}
	*f = (struct format){ .bits = 0 };
	return false;
}

const char *const format_tie_names[] = { "even", "away", NULL };

void format_ties(struct format *f, bool away)
{
	f->away = away;
	if (f->kind->ties)
		f->kind->ties(f);
}

/* Levenshtein's distance of names of at most MOST letters; case does not matter. */
static int distance(const char *a, const char *b)
{
	enum { MOST = 15 };
	int row[MOST + 1];

	for (int j = 0; j <= MOST; j++)
		row[j] = j;
	for (int i = 0; i < MOST && a[i]; i++) {
		int before = row[0]++;

		for (int j = 0; j < MOST && b[j]; j++) {
			int change = before + (tolower((unsigned char)a[i]) != b[j]);
			int shorter = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;

			before = row[j + 1];
			row[j + 1] = change < shorter ? change : shorter;
		}
	}
	return row[strnlen(b, MOST)];
}

/* What other toolkits call a format, and what comes closest to it here. */
static const char *const synonyms[][2] = {
	{ "fp8", "e4m3fn" }, { "float8", "e4m3fn" }, { "float8_e4m3fn", "e4m3fn" }, { "fp8_e4m3", "e4m3fn" }, { "e4m3fnuz", "e4m3fn" },
	{ "fp8_e5m2", "e5m2ieee" }, { "float8_e5m2", "e5m2ieee" }, { "fp4", "e2m1" }, { "mxfp4", "e2m1" }, { "nvfp4", "e2m1" },
	{ "mxfp6", "e2m3" }, { "fp6", "e2m3" }, { "int1", "uint1" },
};

const char *format_hint(const struct format *f)
{
	return !strcmp(f->name, "e4m3") ? "e4m3fn" : !strcmp(f->name, "e5m2") ? "e5m2ieee" : NULL;
}

char *format_closest(const char *name)
{
	struct format f, best = { .bits = 0 };
	int least = INT_MAX;

	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (!strcasecmp(synonyms[i][0], name))
			return strdup(synonyms[i][1]);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (int i = 0; i < 100; i++) {
			const int number[2] = { strchr(kinds[k].name, '#') == strrchr(kinds[k].name, '#') ? i % 10 : i / 10, i % 10 };
			char candidate[24] = "";
			size_t at = 0, used = 0;

			for (const char *c = kinds[k].name; *c; c++)
				candidate[at++] = *c == '#' ? (char)('0' + number[used++]) : *c;
			if (format_parse(&f, candidate) && distance(name, f.name) < least) {
				least = distance(name, f.name);
				best = f;
			}
		}
	return 2 * least < (int)strlen(name) ? strdup(best.name) : NULL;	/* e8m8 is like every other pair of digits */
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

void format_encode_group(const struct format *f, size_t n, uint8_t code[n], const float x[n], float scale, uint8_t zero)
{
	const float inverse = 1 / scale;
	const bool fast = f->kind->encode_fast && inverse >= FLT_MIN && inverse <= FLT_MAX;
	float scales[CHUNK];
	uint8_t zeros[CHUNK];

	for (size_t i = 0, m; i < n; i += m) {
		m = n - i < LONG ? n - i : LONG;
		if (fast && f->kind->encode_fast(f, m, code + i, x + i, inverse, zero))
			continue;
		m = n - i < CHUNK ? n - i : CHUNK;
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
