/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pack.c -- see pack.h */
#include "quant/pack.h"
#include <string.h>
#include "base/cpu.h"
#include "base/size.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BLOCK = 32 };

size_t pack_words(int bits, size_t n)
{
	return (size_t)bits * ceil_div(n, BLOCK);
}

/* Word and bit of the low four bits of code n of five bits, and bit of its highest bit in word 4. */
static inline int low_word(int n) { return n / 8; }
static inline int low_bit(int n) { return n / 2 % 4 * 4 + n % 2 * 16; }
static inline int max_bit(int n) { return 15 - n / 2 + n % 2 * 16; }

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

/* Low four bits of sixteen codes: halves of two words [0 2 | 4 6 | 1 3 | 5 7], each byte in 16 bits. */
AVX2 static inline __m128i low_fours(__m128i code)
{
	const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);

	code = _mm_shuffle_epi8(_mm_and_si128(code, _mm_set1_epi8(15)), order);
	return _mm_maddubs_epi16(code, _mm_set1_epi16(0x1001));
}

AVX2 static void pack_five_avx2(uint32_t word[5], const uint8_t code[BLOCK])
{
	const __m128i order = _mm_setr_epi8(14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3, 1);
	__m128i a = _mm_loadu_si128((const void *)code), b = _mm_loadu_si128((const void *)(code + 16));

	_mm_storeu_si128((void *)word, _mm_packus_epi16(low_fours(a), low_fours(b)));
	/* move the fifth bits to the highest: even codes from the last on, then odd codes */
	a = _mm_slli_epi16(_mm_shuffle_epi8(a, order), 3);
	b = _mm_slli_epi16(_mm_shuffle_epi8(b, order), 3);
	word[4] = (uint32_t)_mm_movemask_epi8(_mm_unpacklo_epi64(b, a)) |
		(uint32_t)_mm_movemask_epi8(_mm_unpackhi_epi64(b, a)) << 16;
}
#endif

static void pack_five(uint32_t word[5], const uint8_t code[BLOCK])
{
#ifdef __x86_64__
	if (cpu >= CPU_AVX2) {
		pack_five_avx2(word, code);
		return;
	}
#endif
	memset(word, 0, 5 * sizeof *word);
	for (int n = 0; n < BLOCK; n++) {
		word[low_word(n)] |= (uint32_t)(code[n] & 15) << low_bit(n);
		word[4] |= (uint32_t)(code[n] >> 4 & 1) << max_bit(n);
	}
}

static void unpack_five(uint8_t code[BLOCK], const uint32_t word[5])
{
	for (int n = 0; n < BLOCK; n++)
		code[n] = (uint8_t)((word[low_word(n)] >> low_bit(n) & 15) |
			(word[4] >> max_bit(n) & 1) << 4);
}

/* The width of the plane that starts at bit `from`. */
static int plane(int bits, int from)
{
	int left = bits - from;

	return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

static void pack_planes(int bits, uint32_t word[], const uint8_t code[BLOCK])
{
	memset(word, 0, (size_t)bits * sizeof *word);
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
			code[n] |= (uint8_t)((word[from + n * w / 32] >> n * w % 32 &
				((1u << w) - 1)) << from);
	}
}

void pack_row(int bits, size_t n, uint32_t word[], const uint8_t code[n])
{
	for (size_t i = 0; i < n; i += BLOCK, word += bits) {
		const uint8_t *block = code + i;
		uint8_t last[BLOCK] = { 0 };

		if (n - i < BLOCK)
			block = memcpy(last, block, n - i);
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
