/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format -- names, grids, and rounding of every format against the sorted list of its values, at each value,
 * each midpoint and their neighbours; scales of every type from the definitions
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "num/format.h"
#include "num/half.h"

static const char *const names[] = {
	"int2", "int3", "int4", "int5", "int6", "int7", "int8", "uint1", "uint2", "uint3", "uint4", "uint5",
	"uint6", "uint7", "uint8", "nf2", "nf3", "nf4", "nf5", "nf6", "nf7", "nf8", "e0m1", "e0m2", "e0m3",
	"e0m4", "e0m5", "e0m6", "e0m7", "e1m0", "e1m1", "e1m2", "e1m3", "e1m4", "e1m5", "e1m6", "e2m0",
	"e2m1", "e2m2", "e2m3", "e2m4", "e2m5", "e3m0", "e3m1", "e3m2", "e3m3", "e3m4", "e4m0", "e4m1",
	"e4m2", "e4m3", "e5m0", "e5m1", "e5m2", "e6m0", "e6m1", "e4m3fn", "e4m3ieee", "e5m2ieee",
	"mxfp4", "nvfp4",
};
enum { NAMES = sizeof names / sizeof *names };

static bool is_quantile(const struct format *f)
{
	return !strncmp(f->name, "nf", 2);
}

static bool is_fp4(const struct format *f)
{
	return strstr(f->name, "fp4");
}

static struct format get(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	return f;
}

static void parse(void **unused)
{
	static const char *const bad[] = {
		"", "int", "int1", "int9", "int04", "int4x", "uint0", "uint9", "uint", "float", "e0m0",
		"e7m0", "e3m5", "e4m4", "e2m", "em2", "nf1", "nf9", "e4m3fnx", "xint4", "int99999999999",
		"int-4", "int 4", "auint4", "fp4", "mxfp", "mxfp8", "nvfp44", "e8m0", "e8p2", "e8p5",
	};
	struct format f;

	(void)unused;
	for (size_t i = 0; i < NAMES; i++) {
		CASE("names[%zu]", i);
		f = get(names[i]);
		assert_string_equal(f.name, names[i]);
		assert_int_equal(f.asymmetric, names[i][0] == 'u');
	}
	assert_string_equal(get("E4M3FN").name, "e4m3fn");
	assert_string_equal(get("UInt4").name, "uint4");
	assert_int_equal(get("uint4").bits, 4);
	assert_int_equal(get("e5m2ieee").bits, 8);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CASE("%s", bad[i]);
		assert_false(format_parse(&f, bad[i]));
		assert_null(f.kind);
	}
	assert_string_equal(format_list(true),
		"int2..int8, uint1..uint8, e<x>m<y> (1 <= x + y <= 7, x <= 6), nf2..nf8, "
		"mxfp4, nvfp4, e4m3fn, e4m3ieee, e5m2ieee");
	assert_string_equal(strstr(format_list(false), ", e5m2ieee"), ", e5m2ieee, e8p, e8p3, e8p4, "
		"1mad1..1mad4, 1mad<k>-<L> (L from 10 to 16), 3inst1..3inst4, 3inst<k>-<L>, "
		"q4_k, q5_k, q6_k, iq4_nl");
}

static void grids(void **unused)
{
	(void)unused;
	assert_true(get("int4").max == 7 && get("int4").grid[0] == -7 && get("int4").grid[7] == 0
		&& get("int4").grid[14] == 7 && get("int4").grid[15] == 0);
	assert_true(get("uint4").max == 15 && get("uint4").grid[15] == 15 && get("uint4").grid[16] == 0);
	assert_true(get("int8").grid[254] == 127 && get("uint8").grid[255] == 255 && get("uint1").max == 1);
	assert_true(get("e4m3fn").max == 448 && get("e4m3fn").grid[0x7e] == 448 &&
		get("e4m3fn").grid[0x7f] == 0);
	assert_true(get("e4m3fn").grid[0x01] == 0x1p-9f && get("e4m3fn").grid[0x08] == 0x1p-6f
		&& get("e4m3fn").grid[0x38] == 1 && get("e4m3fn").grid[0xb8] == -1);
	assert_true(get("e4m3ieee").max == 240 && get("e4m3ieee").grid[0x77] == 240 &&
		get("e4m3ieee").grid[0x78] == 0);
	assert_true(get("e5m2ieee").max == 57344 && get("e5m2ieee").grid[0x7b] == 57344
		&& get("e5m2ieee").grid[0x7c] == 0 && get("e5m2ieee").grid[0x01] == 0x1p-16f);
}

