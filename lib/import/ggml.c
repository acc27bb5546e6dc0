/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ggml.c -- one row per type, one function per layout of blocks; see ggml.h */
#include "import/ggml.h"
#include <string.h>
#include "num/bits.h"
#include "num/half.h"

enum { SMALL = 32, GROUPS = 8 };	/* numbers of a block, or of a group of K types; groups of a block */

static float half_at(const uint8_t *x)
{
	uint16_t h;
	float y;

	memcpy(&h, x, sizeof h);
	half_widen(1, &y, &h, HALF_F16);
	return y;
}

static void f32(size_t n, float y[], const uint8_t x[])
{
	memcpy(y, x, n * sizeof *y);
}

static void f16(size_t n, float y[], const uint8_t x[])
{
	half_widen(n, y, x, HALF_F16);
}

static void bf16(size_t n, float y[], const uint8_t x[])
{
	half_widen(n, y, x, HALF_BF16);
}

/*
 * Blocks of 32: d, m (optional), the fifth bits (optional), and nibbles. Byte j has number j in its low bits
 * and number j + 16 in its high bits.
 */
static inline void nibbles(size_t n, float y[], const uint8_t x[], bool fifth, bool has_m)
{
	for (size_t i = 0; i < n; i++, y += SMALL, x += SMALL / 2) {
		const float d = half_at(x), m = has_m ? half_at(x + 2) : 0;
		const int zero = has_m ? 0 : fifth ? 16 : 8;
		uint32_t high = 0;

		x += has_m ? 4 : 2;
		if (fifth) {
			memcpy(&high, x, sizeof high);
			x += sizeof high;
		}
		for (int j = 0; j < SMALL; j++) {
			int q = (j < SMALL / 2 ? x[j] & 15 : x[j - SMALL / 2] >> 4) |
				(int)(high >> j & 1) << 4;
			float v = d * (float)(q - zero);

			y[j] = has_m ? v + m : v;
		}
	}
}

static void q4_0(size_t n, float y[], const uint8_t x[])
{
	nibbles(n, y, x, false, false);
}

static void q4_1(size_t n, float y[], const uint8_t x[])
{
	nibbles(n, y, x, false, true);
}

static void q5_0(size_t n, float y[], const uint8_t x[])
{
	nibbles(n, y, x, true, false);
}

static void q5_1(size_t n, float y[], const uint8_t x[])
{
	nibbles(n, y, x, true, true);
}

static void q8_0(size_t n, float y[], const uint8_t x[])
{
	for (size_t i = 0; i < n; i++, y += SMALL, x += 2 + SMALL) {
		const float d = half_at(x);

		for (int j = 0; j < SMALL; j++)
			y[j] = d * (float)(int8_t)x[2 + j];
	}
}

/* Scale and offset of a group, 6 bits each, in 12 bytes. The upper two bits of groups 4 to 7 are in the bytes
 * of groups 0 to 3. */
static void scale_of(const uint8_t x[], int g, int *s, int *b)
{
	if (g < GROUPS / 2) {
		*s = x[g] & 63;
		*b = x[g + 4] & 63;
	} else {
		*s = (x[g + 4] & 15) | x[g - 4] >> 6 << 4;
		*b = x[g + 4] >> 4 | x[g] >> 6 << 4;
	}
}

/* Blocks of 8 groups: d, m, scales and offsets, the fifth bits (bit g of byte j belongs to number j of group
 * g), and nibbles. A span of 32 bytes has two groups, the first one in the low bits. */
static inline void super(size_t n, float y[], const uint8_t x[], bool fifth)
{
	for (size_t i = 0; i < n; i++) {
		const float d = half_at(x), m = half_at(x + 2);
		const uint8_t *scales = x + 4, *high = x + 16, *low = high + (fifth ? SMALL : 0);

		for (int g = 0; g < GROUPS; g++, y += SMALL) {
			int s, b;
			float scale, offset;

			scale_of(scales, g, &s, &b);
			scale = d * (float)s;
			offset = m * (float)b;
			for (int j = 0; j < SMALL; j++) {
				int q = low[g / 2 * SMALL + j] >> g % 2 * 4 & 15;

				if (fifth)
					q |= (high[j] >> g & 1) << 4;
				y[j] = scale * (float)q - offset;
			}
		}
		x = low + GGML_LENGTH / 2;
	}
}

