/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bytelevel.h -- bytes as characters, the alphabet of GPT-2's vocabularies
 *
 * Internal to lib/text. A byte that is a printable character of Latin-1 (33 to 126, 161 to 172, 174 to 255)
 * is written as that character. The other 68 bytes are written as U+0100 and up, in their order: a space is
 * U+0120.
 *
 * Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019 (encoder.py of its
 * code).
 */
#ifndef TEXT_BYTELEVEL_H
#define TEXT_BYTELEVEL_H
#include "text/weighted.h"

/* Appends the character of each byte of a piece. */
void bytelevel_put(struct weighted *to, struct piece from);
/* The byte of the character at s, of n bytes; -1 if the character stands for none. */
int bytelevel_byte(const char *s, size_t n);
#endif