/* The values of a format with their codes, ascending, zero once. */
struct value {
	float v;
	int code;
};

static int ascending(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return (x->v > y->v) - (x->v < y->v);
}

static size_t values(const struct format *f, struct value list[256])
{
	size_t n = 0;
	bool zero = false;

	for (int c = 0; c < 256; c++) {
		if (f->grid[c] == 0 && zero)
			continue;
		zero |= f->grid[c] == 0;
		list[n++] = (struct value){ f->grid[c], c };
	}
	qsort(list, n, sizeof *list, ascending);
	return n;
}

/* The neighbour that a tie rounds to. */
static bool tie_goes_up(const struct format *f, struct value low, struct value high)
{
	double step;

	if (f->away)
		return fabs(high.v) > fabs(low.v);
	if (is_quantile(f))				/* the even rank */
		return high.code % 2 == 0;
	if (f->name[0] != 'e' && !is_fp4(f))		/* the even integer; codes of int<N> count from -Q */
		return fmod(high.v, 2) == 0;
	/* by ⌊x/v⌉, v = 2^⌊log₂|x|⌋ / 2^y, or the smallest step */
	step = fmin(fabs(low.v), fabs(high.v));
	step = ldexp(1, (int)fmax(step > 0 ? logb(step) : -999, 1 - f->bias) - f->y);
	return fmod(high.v / step, 2) == 0;
}

/* An independent nearest value: by distance in double. */
static struct value nearest(const struct format *f, size_t n, const struct value list[n], double x)
{
	size_t i = 1;

	while (i < n && list[i].v <= x)
		i++;
	if (i == n || x <= list[i - 1].v)
		return list[i - 1];
	if (x - list[i - 1].v == list[i].v - x)
		return list[tie_goes_up(f, list[i - 1], list[i]) ? i : i - 1];
	return list[x - list[i - 1].v < list[i].v - x ? i - 1 : i];
}

static void check(const struct format *f, size_t n, const struct value list[n], float x)
{
	const float one = 1;
	const uint8_t zero = 0;
	const double wide = x;
	struct value want = nearest(f, n, list, x);
	uint8_t code;
	float y, lane[1][1], back[1][1];

	format_encode(f, 1, &code, &x, &one, &zero);
	assert_true(f->grid[code] == want.v);
	if (want.v != 0)
		assert_int_equal(code, want.code);
	format_decode(f, 1, &y, &code, &one, &zero);
	assert_true(y == want.v);
	format_quantize(f, 1, &code, &y, &wide, &one, &zero);
	assert_true(y == want.v);
	format_round(f, 1, &y, &x, 1, 0);
	assert_true(y == want.v);
	lane[0][0] = x;
	format_nearest(f, 1, 1, back, (const float (*)[1])lane, &one, &zero);
	/* At a tie a search may return either neighbour. */
	assert_true(back[0][0] == want.v || fabs(back[0][0] - wide) == fabs(want.v - wide));
}

static size_t count(const struct format *f)
{
	size_t codes = (size_t)1 << f->bits;

	if (!strncmp(f->name, "uint", 4) || is_quantile(f))
		return codes;
	if (f->name[0] == 'i' || is_fp4(f) || strchr(f->name, 'm') == f->name + strlen(f->name) - 2)
		return codes - 1;		/* zero counts once */
	return f->max == 448 ? 253 : f->max == 240 ? 239 : 247;
}

static void rounding(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < 2 * NAMES; k++) {
		CASE("%s, away %zu", names[k / 2], k % 2);
		struct format f = get(names[k / 2]);
		struct value list[256];
		size_t n = values(&f, list);

		format_ties(&f, k % 2);
		assert_int_equal(n, count(&f));
		for (size_t i = 0; i < n; i++) {
			float v = list[i].v, m = i + 1 < n ? (v + list[i + 1].v) / 2 : 2 * v + 1;

			check(&f, n, list, v);
			check(&f, n, list, nextafterf(v, INFINITY));
			check(&f, n, list, nextafterf(v, -INFINITY));
			check(&f, n, list, m);
			check(&f, n, list, nextafterf(m, INFINITY));
			check(&f, n, list, nextafterf(m, -INFINITY));
		}
		check(&f, n, list, 3e38f);
		check(&f, n, list, -3e38f);
		check(&f, n, list, INFINITY);
		check(&f, n, list, -INFINITY);
		check(&f, n, list, 1e-42f);
		check(&f, n, list, -0.f);
	}
}

