/* SPDX-License-Identifier: GPL-3.0-or-later */
/* superblock.c -- formats and decoding; see superblock.h */
#include "num/superblock.h"
#include <string.h>
#include "base/size.h"
#include "num/half.h"

enum { PART = 32, GROUPS = SUPERBLOCK_GROUPS, BYTE = 8 };

static const float levels[16] = IQ4_NL_VALUES;

static float half_at(const uint8_t *x)
{
	uint16_t h;
	float y;

	memcpy(&h, x, sizeof h);
	half_widen(1, &y, &h, HALF_F16);
	return y;
}

/* The upper two bits of groups 4 to 7 are in the bytes of groups 0 to 3. */
void superblock_pair(const uint8_t x[], size_t g, int *s, int *b)
{
	if (g < GROUPS / 2) {
		*s = x[g] & 63;
		*b = x[g + 4] & 63;
	} else {
		*s = (x[g + 4] & 15) | x[g - 4] >> 6 << 4;
		*b = x[g + 4] >> 4 | x[g] >> 6 << 4;
	}
}

void superblock_put_pairs(uint8_t y[], const int s[GROUPS], const int b[GROUPS])
{
	for (size_t g = 0; g < GROUPS / 2; g++) {
		y[g] = (uint8_t)(s[g] | s[g + 4] >> 4 << 6);
		y[g + 4] = (uint8_t)(b[g] | b[g + 4] >> 4 << 6);
		y[g + 8] = (uint8_t)((s[g + 4] & 15) | (b[g + 4] & 15) << 4);
	}
}

/*
 * Group g of a block of d, m, scales and offsets, the fifth bits (bit g of byte j belongs to number j of
 * group g), and nibbles. A span of 32 bytes has two groups, the first one in the low bits.
 */
static inline void with_offset(float y[PART], const uint8_t x[], size_t g, bool fifth)
{
	const uint8_t *high = x + 16, *low = high + (fifth ? PART : 0) + g / 2 * PART;
	float scale, offset;
	int s, b;

	superblock_pair(x + 4, g, &s, &b);
	scale = half_at(x) * (float)s;
	offset = half_at(x + 2) * (float)b;
	for (size_t j = 0; j < PART; j++) {
		int q = low[j] >> g % 2 * 4 & 15;

		if (fifth)
			q |= (high[j] >> g & 1) << 4;
		y[j] = scale * (float)q - offset;
	}
}

static void q4_k(float y[PART], const uint8_t x[], size_t g)
{
	with_offset(y, x, g, false);
}

static void q5_k(float y[PART], const uint8_t x[], size_t g)
{
	with_offset(y, x, g, true);
}

/*
 * Low nibbles, upper two bits, 16 scales, d. A block has two halves of 128 numbers. Number 32 g + j of a half
 * has its low bits in byte 32 (g mod 2) + j of 64 (low nibble for g < 2), and its upper bits in byte j of 32,
 * from bit 2 g.
 */
static void q6_k(float y[PART], const uint8_t x[], size_t part)
{
	const size_t half = part / 4, g = part % 4;
	const uint8_t *low = x + 64 * half + PART * (g % 2), *high = x + 128 + PART * half;
	const uint8_t *scale = x + 192 + 2 * part;
	const float d = half_at(x + 208);

	for (size_t j = 0; j < PART; j++) {
		const int q = (low[j] >> g / 2 * 4 & 15) | (high[j] >> 2 * g & 3) << 4;

		y[j] = d * (float)(int8_t)scale[j / 16] * (float)(q - 32);
	}
}

/* d, then nibbles: byte j has number j in its low bits and number j + 16 in its high bits. */
static void iq4_nl(float y[PART], const uint8_t x[], size_t part)
{
	const float d = half_at(x);

	(void)part;
	for (size_t j = 0; j < PART; j++)
		y[j] = d * levels[j < PART / 2 ? x[2 + j] & 15 : x[2 + j - PART / 2] >> 4];
}

static const struct block {
	size_t columns, bytes;
	size_t half[2];			/* offsets of its half floats */
	void (*part)(float y[PART], const uint8_t x[], size_t part);	/* 32 numbers */
} blocks[] = {	/* by the number in the name, from 4 on, then iq4_nl */
	{ SUPERBLOCK_COLUMNS, 144, { 0, 2 }, q4_k }, { SUPERBLOCK_COLUMNS, 176, { 0, 2 }, q5_k },
	{ SUPERBLOCK_COLUMNS, SUPERBLOCK_BYTES, { 208, 208 }, q6_k },
	{ IQ4_NL_COLUMNS, 18, { 0, 0 }, iq4_nl },
};
enum { Q4_K, Q5_K, Q6_K, IQ4_NL };

static void decode_blocks(const struct block *b, size_t n, float y[], const uint8_t x[])
{
	for (size_t i = 0; i < n; i++, x += b->bytes)
		for (size_t k = 0; k < b->columns / PART; k++, y += PART)
			b->part(y, x, k);
}

void q4_k_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&blocks[Q4_K], n, y, x);
}

void q5_k_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&blocks[Q5_K], n, y, x);
}

void q6_k_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&blocks[Q6_K], n, y, x);
}

void iq4_nl_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&blocks[IQ4_NL], n, y, x);
}

static const struct block *block_of(const struct format *f)
{
	return &blocks[f->n ? f->n - 4 : IQ4_NL];
}

/* The scales that a layer may have besides are all 1, as the form has its own. */
static void decode(const struct format *f, size_t row, size_t i, size_t n, float w[n], const uint8_t code[],
	const float scale[n], const uint8_t zero[n])
{
	const struct block *b = block_of(f);
	float part[PART];

	(void)row, (void)scale, (void)zero;
	for (size_t j = 0, some; j < n; j += some) {
		const size_t at = (i + j) % b->columns, from = at % PART;

		some = min(PART - from, n - j);
		b->part(part, code + (i + j) / b->columns * b->bytes, at / PART);
		memcpy(w + j, part + from, some * sizeof *w);
	}
}

static bool is_finite(const uint8_t half[2])
{
	return (half[1] & 0x7c) != 0x7c;
}

static bool valid(const struct format *f, const uint8_t code[])
{
	const struct block *b = block_of(f);

	return is_finite(code + b->half[0]) && is_finite(code + b->half[1]);
}

const struct code_form superblock_form = { 1, SUPERBLOCK_COLUMNS, decode, valid, .has_scales = true };
const struct code_form iq4_nl_form = { 1, IQ4_NL_COLUMNS, decode, valid, .has_scales = true };

static bool fill(struct format *f)
{
	f->bits = (int)block_of(f)->bytes * BYTE;
	return true;
}

bool superblock_fill(struct format *f)
{
	return f->n >= 4 && f->n <= 6 && fill(f);
}

bool iq4_nl_fill(struct format *f)
{
	return fill(f);
}
