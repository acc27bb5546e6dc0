/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pack.h -- codes of 1 to 8 bits in 32-bit words, 32 codes in as many words as they have bits
 *
 * A row is padded with zeros to a multiple of 32 codes. Five bits have FPE2M2's layout (section 4.3),
 * whose low four bits of two codes lie where a shift and a mask make two
 * half-precision numbers of them: code n = 2p + h, p = 4i + k has them in word i from bit 4k + 16h, and its
 * top bit in word 4 at 15 - p + 16h. Other widths are cut into planes of 8, 4, 2 and 1 bits, low bits
 * first; code n of a plane of w bits stands in the plane's word ⌊n w/32⌋ from bit n w mod 32. So four bits
 * are eight to a word.
 */
#ifndef QUANT_PACK_H
#define QUANT_PACK_H
#include <stddef.h>
#include <stdint.h>

size_t pack_words(int bits, size_t n);		/* of a row of n codes: bits · ceil(n/32) */
void pack_row(int bits, size_t n, uint32_t word[], const uint8_t code[n]);
void pack_unrow(int bits, size_t n, uint8_t code[n], const uint32_t word[]);
#endif