/* Next to a tie, closer than a float can express: x/s is computed in double. */
static void next_to_ties(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < 2 * NAMES; k++) {
		CASE("%s, away %zu", names[k / 2], k % 2);
		struct format f = get(names[k / 2]);
		struct value list[256];
		size_t n = values(&f, list);
		const float one = 1;
		const uint8_t zero = 0;

		format_ties(&f, k % 2);
		for (size_t i = 0; i + 1 < n; i++) {
			double m = ((double)list[i].v + list[i + 1].v) / 2,
				x[3] = { nextafter(m, -INFINITY), m, nextafter(m, INFINITY) };

			for (int t = 0; t < 3; t++) {
				uint8_t code;
				float y;

				format_quantize(&f, 1, &code, &y, &x[t], &one, &zero);
				assert_true(y == nearest(&f, n, list, x[t]).v);
			}
		}
	}
}

/* FPE2M2 section 3.1. */
static void exmy(void **unused)
{
	static const float e2m1[] = { 0, 1, 2, 3, 4, 6, 8, 12 }, e4m0[] = { 0, 2, 4, 8 };
	static const float e2m2[] = { 0, .5f, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 5, 6, 7, 8, 10, 12, 14 };
	static const struct { const char *name; double x, even, away; } ties[] = {
		{ "e2m2", 4.5, 4, 5 }, { "e2m2", 9, 8, 10 }, { "e2m2", 13, 12, 14 }, { "e4m0", 3, 4, 4 },
		{ "e4m0", 6, 8, 8 },
	};

	(void)unused;
	for (int c = 0; c < 16; c++) {
		CASE("code %d", c);
		assert_true(get("e2m2").grid[c] == e2m2[c] && get("e2m2").grid[c + 16] == -e2m2[c]);
		assert_true(c > 7 || get("e2m1").grid[c] == e2m1[c]);
		assert_true(c > 3 || get("e4m0").grid[c] == e4m0[c]);
	}
	assert_true(get("e4m0").max == 32768 && get("e2m2").max == 14 && get("e1m3").max == 3.75f);
	assert_true(!signbit(get("e2m2").grid[16]));
	for (size_t i = 0; i < sizeof ties / sizeof *ties; i++)
		for (int away = 0; away < 2; away++) {
			CASE("ties[%zu] %s, away %d", i, ties[i].name, away);
			struct format f = get(ties[i].name);
			const float one = 1;
			uint8_t code;
			float y;

			format_ties(&f, away);
			format_quantize(&f, 1, &code, &y, &ties[i].x, &one, NULL);
			assert_true(y == (away ? ties[i].away : ties[i].even));
		}
}

/* E1M3 with s = max/3.75 equals int5 bit for bit. */
static void e1m3_is_int5(void **unused)
{
	const struct format e = get("e1m3"), i5 = get("int5");
	uint32_t state = 1;

	(void)unused;
	for (int r = 0; r < 1000; r++) {
		CASE("r %d", r);
		float top = 0, x[100], y[100], z[100], scale[100], other[100];
		uint8_t code[100];

		for (int i = 0; i < 100; i++) {
			state = state * 1664525 + 1013904223;
			x[i] = (float)((state >> 8) % 6001) / 3000 - 1;	/* with ties */
			top = fmaxf(top, fabsf(x[i]));
		}
		format_fit(&e, scale, NULL, -top, top);
		format_fit(&i5, other, NULL, -top, top);
		for (int i = 1; i < 100; i++) {
			scale[i] = scale[0];
			other[i] = other[0];
		}
		format_encode(&e, 100, code, x, scale, NULL);
		format_decode(&e, 100, y, code, scale, NULL);
		format_encode(&i5, 100, code, x, other, NULL);
		format_decode(&i5, 100, z, code, other, NULL);
		assert_memory_equal(y, z, sizeof y);
	}
}

/* The published values of NF4 in QLoRA, to their four or more digits. */
static void quantiles(void **unused)
{
	static const double nf4[16] = {
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
		-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
		0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
		0.7229568362236023, 1,
	};

	(void)unused;
	for (int c = 0; c < 16; c++)
		assert_true(fabs(get("nf4").grid[c] - nf4[c]) < 1e-6);
	for (int n = 2; n <= 8; n++) {
		CASE("nf%d", n);
		char name[4] = { 'n', 'f', (char)('0' + n), 0 };
		const struct format f = get(name);

		assert_true(f.grid[0] == -1 && f.grid[(1 << n) - 1] == 1 && f.grid[(1 << (n - 1)) - 1] == 0);
		for (int c = 1; c < 1 << n; c++)
			assert_true(f.grid[c] > f.grid[c - 1]);
	}
}

