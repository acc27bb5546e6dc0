/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokenizer_encode.c -- from a text to ids; see tokenizer_private.h */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_private.h"
#include "text/utf8.h"

/* The state of one encoding. */
struct encoder {
	const struct tokenizer *t;
	bool special;
	struct coder *coder;
	struct cutter cutter;
	size_t room;			/* bytes that the normalizer may still write */
};

static void put_word(void *arg, struct piece word)
{
	coder_word(((struct encoder *)arg)->coder, word);
}

static void put_gap(void *arg, struct piece gap)
{
	coder_skip(((struct encoder *)arg)->coder, piece_weight(gap));
}

/* The length in bytes of a white space (Unicode's property) at s, or 0. */
static size_t space(const char *s, size_t n)
{
	static const char *const spaces[] = { "\t", "\n", "\v", "\f", "\r", " ", "\xc2\x85", "\u00a0",
		"\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
		"\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000" };

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (strlen(spaces[i]) <= n && !memcmp(s, spaces[i], strlen(spaces[i])))
			return strlen(spaces[i]);
	return 0;
}

/* The longest added token at the start of s, or NONE. */
static int32_t finder_match(const struct finder *f, size_t n, const char *s, size_t *length)
{
	if (!f->first[(unsigned char)*s])
		return NONE;
	for (size_t l = n < f->longest ? n : f->longest; l; l--) {
		int32_t index = f->length[l] ? words_find(&f->words, s, l) : NONE;

		if (index >= 0) {
			*length = l;
			return index;
		}
	}
	return NONE;
}

/* The start of the character before `end`; end > 0. */
static size_t character_before(const char *s, size_t end)
{
	do
		end--;
	while (end && (s[end] & 0xc0) == 0x80);
	return end;
}

/* Whether the characters on both sides of text[begin ... end) are not of words. */
static bool stands_alone(const struct tokenizer *t, struct piece p, size_t begin, size_t end)
{
	size_t from, to;

	if (begin) {
		size_t c = character_before(p.text, begin);

		if (regex_find(t->letter, begin - c, p.text + c, 0, &from, &to))
			return false;
	}
	if (end < p.n) {
		bool valid;
		size_t length = utf8_character(p.text + end, p.n - end, &valid);

		if (regex_find(t->letter, length, p.text + end, 0, &from, &to))
			return false;
	}
	return true;
}

/* Extends an added token, p.text[*begin ... *end), by the white space that belongs to it. */
static void take_space(const struct added *a, struct piece p, size_t done, size_t *begin, size_t *end)
{
	size_t w;

	while (a->lstrip && *begin > done) {
		size_t c = character_before(p.text, *begin);

		if (c < done || space(p.text + c, *begin - c) != *begin - c)
			break;
		*begin = c;
	}
	while (a->rstrip && *end < p.n && (w = space(p.text + *end, p.n - *end)))
		*end += w;
}

/* Appends the added tokens to the output, and passes the text between them on. */
static void split_added(struct encoder *e, const struct finder *f, struct piece p,
	void (*hand_on)(struct encoder *e, struct piece p))
{
	size_t done = 0, length;

	for (size_t i = 0; f->longest && i < p.n; i += length) {
		int32_t index = finder_match(f, p.n - i, p.text + i, &length);
		const struct added *a = e->t->added + index;
		size_t begin = i, end;

		if (index < 0)
			length = 1;
		if (index < 0 || (a->special && !e->special))
			continue;
		end = i + length;
		if (a->single_word && !stands_alone(e->t, p, begin, end))
			continue;
		take_space(a, p, done, &begin, &end);
		if (begin > done)
			hand_on(e, piece_part(p, done, begin));
		coder_token(e->coder, a->id, piece_weight(piece_part(p, begin, end)));
		done = end;
		length = end - i;
	}
	if (done < p.n)
		hand_on(e, piece_part(p, done, p.n));
}

static void encode_normal(struct encoder *e, struct piece p)
{
	cuts_run(&e->cutter, p);
}

static void encode_raw(struct encoder *e, struct piece p)
{
	struct weighted b = { .room = e->room, .name = e->t->name }, spare = b;

	if (!e->t->normalizer.n) {
		split_added(e, &e->t->normal, p, encode_normal);
		return;
	}
	weighted_copy(&b, p);
	steps_run(&e->t->normalizer, &b, &spare);
	weighted_free(&spare);
	e->room -= b.n - (b.n == e->room);	/* 0 would mean no limit */
	split_added(e, &e->t->normal, weighted_piece(&b, p.first), encode_normal);
	weighted_free(&b);
}

struct encoding tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special)
{
	struct encoder e = { .t = t, .special = special, .coder = coder_make(&t->bpe, t->name),
		.room = weighted_room(n) };
	struct weighted mended = { 0 };

	e.cutter = cuts_begin(&t->pretokenizer, put_word, put_gap, &e);
	e.cutter.name = t->name;
	e.cutter.room = e.room;
	if (utf8_valid(text, n) == n) {
		split_added(&e, &t->raw, (struct piece){ n, text, NULL, true }, encode_raw);
	} else {
		weighted_put_valid(&mended, n, text);
		split_added(&e, &t->raw, weighted_piece(&mended, true), encode_raw);
		weighted_free(&mended);
	}
	cuts_end(&e.cutter);
	return coder_end(e.coder);
}

void encoding_free(struct encoding *e)
{
	free(e->id);
	free(e->bytes);
	*e = (struct encoding){ 0 };
}

struct encoding encoding_of_bytes(size_t n, const char text[n])
{
	struct encoding k = { n, xgrow(NULL, n, sizeof *k.id), xgrow(NULL, n, sizeof *k.bytes) };

	for (size_t i = 0; i < n; i++) {
		k.id[i] = (unsigned char)text[i];
		k.bytes[i] = 1;
	}
	return k;
}
