/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pack.h -- packed codes of b = 1 to 8 bits: 32 codes in b words of 32 bits
 *
 * A row is padded with zeros to a multiple of 32 codes.
 *
 * Codes of five bits have the layout of FPE2M2 (section 4.3), in which a shift and a mask convert the low
 * four bits of two codes to two half-precision numbers. Code n = 2p + h, p = 4i + k, has its low four bits
 * in word i from bit 4k + 16h, and its highest bit in word 4 at bit 15 - p + 16h.
 *
 * Codes of other widths are divided into planes of 8, 4, 2 and 1 bits, low bits first. In a plane of w bits,
 * code n is in word ⌊n w/32⌋ from bit n w mod 32. So a word has eight codes of four bits.
 */
#ifndef QUANT_PACK_H
#define QUANT_PACK_H
#include <stddef.h>
#include <stdint.h>

size_t pack_words(int bits, size_t n);		/* words of a row of n codes: bits · ceil(n/32) */
void pack_row(int bits, size_t n, uint32_t word[], const uint8_t code[n]);
void pack_unrow(int bits, size_t n, uint8_t code[n], const uint32_t word[]);
#endif