/* Codes without a value: the one beyond int<N>'s 2Q + 1, infinity and NaN of hardware formats. */
static void codes_without_a_value(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < NAMES; i++) {
		CASE("%s", names[i]);
		const struct format f = get(names[i]);
		const bool fn = !strcmp(f.name, "e4m3fn"), ieee = strstr(f.name, "ieee");
		const int exponent = f.name[1] == '5' ? 0x7c : 0x78;	/* all ones */

		for (int c = 0; c < 1 << f.bits; c++) {
			bool none = f.name[0] == 'i' ? c == (1 << f.bits) - 1 : fn ? (c & 0x7f) == 0x7f :
				ieee && (c & exponent) == exponent;

			assert_int_equal((c & f.code_mask) > f.code_last, none);
		}
	}
}

/* The unit of a format is the largest power of two that divides all of its values. */
static void units(void **unused)
{
	static const struct { const char *name; float unit, most; } some[] = {
		{ "int8", 1, 127 }, { "int2", 1, 1 }, { "uint8", 1, 255 }, { "uint1", 1, 1 },
		{ "e2m1", 1, 12 }, { "e2m2", 0.5f, 28 }, { "e1m6", 0x1p-5f, 127 }, { "e3m0", 2, 64 },
		{ "mxfp4", 0.5f, 12 }, { "nvfp4", 0.5f, 12 }, { "e2m4", 0x1p-3f, 124 },
		{ "e4m3fn", 0x1p-9f, 448 * 512 }, { "e6m0", 2, 0x1p62f },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		CASE("some[%zu] %s", i, some[i].name);
		const struct format f = get(some[i].name);

		assert_true(format_unit(&f, some[i].most) == some[i].unit);
		assert_true(format_unit(&f, some[i].most / 2) == 0);
	}
	for (size_t i = 0; i < NAMES; i++) {
		CASE("%s", names[i]);
		const struct format f = get(names[i]);
		bool odd = false, whole = true;
		const float unit = format_unit(&f, 127);

		for (int c = 0; unit > 0 && c < 1 << f.bits; c++) {
			const float v = f.grid[c] / unit;

			whole &= v == rintf(v) && fabsf(v) <= 127;
			odd |= fmodf(v, 2) != 0;
		}
		assert_true(unit > 0 ? whole && odd : f.name[0] != 'i');
	}
	assert_true(format_unit(&(struct format){ .bits = 0 }, 127) == 0);
}

