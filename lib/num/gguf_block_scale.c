/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_block_scale.c -- blocks of q6_k and iq4_nl: groups of 16 or 32 with a scale; see gguf_block.h */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "num/gguf_block_private.h"

enum { SMALL = 16, Q6_K_BYTES = 210 };	/* weights of a group of q6_k */

/* The extreme weight of each group, with its sign; 0 if all are below the smallest. */
static inline __attribute__((always_inline)) void extremes(const struct lanes *v, size_t n, float x[LANES])
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		float most = 0;

		x[l] = 0;
		for (size_t i = 0; i < n; i++) {
			const float a = fabsf(v->x[i][l]);

			x[l] = a > most ? v->x[i][l] : x[l];
			most = a > most ? a : most;
		}
		x[l] = most < smallest ? 0 : x[l];
	}
}

/*
 * Low nibbles, upper two bits, 16 scales, d. A block has two halves of 128 numbers. Number 32 g + j of a half
 * has its low bits in byte 32 (g mod 2) + j of 64 (low nibble for g < 2), and its upper bits in byte j of 32,
 * from bit 2 g.
 */
void q6_k_part(float y[GROUP], const uint8_t x[], size_t part)
{
	const size_t half = part / 4, g = part % 4;
	const uint8_t *low = x + 64 * half + GROUP * (g % 2), *high = x + 128 + GROUP * half;
	const uint8_t *scale = x + 192 + 2 * part;
	const float d = half_f16_at(x + 208);

	for (size_t j = 0; j < GROUP; j++) {
		const int q = (low[j] >> g / 2 * 4 & 15) | (high[j] >> 2 * g & 3) << 4;

		y[j] = d * (float)(int8_t)scale[j / 16] * (float)(q - 32);
	}
}