static void q4_k(size_t n, float y[], const uint8_t x[])
{
	super(n, y, x, false);
}

static void q5_k(size_t n, float y[], const uint8_t x[])
{
	super(n, y, x, true);
}

/*
 * Low nibbles, upper two bits, 16 scales, d. A block has two halves of 128 numbers. Number 32 g + j of a half
 * has its low bits in byte 32 (g mod 2) + j of 64 (low nibble for g < 2), and its upper bits in byte j of 32,
 * from bit 2 g.
 */
static void q6_k(size_t n, float y[], const uint8_t x[])
{
	for (size_t i = 0; i < n; i++, x += 210) {
		const uint8_t *low = x, *high = x + 128, *scales = x + 192;
		const float d = half_at(x + 208);

		for (int k = 0; k < GGML_LENGTH; k++) {
			const int half = k / 128, g = k % 128 / 32, j = k % 32;
			const int q = (low[64 * half + 32 * (g % 2) + j] >> g / 2 * 4 & 15) |
				(high[32 * half + j] >> 2 * g & 3) << 4;

			*y++ = d * (float)(int8_t)scales[k / 16] * (float)(q - 32);
		}
	}
}

/* The grid is doubled and d halved, so that the smallest scale is a (subnormal) float32. */
static void mxfp4(size_t n, float y[], const uint8_t x[])
{
	static const int8_t grid[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

	for (size_t i = 0; i < n; i++, y += SMALL, x += 1 + SMALL / 2) {
		const uint32_t e = *x;
		const float d = bits_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);

		for (int j = 0; j < SMALL; j++)
			y[j] = d * (float)grid[j < SMALL / 2 ? x[1 + j] & 15 : x[1 + j - SMALL / 2] >> 4];
	}
}

#define NAMED(i, n) { .id = i, .name = n }
const struct ggml_type ggml_types[] = {
	{ GGML_F32, "F32", 1, 4, .decode = f32 }, { GGML_F16, "F16", 1, 2, .decode = f16 },
	{ GGML_BF16, "BF16", 1, 2, .decode = bf16 },
	{ 2, "Q4_0", 32, 18, q4_0, .bits = 4, .offset = 8, .max = 7 },
	{ 3, "Q4_1", 32, 20, q4_1, .bits = 4, .minimum = true },
	{ 6, "Q5_0", 32, 22, q5_0, .bits = 5, .offset = 16, .max = 15 },
	{ 7, "Q5_1", 32, 24, q5_1, .bits = 5, .minimum = true },
	{ GGML_Q8_0, "Q8_0", 32, 34, q8_0, .bits = 8, .max = 127 },
	{ 12, "Q4_K", 256, 144, .decode = q4_k }, { 13, "Q5_K", 256, 176, .decode = q5_k },
	{ 14, "Q6_K", 256, 210, .decode = q6_k },
	{ 39, "MXFP4", 32, 17, mxfp4, .bits = 4, .e2m1 = true },
	/* known by name only */
	NAMED(9, "Q8_1"), NAMED(10, "Q2_K"), NAMED(11, "Q3_K"),
	NAMED(15, "Q8_K"), NAMED(16, "IQ2_XXS"), NAMED(17, "IQ2_XS"),
	NAMED(18, "IQ3_XXS"), NAMED(19, "IQ1_S"), NAMED(20, "IQ4_NL"),
	NAMED(21, "IQ3_S"), NAMED(22, "IQ2_S"), NAMED(23, "IQ4_XS"),
	NAMED(24, "I8"), NAMED(25, "I16"), NAMED(26, "I32"),
	NAMED(27, "I64"), NAMED(28, "F64"), NAMED(29, "IQ1_M"),
	NAMED(34, "TQ1_0"), NAMED(35, "TQ2_0"), NAMED(40, "NVFP4"),
	{ .name = NULL },
};

const struct ggml_type *ggml_find(uint32_t id)
{
	for (const struct ggml_type *t = ggml_types; t->name; t++)
		if (t->id == id)
			return t;
	return NULL;
}