static void closest(void **unused)
{
	static const char *const pairs[][2] = {
		{ "e2n2", "e2m2" }, { "fp4", "e2m1" }, { "FP8", "e4m3fn" }, { "mxfp6", "e2m3" },
		{ "nvfp", "nvfp4" }, { "mxpf4", "mxfp4" },
		{ "in4", "int4" }, { "e4m3fm", "e4m3fn" }, { "mxfp8", "e4m3fn" },
		/* in a family, the nearest numbers that exist */
		{ "int9", "int8" }, { "int16", "int8" }, { "int1", "uint1" }, { "uint44", "uint8" },
		{ "nf1", "nf2" },
		{ "e5m3", "e4m3" }, { "e7m0", "e6m0" }, { "e0m0", "e0m1" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		CASE("pairs[%zu]", i);
		char *name = format_closest(pairs[i][0]);

		assert_string_equal(name, pairs[i][1]);
		free(name);
	}
	assert_null(format_closest("e8m8"));
	assert_null(format_closest("e2m"));	/* seven names are equally near */
	assert_null(format_closest("int"));
	assert_null(format_closest("junk"));
}

/* Division by a scale, in vectors and in the remainder; NaN gives no NaN code. */
static void scales(void **unused)
{
	enum { N = 1003 };
	static float x[N], scale[N], y[N], z[N];
	static uint8_t zero[N], code[N];
	static double wide[N];

	(void)unused;
	for (size_t k = 0; k < NAMES; k++) {
		CASE("%s", names[k]);
		const struct format f = get(names[k]);
		struct value list[256];
		size_t n = values(&f, list);

		for (int i = 0; i < N; i++) {
			scale[i] = (float)exp2((i * 37 % 41) / 3.0 - 10);
			zero[i] = f.asymmetric ? (uint8_t)(i * 13 % ((int)f.max + 1)) : 0;
			x[i] = wide[i] = (float)sin(i) * scale[i] * f.max * 1.1f;
		}
		format_encode(&f, N, code, x, scale, zero);
		format_decode(&f, N, y, code, scale, zero);
		for (int i = 0; i < N; i++) {
			double q = x[i] / (double)scale[i];

			if (f.asymmetric) {
				double c = fmin(fmax(nearbyint(q) + zero[i], 0), f.max);

				assert_true(code[i] == c && y[i] == (float)(c - zero[i]) * scale[i]);
			} else {
				assert_true(f.grid[code[i]] == nearest(&f, n, list, q).v);
				assert_true(y[i] == f.grid[code[i]] * scale[i]);
			}
		}
		memset(code, 0, sizeof code);
		format_quantize(&f, N, code, z, wide, scale, zero);
		assert_memory_equal(y, z, sizeof y);
		x[0] = NAN;
		format_encode(&f, 1, code, x, scale, zero);
		assert_true(isfinite(f.grid[code[0]]));
		format_round(&f, 1, y, x, 1, 0);
		assert_true(isnan(y[0]));
	}
}

static void round_in_place(void **unused)
{
	const struct format f = get("e4m3ieee");
	float x[100], y[100];

	(void)unused;
	for (int i = 0; i < 100; i++)
		x[i] = (float)(i - 50) * 7.3f;
	format_round(&f, 100, y, x, 0.5f, 0);
	for (int i = 0; i < 100; i++)
		assert_true(fabsf(y[i]) <= 120 &&
			(fabsf(x[i]) > 120 || fabsf(y[i] - x[i]) <= fabsf(x[i]) / 16));
	format_round(&f, 100, x, x, 0.5f, 0);
	assert_memory_equal(x, y, sizeof x);
	format_round(&f, 100, y, x, 0.5f, 224);
	for (int i = 0; i < 100; i++)
		assert_true(y[i] == fmaxf(-112, fminf(112, x[i])));
}

static void fit(void **unused)
{
	const struct format u = get("uint4"), s = get("int4"), e = get("e4m3fn"), once = get("uint1");
	float scale[20];
	uint8_t zero[20];
	double min[20], max[20];

	(void)unused;
	format_fit(&u, scale, zero, -1, 2);
	assert_true(scale[0] == (float)(3 / 15.0) && zero[0] == 5);
	for (double a = 1e-30; a < 1e30; a *= 7.7) {	/* symmetric: 7.5 → 8 for every scale */
		CASE("a %g", a);
		format_fit(&u, scale, zero, -(float)a, (float)a);
		assert_int_equal(zero[0], 8);
	}
	format_fit(&u, scale, zero, 1, 3);		/* widened to contain 0 */
	assert_true(scale[0] == (float)(3 / 15.0) && zero[0] == 0);
	format_fit(&u, scale, zero, -3, -1);
	assert_true(scale[0] == (float)(3 / 15.0) && zero[0] == 15);
	format_fit(&u, scale, zero, 0, 0);
	assert_true(scale[0] == 1 && zero[0] == 0);
	format_fit(&s, scale, NULL, -3, 2);
	assert_true(scale[0] == (float)(3 / 7.0));
	format_fit(&s, scale, NULL, 0, 0);
	assert_true(scale[0] == 1);
	format_fit(&e, scale, NULL, -1, 0.5);
	assert_true(scale[0] == (float)(1 / 448.0));
	format_fit(&e, scale, NULL, -1e-44, 0);		/* 1e-44/448 is less than half of the least float */
	assert_true(scale[0] == 0x1p-149f);
	format_fit(&u, scale, zero, 0, 1e-46);
	assert_true(scale[0] == 0x1p-149f && zero[0] == 0);
	format_fit(&once, scale, zero, -3e38, 3e38);	/* 6e38/1 is no float */
	assert_true(scale[0] == FLT_MAX && zero[0] == 0);
	for (size_t k = 0; k < 3; k++) {		/* a scale without a reciprocal */
		const struct format f = get((const char *[]){ "int4", "e2m1", "nf4" }[k]);

		for (float x = -7e-39f; x < 7e-39f; x += 3e-40f) {
			CASE("format %zu, %g", k, (double)x);
			const float one = 1e-39f, lane[1][1] = { { x } };
			const double wide = (double)x;
			float y, back[1][1];
			uint8_t code;

			format_quantize(&f, 1, &code, &y, &wide, &one, NULL);
			format_nearest_subnormal(&f, 1, 1, back, lane, &one, NULL);
			assert_true(back[0][0] == y);
		}
	}
	for (int i = 0; i < 20; i++) {
		min[i] = -i * 0.37;
		max[i] = (20 - i) * 0.11;
	}
	format_fit_all(&u, 20, scale, zero, min, max);
	for (int i = 0; i < 20; i++) {
		CASE("min[%d]", i);
		float one;
		uint8_t z;

		format_fit(&u, &one, &z, min[i], max[i]);
		assert_true(scale[i] == one && zero[i] == z);
		assert_true(z == nearbyint(-min[i] * 15 / (max[i] - min[i])));
	}
}

/*
 * Quotients next to a tie and on it. The fast path for one scale must detect that it cannot decide. Rounding
 * in float must not treat a quotient as a tie only because the float quotient is one.
 */
static void rounded_to_ties(void **unused)
{
	enum { N = 40 };

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (int away = 0; away < 2; away++) {
			CASE("%s, away %d", names[k], away);
			struct format f;
			struct value list[256];
			size_t n;

			assert_true(format_parse(&f, names[k]));
			format_ties(&f, away);
			n = values(&f, list);
			for (size_t v = 0; v + 1 < n; v++) {
				float x[N], scale[N], y[N], rounded[N];
				double wide[N];
				uint8_t code[N], want[N], zero[N] = { 0 };

				for (int i = 0; i < N; i++) {
					scale[i] = (float)(1 + (int)(v * 17 + k) % 31 * 0.0137) *
						exp2f((float)((int)v % 7 - 3));
					x[i] = (float)((list[v].v + list[v + 1].v) / 2 * scale[i]);
					x[i] = i % 3 ? nextafterf(x[i], i % 3 == 1 ? INFINITY : -INFINITY) :
						x[i];
					wide[i] = x[i];
				}
				format_quantize(&f, N, want, y, wide, scale, zero);
				for (int i = 0; i < N; i += 8) {
					format_encode_group(&f, 8, code + i, x + i, scale[0], 0);
					for (int j = i; j < i + 8; j++)
						format_encode_group(&f, 1, code + j, x + j, scale[0], 0);
				}
				assert_memory_equal(code, want, N);
				format_round(&f, N, rounded, x, scale[0], 0);
				format_round(&f, N, x, x, scale[0], 0);
				for (int i = 0; i < N; i++)
					assert_true(rounded[i] == y[i] && x[i] == y[i]);
			}
		}
}

/* int8 and e1m6 have the same values up to a power of two: they round every number to the same value. */
static void e1m6_is_int8(void **unused)
{
	enum { N = 1000 };
	const struct format e = get("e1m6"), i = get("int8");
	float x[N], y[N], z[N];

	(void)unused;
	for (int t = 0; t < 2000; t++) {
		CASE("t %d", t);
		const float s = 0.01f * (1 + 0.000917f * (float)t);

		for (int k = 0; k < N; k++)
			x[k] = k % 2 ? (float)sin(k * 7 + t) * 128 * s : (float)(k * 31 % 255 - 127.5) * s;
		format_round(&e, N, y, x, s * 32, 0);
		format_round(&i, N, z, x, s, 0);
		for (int k = 0; k < N; k++)
			assert_true(y[k] == z[k]);
	}
}

/* --- types of scales --- */

/* The values of the standards, by code. */
static const float fp4[16] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6 };