/* Codes from -32 to 31 in v->code. */
static inline __attribute__((always_inline)) void round_q6_k(struct lanes *v, const float inverse[LANES])
{
	for (size_t i = 0; i < SMALL; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = clamp(nearest(inverse[l] * v->x[i][l]), -32, 31);
}

/* The scales of groups of 16, and codes from -32 to 31. A group of small weights has scale 0, codes -32. */
CLONES(static, void, fit_q6_k, (struct lanes *v, float scale[LANES]), (v, scale))
{
	float most[LANES], best[LANES] = { 0 }, inverse[LANES] = { 0 };

	extremes(v, SMALL, most);
	for (int k = 0; k < 19; k++) {	/* first without a change, then from -9 to 9 tenths */
		const float change = k ? 0.1f * (float)(k - (k < 10 ? 10 : 9)) : 0;
		float qx[LANES] = { 0 }, qq[LANES] = { 0 }, by[LANES];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			by[l] = most[l] != 0 ? -(32 + change) / most[l] : 0;
		round_q6_k(v, by);
		for (size_t i = 0; i < SMALL; i++)
			#pragma omp simd
			for (size_t l = 0; l < LANES; l++) {
				const float code = v->code[i][l], w = v->weight[i][l];

				qx[l] += w * v->x[i][l] * code;
				qq[l] += w * code * code;
			}
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const bool better = !k || (qq[l] > 0 && qx[l] * qx[l] > best[l] * qq[l]);
			const float s = qq[l] != 0 ? qx[l] / qq[l] : 0;

			scale[l] = better ? s : scale[l];
			best[l] = better ? s * qx[l] : best[l];
			inverse[l] = better ? by[l] : inverse[l];
		}
	}
	round_q6_k(v, inverse);
	for (size_t i = 0; i < SMALL; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = most[l] != 0 ? v->code[i][l] : -32;
}

/* Writes codes from 0 to 63: low nibbles and upper two bits. */
static void put_q6_k(uint8_t *y, const uint8_t code[BLOCK])
{
	uint8_t *high = y + BLOCK / 2;

	for (size_t half = 0; half < 2; half++, code += 128, y += 64, high += GROUP)
		for (size_t j = 0; j < GROUP; j++) {
			const unsigned a = code[j], b = code[j + 32], c = code[j + 64], d = code[j + 96];

			y[j] = (uint8_t)((a & 15) | (c & 15) << 4);
			y[j + GROUP] = (uint8_t)((b & 15) | (d & 15) << 4);
			high[j] = (uint8_t)(a >> 4 | b >> 4 << 2 | c >> 4 << 4 | d >> 4 << 6);
		}
}

/* Sixteen groups are a block. */
static void make_q6_k(uint8_t *y, const float *x, const float *importance)
{
	float w[BLOCK], scale[LANES] = { 0 }, most = 0, inverse, d;
	uint8_t code[BLOCK];
	struct lanes v;

	for (size_t i = 0; i < BLOCK; i++)
		w[i] = importance ? importance[i] : x[i] * x[i];
	load(&v, SMALL, LANES, x, w);
	fit_q6_k(&v, scale);
	for (size_t g = 0; g < LANES; g++)	/* NaN, of sums that overflow, stays */
		most = fabsf(scale[g]) > fabsf(most) || isnan(scale[g]) ? scale[g] : most;
	memset(y, 0, Q6_K_BYTES);
	if (fabsf(most) < smallest)
		return;
	inverse = -128 / most;
	d = put_half(y + Q6_K_BYTES - 2, 1 / inverse);
	for (size_t g = 0; g < LANES; g++) {
		const float s = clamp(nearest(inverse * scale[g]), -128, 127), step = d * s;

		y[192 + g] = (uint8_t)(int8_t)s;
		for (size_t i = 0; i < SMALL; i++) {
			const float q = step != 0 ? clamp(nearest(x[g * SMALL + i] / step), -32, 31) :
				v.code[i][g];

			code[g * SMALL + i] = (uint8_t)(q + 32);
		}
	}
	put_q6_k(y, code);
}

void gguf_block_search_q6_k(const struct format *f, size_t n, uint8_t *y, const float *x,
	const float *importance)
{
	(void)f;
	for (size_t i = 0; i < n; i += BLOCK, y += Q6_K_BYTES)
		make_q6_k(y, x + i, importance ? importance + i : NULL);
}

static const float levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

/* d, then nibbles: byte j has number j in its low bits and number j + 16 in its high bits. */
void iq4_nl_part(float y[GROUP], const uint8_t x[], size_t part)
{
	const float d = half_f16_at(x);

	(void)part;
	for (size_t j = 0; j < GROUP; j++)
		y[j] = d * levels[j < GROUP / 2 ? x[2 + j] & 15 : x[2 + j - GROUP / 2] >> 4];
}

/* The nearest level, the upper one of two that are equally near; and its number. */
static inline __attribute__((always_inline)) float nearest_level(float x)
{
	float y = levels[0];

	#pragma GCC unroll 15
	for (size_t k = 0; k < 15; k++)
		y = x >= (levels[k] + levels[k + 1]) / 2 ? levels[k + 1] : y;
	return y;
}

static inline __attribute__((always_inline)) float nearest_number(float x)
{
	float y = 0;

	#pragma GCC unroll 15
	for (size_t k = 0; k < 15; k++)
		y = x >= (levels[k] + levels[k + 1]) / 2 ? (float)(k + 1) : y;
	return y;
}

/* The scales of blocks of 32, and codes. */
CLONES(static, void, fit_iq4_nl, (struct lanes *v, float scale[LANES]), (v, scale))
{
	float most[LANES], best[LANES] = { 0 }, inverse[LANES];

	extremes(v, GROUP, most);
	for (int k = 0; k < 16; k++) {	/* first without a change, then from -7 to 7 */
		float qx[LANES] = { 0 }, qq[LANES] = { 0 }, by[LANES];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			by[l] = most[l] == 0 ? 0 : k ? ((float)(k - 8) + levels[0]) / most[l] :
				1 / (-most[l] / levels[0]);
		for (size_t i = 0; i < GROUP; i++)
			#pragma omp simd
			for (size_t l = 0; l < LANES; l++) {
				const float q = nearest_level(by[l] * v->x[i][l]), w = v->weight[i][l];

				qx[l] += w * q * v->x[i][l];
				qq[l] += w * q * q;
			}
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const bool better = !k || (qq[l] > 0 && qx[l] * qx[l] > best[l] * qq[l]);
			const float s = most[l] != 0 && qq[l] > 0 ? qx[l] / qq[l] : 0;

			scale[l] = better ? s : scale[l];
			best[l] = better ? s * qx[l] : best[l];
		}
	}
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		inverse[l] = scale[l] != 0 ? 1 / scale[l] : 0;
	for (size_t i = 0; i < GROUP; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = nearest_number(inverse[l] * v->x[i][l]);
}

void gguf_block_search_iq4_nl(const struct format *f, size_t n, uint8_t *y, const float *x,
	const float *importance)
{
	float w[MOST_AT_ONCE], scale[LANES] = { 0 };
	struct lanes v;

	(void)f;
	for (size_t i = 0; importance && i < n; i += GROUP)
		weigh(GROUP, w + i, x + i, importance + i);
	for (size_t i = 0; !importance && i < n; i++)
		w[i] = x[i] * x[i];
	load(&v, GROUP, n / GROUP, x, w);
	fit_iq4_nl(&v, scale);
	for (size_t k = 0; k < n / GROUP; k++, y += 2 + GROUP / 2) {
		put_half(y, scale[k]);
		for (size_t i = 0; i < GROUP / 2; i++)
			y[2 + i] = (uint8_t)((unsigned)v.code[i][k] |
				(unsigned)v.code[i + GROUP / 2][k] << 4);
	}
}
