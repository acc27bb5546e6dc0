/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * weighted.h -- a text with a map of its bytes to bytes of the original text
 *
 * Internal to lib/text. Every byte has a weight: the number of bytes of the original text that it replaces.
 * So the length of a token in the original is known after any step. An inserted byte has weight 0. The
 * first byte of a replacement has the weight of the whole replaced text. The weights sum up to the length
 * of the original.
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
	size_t room;		/* largest length, beyond it `name` is refused; 0: no limit */
	const char *name;	/* of the tokenizer, for messages */
};

/* The largest length that a tokenizer's steps may give to a text of n bytes; beyond it, growth is taken for
 * endless. */
size_t weighted_room(size_t n);
_Noreturn void weighted_refuse(const char *name);	/* fatal error of a tokenizer that makes more */

/* Valid UTF-8, a part of a weighted text. */
struct piece {
	size_t n;
	const char *text;
	const uint16_t *weight;	/* NULL: every byte has weight 1 */
	bool first;		/* the piece is the start of the whole text */
};

void weighted_reserve(struct weighted *b, size_t n);	/* allocates n more bytes; fatal error beyond room */
/* Appends n bytes that replace `weight` bytes of the original; the first byte gets that weight. */
void weighted_put(struct weighted *b, size_t n, const char *s, size_t weight);
void weighted_copy(struct weighted *b, struct piece from);	/* appends */
/* Appends a text; each sequence of bytes that is not valid UTF-8 becomes U+FFFD (utf8.h). */
void weighted_put_valid(struct weighted *b, size_t n, const char text[n]);
void weighted_swap(struct weighted *a, struct weighted *b);
void weighted_free(struct weighted *b);
struct piece weighted_piece(const struct weighted *b, bool first);

struct piece piece_part(struct piece p, size_t begin, size_t end);
size_t piece_weight(struct piece p);	/* bytes of the original */
#endif