static struct format with_scales(const char *name, enum scale_type type)
{
	struct format f = get(name);

	assert_true(format_scales(&f, type));
	return f;
}

static void own_scales(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < NAMES; i++) {
		CASE("%s", names[i]);
		struct format f = get(names[i]);
		const bool mx = !strcmp(f.name, "mxfp4"), nv = !strcmp(f.name, "nvfp4");
		const enum scale_type own = mx ? SCALE_E8M0 : nv ? SCALE_E4M3FN : SCALE_F32;

		assert_true(f.scales == own && f.group == (mx ? 32 : nv ? 16 : 0) && f.divisor == 1);
		for (int t = SCALE_F32; t <= SCALE_U8; t++) {
			CASE("%s, t %d", names[i], t);
			f.scales = own;
			assert_true(format_scales(&f, (enum scale_type)t) ==
				(own == SCALE_F32 || t == (int)own));
		}
		for (int c = 0; (mx || nv) && c < 16; c++)
			assert_true(f.grid[c] == fp4[c] && !(c == 8 && signbit(f.grid[c])) &&
				2 * fp4[c] == get("e2m1").grid[c]);
	}
}

/* The positive numbers of a type, ascending, if they can be listed. */
static size_t numbers(enum scale_type type, float list[65536])
{
	size_t n = 0;

	if (type == SCALE_E8M0)
		for (int e = -127; e <= 127; e++)
			list[n++] = ldexpf(1, e);
	if (type == SCALE_E4M3FN)	/* with a sign, bias 7; all ones is NaN */
		for (int c = 1; c < 127; c++)
			list[n++] = c < 8 ? ldexpf((float)c, -9) : ldexpf((float)(8 + c % 8), c / 8 - 10);
	for (int i = 1; type == SCALE_U8 && i < 256; i++)
		list[n++] = (float)i;
	if (type == SCALE_BF16 || type == SCALE_F16)
		for (uint16_t c = 1; c < (type == SCALE_BF16 ? 0x7f80 : 0x7c00); c++)
			half_widen(1, &list[n++], &c, type == SCALE_BF16 ? HALF_BF16 : HALF_F16);
	return n;
}

