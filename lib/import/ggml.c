/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ggml.c -- one row per type, one function per layout of blocks; see ggml.h */
#include "import/ggml.h"
#include <string.h>
#include "num/bits.h"
#include "num/gguf_block.h"
#include "num/half.h"

enum { SMALL = 32 };	/* numbers of a block */

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
		const float d = half_f16_at(x), m = has_m ? half_f16_at(x + 2) : 0;
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
		const float d = half_f16_at(x);

		for (int j = 0; j < SMALL; j++)
			y[j] = d * (float)(int8_t)x[2 + j];
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
	{ 12, "Q4_K", 256, 144, q4_k_decode, .storage = "q4_k" },
	{ 13, "Q5_K", 256, 176, q5_k_decode, .storage = "q5_k" },
	{ 14, "Q6_K", 256, 210, q6_k_decode, .storage = "q6_k" },
	{ 20, "IQ4_NL", 32, 18, iq4_nl_decode, .storage = "iq4_nl" },
	{ 39, "MXFP4", 32, 17, mxfp4, .bits = 4, .e2m1 = true },
	/* known by name only */
	NAMED(9, "Q8_1"), NAMED(10, "Q2_K"), NAMED(11, "Q3_K"),
	NAMED(15, "Q8_K"), NAMED(16, "IQ2_XXS"), NAMED(17, "IQ2_XS"),
	NAMED(18, "IQ3_XXS"), NAMED(19, "IQ1_S"),
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
