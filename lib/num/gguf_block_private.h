/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_block_private.h -- shared by the files of gguf_block.h
 *
 * A search takes 16 groups at once, one in each lane of a vector, so that sums have the order of columns. It
 * tries inverse scales. Each gives codes by rounding, and these a scale (and minimum) of least squares. The
 * trial with the least weighted error is kept. Operations have the order in which they are written, as
 * CLONES() contracts none.
 *
 * Include this header after all others (num/clones.h).
 */
#ifndef NUM_GGUF_BLOCK_PRIVATE_H
#define NUM_GGUF_BLOCK_PRIVATE_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "num/format.h"
#include "num/half.h"
#include "num/clones.h"

enum {
	BLOCK = 256,			/* weights of the longest block */
	GROUP = 32,			/* weights that are decoded at once, and most that share a scale */
	LANES = 16,			/* groups of a search */
	MOST_AT_ONCE = LANES * GROUP	/* weights of a search */
};
static const float smallest = 1e-15f;	/* groups with smaller weights are 0 */

/* Part `part` of a block, as 32 numbers. */
typedef void gguf_block_decode_part(float y[GROUP], const uint8_t block[], size_t part);
gguf_block_decode_part q4_k_part, q5_k_part, q6_k_part, iq4_nl_part;

/* The blocks of n ≤ MOST_AT_ONCE weights. */
typedef void gguf_block_search(const struct format *f, size_t n, uint8_t *y, const float *x,
	const float *importance);
gguf_block_search gguf_block_search_offset, gguf_block_search_q6_k, gguf_block_search_iq4_nl;

/* Weights of 16 groups, their factors in the error, and codes. */
struct lanes {
	float x[GROUP][LANES], weight[GROUP][LANES], code[GROUP][LANES];
};

/* To the nearest integer, ties to even, for |x| < 2²². */
static inline float nearest(float x)
{
	const float shift = 0x1.8p23f;

	return (x + shift) - shift;
}

/* NaN becomes low. */
static inline float clamp(float x, float low, float high)
{
	x = x > low ? x : low;
	return x < high ? x : high;
}

/* Writes x as a half float, and returns that. */
static inline float put_half(uint8_t y[2], float x)
{
	uint16_t h;

	half_narrow(1, &h, &x, HALF_F16);
	memcpy(y, &h, sizeof h);
	return half_f16_at(y);
}

/* Writes groups of n weights to lanes; the rest of the lanes is 0. */
static inline void load(struct lanes *v, size_t n, size_t groups, const float *x, const float *weight)
{
	memset(v, 0, sizeof *v);
	for (size_t l = 0; l < groups; l++)
		for (size_t i = 0; i < n; i++) {
			v->x[i][l] = x[l * n + i];
			v->weight[i][l] = weight[l * n + i];
		}
}

static inline float squares(size_t n, const float x[n])
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

/* importance · √(σ² + x²) with σ² = 2 mean x². */
static inline void weigh(size_t n, float w[n], const float x[n], const float importance[n])
{
	const float sigma2 = 2 * squares(n, x) / (float)n;

	for (size_t i = 0; i < n; i++)
		w[i] = importance[i] * sqrtf(sigma2 + x[i] * x[i]);
}
#endif
