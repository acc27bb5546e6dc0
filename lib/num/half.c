/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * half.c -- see half.h
 *
 * Conversions work on bits without branches, so that the compiler can vectorize them. An integer addition
 * changes the exponent. Subnormal numbers are rounded by a float addition whose last place is the smallest
 * step of the type.
 */
#include "num/half.h"
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/bits.h"
#include "num/clones.h"

CLONES(static, void, f16_widen, (size_t n, float y[restrict n], const uint16_t x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++) {
		uint32_t h = x[i], u = (h & 0x7fff) << 13, e = u & 0x0f800000;
		uint32_t normal = u + (112u << 23), special = u + (224u << 23);
		uint32_t small = float_bits(bits_float(u + (113u << 23)) - 0x1p-14f);

		u = e == 0x0f800000 ? special : e == 0 ? small : normal;
		y[i] = bits_float(u | (h & 0x8000) << 16);
	}
}

CLONES(static, void, bf16_widen, (size_t n, float y[restrict n], const uint16_t x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] = bits_float((uint32_t)x[i] << 16);
}

CLONES(static, void, f16_narrow, (size_t n, uint16_t y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++) {
		uint32_t u = float_bits(x[i]), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
		uint32_t normal = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;
		uint32_t small = float_bits(bits_float(a < 0x38800000 ? a : 0) + 0.5f) - 0x3f000000;
		uint32_t nan = 0x7e00 | (a >> 13 & 0x3ff), h;

		h = a < 0x38800000 ? small : normal;
		h = a > 0x477fffff ? 0x7c00 : h;
		h = a > 0x7f800000 ? nan : h;
		y[i] = (uint16_t)(h | sign);
	}
}

CLONES(static, void, bf16_narrow, (size_t n, uint16_t y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++) {
		uint32_t u = float_bits(x[i]), nan = u >> 16 | 0x40;
		uint32_t h = (u + 0x7fff + (u >> 16 & 1)) >> 16;

		y[i] = (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? nan : h);
	}
}

size_t half_size(enum half_type type)
{
	return type == HALF_NONE ? sizeof(float) : sizeof(uint16_t);
}

void half_widen(size_t n, float y[n], const void *x, enum half_type type)
{
	switch (type) {
	case HALF_NONE: memcpy(y, x, n * sizeof *y); break;
	case HALF_F16: f16_widen(n, y, x); break;
	case HALF_BF16: bf16_widen(n, y, x); break;
	}
}

float half_f16_at(const uint8_t x[2])
{
	uint16_t h;
	float y;

	memcpy(&h, x, sizeof h);
	half_widen(1, &y, &h, HALF_F16);
	return y;
}

void half_narrow(size_t n, uint16_t y[n], const float x[n], enum half_type type)
{
	switch (type) {
	case HALF_NONE: break;
	case HALF_F16: f16_narrow(n, y, x); break;
	case HALF_BF16: bf16_narrow(n, y, x); break;
	}
}

/* Rounding to odd: truncation to float, with the last bit set if the result is inexact. A later rounding to
 * half precision then gives the same result as a single rounding. */
static float round_to_odd(double x)
{
	const float y = (float)x;

	if ((double)y == x || isinf(y))
		return y;
	return bits_float(float_bits(fabs((double)y) > fabs(x) ? nextafterf(y, 0) : y) | 1);
}

void half_narrow_double(size_t n, void *y, const double x[n], enum half_type type)
{
	enum { AT_ONCE = 256 };
	float part[AT_ONCE];

	for (size_t i = 0; type == HALF_NONE && i < n; i++)
		((float *)y)[i] = (float)x[i];
	for (size_t i = 0; type != HALF_NONE && i < n; i += AT_ONCE) {
		const size_t m = min(n - i, AT_ONCE);

		for (size_t j = 0; j < m; j++)
			part[j] = round_to_odd(x[i + j]);
		half_narrow(m, (uint16_t *)y + i, part, type);
	}
}

/* An exponent of all ones is infinity or NaN. */
static bool few_finite(size_t n, const void *x, enum half_type type)
{
	if (type == HALF_NONE) {
		const uint32_t *u = x;
		uint32_t max = 0;

		for (size_t i = 0; i < n; i++)
			max = (u[i] & 0x7fffffff) > max ? u[i] & 0x7fffffff : max;
		return max < 0x7f800000;
	} else {
		const uint16_t *u = x;
		uint16_t max = 0;

		for (size_t i = 0; i < n; i++)
			max = (u[i] & 0x7fff) > max ? u[i] & 0x7fff : max;
		return max < (type == HALF_F16 ? 0x7c00 : 0x7f80);
	}
}

bool half_finite(size_t n, const void *x, enum half_type type)
{
	enum { AT_ONCE = 1 << 16 };
	const size_t bytes = half_size(type), pieces = ceil_div(n, AT_ONCE);
	int bad = 0;

	#pragma omp parallel for num_threads(threads) schedule(static) reduction(|:bad) if (pieces > 8)
	for (size_t i = 0; i < pieces; i++)
		bad |= !few_finite(min(n - i * AT_ONCE, AT_ONCE), (const char *)x + i * AT_ONCE * bytes,
			type);
	return !bad;
}
