/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bytelevel.h -- bytes as characters, as GPT-2's vocabularies write them
 *
 * Internal to lib/text. A byte that Latin-1 prints (33 to 126, 161 to 172, 174 to 255) is that character; the
 * other 68 are U+0100 and up, in their order: a space is U+0120.
 *
 * Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019 (encoder.py of its
 * code).
 */
#ifndef TEXT_BYTELEVEL_H
#define TEXT_BYTELEVEL_H
#include "text/weighted.h"

/* Appends each byte of a piece as the character that stands for it. */
void bytelevel_put(struct weighted *to, struct piece from);
/* The byte that the character at s stands for, of n bytes, or -1. */
int bytelevel_byte(const char *s, size_t n);
#endif
