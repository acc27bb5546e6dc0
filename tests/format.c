/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format -- SPEC section 3: names, grids, and rounding of every format against
 * the sorted list of its values, at each value, each midpoint and their neighbours
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "num/format.h"

static const char *const names[] = {
	"int2", "int3", "int4", "int5", "int6", "int7", "int8",
	"uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "uint8",
	"e4m3fn", "e4m3ieee", "e5m2ieee",
};
enum { NAMES = sizeof names / sizeof *names };

static struct format get(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	return f;
}

static void parse(void **unused)
{
	static const char *const bad[] = {
		"", "int", "int1", "int9", "int04", "int4x", "uint0", "uint9", "uint", "float", "e4m3", "e4m3fnx", "xint4",
		"int99999999999", "int-4", "int 4", "auint4",
	};
	struct format f;

	(void)unused;
	for (size_t i = 0; i < NAMES; i++) {
		f = get(names[i]);
		assert_string_equal(f.name, names[i]);
		assert_int_equal(f.asymmetric, names[i][0] == 'u');
	}
	assert_string_equal(get("E4M3FN").name, "e4m3fn");
	assert_string_equal(get("UInt4").name, "uint4");
	assert_int_equal(get("uint4").bits, 4);
	assert_int_equal(get("e5m2ieee").bits, 8);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(format_parse(&f, bad[i]));
		assert_null(f.kind);
	}
	assert_string_equal(format_list(), "int2..int8, uint1..uint8, e4m3fn, e4m3ieee, e5m2ieee");
}

static void grids(void **unused)
{
	(void)unused;
	assert_true(get("int4").top == 7 && get("int4").grid[0] == -7 && get("int4").grid[7] == 0
		&& get("int4").grid[14] == 7 && get("int4").grid[15] == 0);
	assert_true(get("uint4").top == 15 && get("uint4").grid[15] == 15 && get("uint4").grid[16] == 0);
	assert_true(get("int8").grid[254] == 127 && get("uint8").grid[255] == 255 && get("uint1").top == 1);
	assert_true(get("e4m3fn").top == 448 && get("e4m3fn").grid[0x7e] == 448 && get("e4m3fn").grid[0x7f] == 0);
	assert_true(get("e4m3fn").grid[0x01] == 0x1p-9f && get("e4m3fn").grid[0x08] == 0x1p-6f
		&& get("e4m3fn").grid[0x38] == 1 && get("e4m3fn").grid[0xb8] == -1);
	assert_true(get("e4m3ieee").top == 240 && get("e4m3ieee").grid[0x77] == 240 && get("e4m3ieee").grid[0x78] == 0);
	assert_true(get("e5m2ieee").top == 57344 && get("e5m2ieee").grid[0x7b] == 57344
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

/* An independent nearest: by distance in double, ties to the code that is even. The codes of int<N> count
 * from -Q, so there the value decides. */
static struct value nearest(const struct format *f, size_t n, const struct value list[n], double x)
{
	struct value best = list[0];

	x = fmax(-1e6, fmin(1e6, x));		/* far away all distances are the same */
	for (size_t i = 1; i < n; i++) {
		double now = fabs(x - list[i].v), before = fabs(x - best.v);
		bool even = f->bits == 8 && f->name[0] == 'e' ? list[i].code % 2 == 0 : fmod(list[i].v, 2) == 0;

		if (now < before || (now == before && even))
			best = list[i];
	}
	return best;
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
	assert_true(back[0][0] == want.v);
}

static void rounding(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < NAMES; k++) {
		const struct format f = get(names[k]);
		struct value list[256];
		size_t n = values(&f, list);

		assert_int_equal(n, f.name[0] == 'u' ? 1 << f.n : f.name[0] == 'i' ? (1 << f.n) - 1
			: f.top == 448 ? 253 : f.top == 240 ? 239 : 247);
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

/* A scale is divided by, in vectors and in what is left over; NaN makes no NaN code. */
static void scales(void **unused)
{
	enum { N = 1003 };
	static float x[N], scale[N], y[N], z[N];
	static uint8_t zero[N], code[N];
	static double wide[N];

	(void)unused;
	for (size_t k = 0; k < NAMES; k++) {
		const struct format f = get(names[k]);
		struct value list[256];
		size_t n = values(&f, list);

		for (int i = 0; i < N; i++) {
			scale[i] = (float)exp2((i * 37 % 41) / 3.0 - 10);
			zero[i] = (uint8_t)(i * 13 % ((int)f.top + 1));
			x[i] = wide[i] = (float)sin(i) * scale[i] * f.top * 1.1f;
		}
		format_encode(&f, N, code, x, scale, zero);
		format_decode(&f, N, y, code, scale, zero);
		for (int i = 0; i < N; i++) {
			double q = x[i] / (double)scale[i];

			if (f.asymmetric) {
				double c = fmin(fmax(nearbyint(q) + zero[i], 0), f.top);

				assert_true(code[i] == c && y[i] == (float)(c - zero[i]) * scale[i]);
			} else {
				assert_true(f.grid[code[i]] == nearest(&f, n, list, f.bits == 8 && f.top > 200
					? (float)q : q).v);
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
		assert_true(fabsf(y[i]) <= 120 && (fabsf(x[i]) > 120 || fabsf(y[i] - x[i]) <= fabsf(x[i]) / 16));
	format_round(&f, 100, x, x, 0.5f, 0);
	assert_memory_equal(x, y, sizeof x);
	format_round(&f, 100, y, x, 0.5f, 224);
	for (int i = 0; i < 100; i++)
		assert_true(y[i] == fmaxf(-112, fminf(112, x[i])));
}

static void fit(void **unused)
{
	const struct format u = get("uint4"), s = get("int4"), e = get("e4m3fn");
	float scale[20];
	uint8_t zero[20];
	double min[20], max[20];

	(void)unused;
	format_fit(&u, scale, zero, -1, 2);
	assert_true(scale[0] == (float)(3 / 15.0) && zero[0] == 5);
	for (double a = 1e-30; a < 1e30; a *= 7.7) {	/* symmetric: 7.5 → 8, everywhere */
		format_fit(&u, scale, zero, -(float)a, (float)a);
		assert_int_equal(zero[0], 8);
	}
	format_fit(&u, scale, zero, 1, 3);		/* widened to hold 0 */
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
	for (int i = 0; i < 20; i++) {
		min[i] = -i * 0.37;
		max[i] = (20 - i) * 0.11;
	}
	format_fit_all(&u, 20, scale, zero, min, max);
	for (int i = 0; i < 20; i++) {
		float one;
		uint8_t z;

		format_fit(&u, &one, &z, min[i], max[i]);
		assert_true(scale[i] == one && zero[i] == z);
		assert_true(z == nearbyint(-min[i] * 15 / (max[i] - min[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse), cmocka_unit_test(grids), cmocka_unit_test(rounding), cmocka_unit_test(scales),
		cmocka_unit_test(round_in_place), cmocka_unit_test(fit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