/* The numbers with at most so many significant bits; 0: all. */
static size_t of_bits(int bits, size_t n, float list[n])
{
	size_t left = 0;
	int e;

	for (size_t i = 0; i < n; i++)
		if (!bits || fmod(ldexp(frexp(list[i], &e), bits), 1) == 0)
			list[left++] = list[i];
	return left;
}

/* At every number, between it and the next one, next to both; below the smallest and above the largest. */
static void check_numbers(const struct scale_kind *k, size_t n, const float list[n])
{
	assert_true(k->max == list[n - 1] && k->min == list[0]);
	for (size_t i = 0; i < n; i++) {
		const double m = i + 1 < n ? ((double)list[i] + list[i + 1]) / 2 : 2 * k->max;

		assert_true(scale_nearest(k, list[i]) == list[i]);
		assert_true(scale_nearest(k, nextafter(list[i], INFINITY)) == list[i]);
		assert_true(scale_nearest(k, nextafter(m, 0)) == list[i]);
		if (i + 1 == n)
			break;
		const double gap = (double)list[i + 1] - list[i];

		assert_true(scale_nearest(k, nextafter(m, INFINITY)) == list[i + 1]);
		assert_true(scale_nearest(k, m) == list[fmod(list[i] / gap, 2) == 0 ? i : i + 1]);
	}
	assert_true(scale_nearest(k, 1e-60) == list[0] && scale_nearest(k, 1e100) == list[n - 1]);
}

static void numbers_of_types(void **unused)
{
	static float list[65536];

	(void)unused;
	for (int t = SCALE_BF16; t <= SCALE_U8; t++)
		for (int bits = 0; bits <= 12; bits++) {
			CASE("%s, %d bits", scale_types[t], bits);
			const struct scale_kind k = scale_kind_of((enum scale_type)t, bits);
			const size_t n = of_bits(bits, numbers((enum scale_type)t, list), list);

			check_numbers(&k, n, list);
		}
	for (int t = SCALE_F32; t <= SCALE_U8; t++)
		assert_int_equal(scale_kinds[t].bits, t == SCALE_F32 ? 32 : t < SCALE_E8M0 ? 16 : 8);
	/* a float has 24 bits */
	assert_true(scale_kind_of(SCALE_F32, 24).step == 0x1p-23);
	assert_true(scale_kind_of(SCALE_F32, 0).max == FLT_MAX);
	assert_true(scale_kind_of(SCALE_F32, 7).max == 0x1.fcp127);
}

/* OCP MX 1.0, section 6.3: the power of two of the largest number, divided by that of the format's largest
 * value. */
static float mx_scale(double most, double top)
{
	int e, of_max;

	frexp(most, &e);
	frexp(top, &of_max);
	e -= of_max;
	return ldexpf(1, e < -127 ? -127 : e > 127 ? 127 : e);
}

/* By hand: 4 and numbers below 8 have the same scale; under it, numbers beyond 6 saturate. */
static void powers_of_two(void **unused)
{
	static const struct { double most; float scale; int code; } some[] = {
		{ 4, 1, 6 }, { 6, 1, 7 }, { 7, 1, 7 }, { 7.9999, 1, 7 }, { 8, 2, 6 }, { 3.9999, 0.5f, 7 },
		{ 0x1p-140, 0x1p-127f, 0 }, { 3e38, 0x1p125f, 7 }, { 1, 0.25f, 6 },
	};
	const struct format f = get("mxfp4");

	(void)unused;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		CASE("some[%zu]", i);
		const float x = (float)some[i].most;
		float scale;
		uint8_t code;

		format_fit(&f, &scale, NULL, -some[i].most / 3, some[i].most);
		assert_true(scale == some[i].scale && scale == mx_scale(some[i].most, 6));
		format_encode(&f, 1, &code, &x, &scale, NULL);
		assert_int_equal(code, some[i].code);
	}
}

