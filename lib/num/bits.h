/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bits.h -- conversion between numbers and their bits; the largest magnitude by bits
 *
 * Always inline: a call from a function for AVX would switch to SSE and back.
 */
#ifndef NUM_BITS_H
#define NUM_BITS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) float bits_float(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static inline __attribute__((always_inline)) uint32_t float_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static inline __attribute__((always_inline)) double bits_double(uint64_t u)
{
	double x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static inline __attribute__((always_inline)) uint64_t double_bits(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

/* max|x| in the order of bits, in which infinity is above all numbers and NaN above infinity. */
static inline __attribute__((always_inline)) float bits_max(size_t n, const float x[n])
{
	uint32_t max = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t u = float_bits(x[i]) & 0x7fffffff;

		max = u > max ? u : max;
	}
	return bits_float(max);
}
#endif
