/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pack.c -- see pack.h */
#include "quant/pack.h"
#include <string.h>

enum { BLOCK = 32 };

size_t pack_words(int bits, size_t n)
{
	return (size_t)bits * ((n + BLOCK - 1) / BLOCK);
}

/* Where code n of five bits has its low four, and its top one. */
static inline int low_word(int n) { return n / 8; }
static inline int low_bit(int n) { return n / 2 % 4 * 4 + n % 2 * 16; }
static inline int top_bit(int n) { return 15 - n / 2 + n % 2 * 16; }

static void pack_five(uint32_t word[5], const uint8_t code[BLOCK])
{
	for (int n = 0; n < BLOCK; n++) {
		word[low_word(n)] |= (uint32_t)(code[n] & 15) << low_bit(n);
		word[4] |= (uint32_t)(code[n] >> 4 & 1) << top_bit(n);
	}
}

static void unpack_five(uint8_t code[BLOCK], const uint32_t word[5])
{
	for (int n = 0; n < BLOCK; n++)
		code[n] = (uint8_t)((word[low_word(n)] >> low_bit(n) & 15) | (word[4] >> top_bit(n) & 1) << 4);
}

/* The width of the plane that starts at a bit. */
static int plane(int bits, int from)
{
	int left = bits - from;

	return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

static void pack_planes(int bits, uint32_t word[], const uint8_t code[BLOCK])
{
	for (int from = 0, w; from < bits; from += w) {
		w = plane(bits, from);
		for (int n = 0; n < BLOCK; n++)
			word[from + n * w / 32] |= (code[n] >> from & ((1u << w) - 1)) << n * w % 32;
	}
}

static void unpack_planes(int bits, uint8_t code[BLOCK], const uint32_t word[])
{
	memset(code, 0, BLOCK);
	for (int from = 0, w; from < bits; from += w) {
		w = plane(bits, from);
		for (int n = 0; n < BLOCK; n++)
			code[n] |= (uint8_t)((word[from + n * w / 32] >> n * w % 32 & ((1u << w) - 1)) << from);
	}
}

void pack_row(int bits, size_t n, uint32_t word[], const uint8_t code[n])
{
	memset(word, 0, pack_words(bits, n) * sizeof *word);
	for (size_t i = 0; i < n; i += BLOCK, word += bits) {
		uint8_t block[BLOCK] = { 0 };

		memcpy(block, code + i, n - i < BLOCK ? n - i : BLOCK);
		if (bits == 5)
			pack_five(word, block);
		else
			pack_planes(bits, word, block);
	}
}

void pack_unrow(int bits, size_t n, uint8_t code[n], const uint32_t word[])
{
	for (size_t i = 0; i < n; i += BLOCK, word += bits) {
		uint8_t block[BLOCK];

		if (bits == 5)
			unpack_five(block, word);
		else
			unpack_planes(bits, block, word);
		memcpy(code + i, block, n - i < BLOCK ? n - i : BLOCK);
	}
}