/* The nearest number of a list; of two equally near ones the one at an even position, counted from 1. */
static float nearest_number(size_t n, const float list[n], double x)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++) {
		const double gain = fabs(list[best] - x) - fabs(list[i] - x);

		if (gain > 0 || (gain == 0 && i % 2))
			best = i;
	}
	return list[best];
}

/* Groups of all magnitudes in every format, plainly from the definitions of each type. */
static void rounded_scales(void **unused)
{
	static float list[65536];

	(void)unused;
	for (int t = SCALE_BF16; t <= SCALE_U8; t++) {
		const size_t n = numbers((enum scale_type)t, list);

		for (size_t k = 0; k < NAMES * 60; k++) {
			CASE("%s, scales %s, k %zu", names[k % NAMES], scale_types[t], k);
			struct format f = get(names[k % NAMES]);
			double low = -fabs(cos((double)k * 1.7)) * exp2((double)(k % 37) - 20);
			double high = fabs(sin((double)k * 0.9)) * exp2((double)(k % 29) - 15), range, want;
			const double all = -2 * low + 3 * high;	/* of the tensor: -all .. all */
			float scale, stored, divisor = 1;
			uint8_t zero = 0;

			if (!format_scales(&f, (enum scale_type)t))
				continue;
			format_tensor(&f, -all, all);
			range = f.asymmetric ? high - low : fmax(-low, high);
			if (t == SCALE_E4M3FN)
				divisor = (float)(448 * (double)f.max / (f.asymmetric ? 2 * all : all));
			assert_true(f.divisor == divisor);
			want = range / (double)f.max * (double)divisor;
			stored = t == SCALE_E8M0 ? mx_scale(range, f.max) : t < SCALE_E8M0 ?
				scale_nearest(&scale_kinds[t], want) : nearest_number(n, list, want);
			format_fit(&f, &scale, &zero, low, high);
			assert_true(scale == stored / divisor);
			if (f.asymmetric)
				assert_int_equal(zero, nearbyint(-low * f.max / range));
			format_store(&f, 1, &scale);
			assert_true(scale == stored);
		}
	}
}

/* Zero tensors, and tensors at the limits of float. */
static void ends_of_scales(void **unused)
{
	static const double most[] = { 1e-45, 1e-38, 1e-30, 3.4e38 };
	const struct format once = with_scales("int2", SCALE_BF16);
	float scale;

	(void)unused;
	/* Next to a tie of bf16, closer than a float can express: rounded once. */
	format_fit(&once, &scale, NULL, 0, 1 + 0x1p-8 + 0x1p-40);
	assert_true(scale == 1 + 0x1p-7f);
	format_fit(&once, &scale, NULL, 0, 1 + 0x1p-8);
	assert_true(scale == 1);
	for (int t = SCALE_BF16; t <= SCALE_U8; t++) {
		CASE("%s", scale_types[t]);
		struct format f = with_scales("e2m1", (enum scale_type)t);

		format_tensor(&f, 0, 0);
		assert_true(f.divisor == 1);
		format_fit(&f, &scale, NULL, 0, 0);
		assert_true(scale == 1);
		format_tensor(&f, -5, 3);
		format_fit(&f, &scale, NULL, 0, 0);
		format_store(&f, 1, &scale);
		assert_true(scale == 1);
		for (int i = 0; i < 4; i++)
			for (int part = 0; part < 40; part++) {	/* down to a group 2⁻³⁹ of the tensor */
				format_tensor(&f, -most[i], most[i]);
				assert_true(f.divisor > 0 && isfinite(f.divisor));
				format_fit(&f, &scale, NULL, 0, most[i] * exp2(-part));
				assert_true(scale > 0 && isfinite(scale));
				format_store(&f, 1, &scale);
				assert_true(scale_nearest(&scale_kinds[t], scale) == scale);
				assert_true(t != SCALE_E4M3FN || part < 20 || scale == 0x1p-9f);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse), cmocka_unit_test(grids), cmocka_unit_test(rounding),
		cmocka_unit_test(next_to_ties), cmocka_unit_test(exmy), cmocka_unit_test(e1m3_is_int5),
		cmocka_unit_test(quantiles), cmocka_unit_test(codes_without_a_value),
		cmocka_unit_test(units), cmocka_unit_test(closest), cmocka_unit_test(scales),
		cmocka_unit_test(rounded_to_ties), cmocka_unit_test(e1m6_is_int8),
		cmocka_unit_test(round_in_place), cmocka_unit_test(fit),
		cmocka_unit_test(own_scales), cmocka_unit_test(numbers_of_types),
		cmocka_unit_test(powers_of_two), cmocka_unit_test(rounded_scales),
		cmocka_unit_test(ends_of_scales),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
