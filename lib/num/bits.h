/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bits.h -- a float as its 32 bits, and back
 */
#ifndef NUM_BITS_H
#define NUM_BITS_H
#include <stdint.h>
#include <string.h>

static inline float bits_float(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static inline uint32_t float_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}
#endif
