/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * weighted.h -- a text that knows which bytes of the original its bytes stand for
 *
 * Internal to lib/text. Every byte has a weight, the number of bytes of the original text that it stands
 * for, so that the length of a token is known whatever has been done to the text: inserted bytes weigh 0, and
 * the first byte of a replacement weighs as much as all that it replaces. The sum is the original's length.
 */
#ifndef TEXT_WEIGHTED_H
#define TEXT_WEIGHTED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weighted {
	size_t n, capacity;
	char *text;
	uint16_t *weight;
	size_t room;		/* bytes that it may have, beyond which `name` is refused; 0: any number */
	const char *name;	/* of the tokenizer, for messages */
};

/* Limit for the bytes that a tokenizer's steps make of a text of n: more are taken for growth without end. */
size_t weighted_room(size_t n);
_Noreturn void weighted_refuse(const char *name);	/* a tokenizer that makes more */

/* Valid UTF-8, a part of a weighted text. */
struct piece {
	size_t n;
	const char *text;
	const uint16_t *weight;	/* NULL: every byte counts one */
	bool first;		/* it is the start of the whole text */
};

void weighted_reserve(struct weighted *b, size_t n);	/* memory for n more bytes; dies without room */
/* Appends n bytes that together stand for `weight` bytes of the text; the first byte gets that weight. */
void weighted_put(struct weighted *b, size_t n, const char *s, size_t weight);
void weighted_copy(struct weighted *b, struct piece from);	/* appends */
/* Appends a text, U+FFFD for each sequence of bytes that is not valid UTF-8 (utf8.h). */
void weighted_mend(struct weighted *b, size_t n, const char text[n]);
void weighted_swap(struct weighted *a, struct weighted *b);
void weighted_free(struct weighted *b);
struct piece weighted_piece(const struct weighted *b, bool first);

struct piece piece_part(struct piece p, size_t begin, size_t end);
size_t piece_weight(struct piece p);	/* bytes of the original */
#endif
