/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * encode.c -- from a text to ids: added tokens, steps, BPE of each word; see encode.h
 *
 * BPE merges the pair of neighbours whose merge has the lowest rank, the leftmost of several, until no pair
 * has a merge. A heap holds the candidates by rank and place; one whose pair has changed meanwhile is
 * dropped when it is taken out. The time is O(n log n), even for a text that cannot be cut.
 *
 * Such tokenizers often have no words: a whole text is one. It is cut between two characters that no merge
 * joins, so the ids are the same, and each stretch is short.
 */
#include "text/encode.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/tokenizer.h"

struct symbol {
	int32_t id;
	uint32_t previous, next;	/* UINT32_MAX: none */
	uint32_t bytes;
	bool gone;
};

struct candidate { int32_t rank; uint32_t at; int32_t id; };

/* The state of one encoding. */
struct encoder {
	const struct tokenizer *t;
	bool special;
	struct encoding out;
	size_t capacity;
	struct symbol *symbol;
	size_t symbols, most_symbols;
	struct candidate *heap;
	size_t heaps, most_heaps;
	size_t unknown_bytes;	/* of the unknown characters that will be one token */
	bool unknown;
};

static void put_token(struct encoder *e, int32_t id, size_t bytes)
{
	if (e->out.n == e->capacity) {
		e->capacity += e->capacity / 2 + 256;
		e->out.id = xgrow(e->out.id, e->capacity, sizeof *e->out.id);
		e->out.bytes = xgrow(e->out.bytes, e->capacity, sizeof *e->out.bytes);
	}
	if (bytes > UINT16_MAX)
		die("%s: token %zu (id %d) stands for %zu bytes of the text, expected at most %d",
			e->t->name, e->out.n, id, bytes, UINT16_MAX);
	e->out.id[e->out.n] = id;
	e->out.bytes[e->out.n++] = (uint16_t)bytes;
}

static bool before(struct candidate a, struct candidate b)
{
	return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(struct encoder *e, uint32_t left, uint32_t right)
{
	const struct merge *m = merges_slot(&e->t->merges, e->symbol[left].id, e->symbol[right].id);
	struct candidate c = { m->rank, left, m->id };
	size_t i;

	if (m->rank < 0)
		return;
	if (e->heaps == e->most_heaps)
		e->heap = xgrow(e->heap, e->most_heaps = 2 * e->most_heaps + 64, sizeof *e->heap);
	for (i = e->heaps++; i && before(c, e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = c;
}

static struct candidate pop(struct encoder *e)
{
	struct candidate top = e->heap[0], c = e->heap[--e->heaps];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < e->heaps; i = child) {
		child += child + 1 < e->heaps && before(e->heap[child + 1], e->heap[child]);
		if (!before(e->heap[child], c))
			break;
		e->heap[i] = e->heap[child];
	}
	e->heap[i] = c;
	return top;
}

/* Merges the symbols, lowest rank first, and adds the tokens that result to the output. */
static void flush(struct encoder *e)
{
	struct symbol *s = e->symbol;
	size_t n = e->symbols;

	for (size_t i = 1; i < n; i++)
		push(e, (uint32_t)i - 1, (uint32_t)i);
	while (e->heaps) {
		struct candidate c = pop(e);
		struct symbol *left = s + c.at, *right;
		const struct merge *m;

		if (left->gone || left->next == UINT32_MAX)
			continue;
		right = s + left->next;
		m = merges_slot(&e->t->merges, left->id, right->id);
		if (m->rank < 0 || m->id != c.id)	/* the pair has changed since */
			continue;
		left->id = c.id;
		left->bytes += right->bytes;
		left->next = right->next;
		right->gone = true;
		if (left->next != UINT32_MAX) {
			s[left->next].previous = c.at;
			push(e, c.at, left->next);
		}
		if (left->previous != UINT32_MAX)
			push(e, left->previous, c.at);
	}
	for (size_t i = 0; i < n; i++)
		if (!s[i].gone)
			put_token(e, s[i].id, s[i].bytes);
	e->symbols = 0;
}

static void put_symbol(struct encoder *e, int32_t id, size_t bytes)
{
	struct symbol *s;

	if (e->symbols == e->most_symbols)
		e->symbol = xgrow(e->symbol, e->most_symbols = 2 * e->most_symbols + 64, sizeof *e->symbol);
	if (bytes > UINT32_MAX || e->symbols >= UINT32_MAX - 1)
		die("%s: the text has a stretch of 4 GiB without a place to cut it", e->t->name);
	s = e->symbol + e->symbols;
	*s = (struct symbol){ id, e->symbols ? (uint32_t)e->symbols - 1 : UINT32_MAX, UINT32_MAX,
		(uint32_t)bytes, false };
	if (e->symbols)
		s[-1].next = (uint32_t)e->symbols;
	e->symbols++;
}

static void put_unknown(struct encoder *e)
{
	if (e->unknown)
		put_symbol(e, e->t->unknown, e->unknown_bytes);
	e->unknown = false;
	e->unknown_bytes = 0;
}

static size_t sum(size_t n, const uint16_t weight[n])
{
	size_t w = 0;

	for (size_t i = 0; i < n; i++)
		w += weight[i];
	return w;
}

static bool has_byte_tokens(const struct tokenizer *t, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (t->byte[(unsigned char)s[i]] < 0)
			return false;
	return t->fallback;
}

/* A character of n bytes as a symbol, as byte tokens, or as unknown. */
static void put_character(struct encoder *e, size_t n, const char *s, const uint16_t weight[n], bool valid)
{
	const struct tokenizer *t = e->t;
	int32_t id = valid ? words_find(&t->vocab, s, n) : NONE;

	if (id >= 0) {
		put_unknown(e);
		put_symbol(e, id, sum(n, weight));
	} else if (has_byte_tokens(t, n, s)) {
		size_t rest = sum(n, weight);

		put_unknown(e);
		for (size_t i = 0; i < n; i++) {	/* each is one of the text, unless a step made it */
			size_t w = i + 1 < n && rest ? 1 : rest;

			put_symbol(e, t->byte[(unsigned char)s[i]], w);
			rest -= w;
		}
	} else if (t->unknown >= 0) {
		if (!t->fuse_unknown)
			put_unknown(e);
		e->unknown = true;
		e->unknown_bytes += sum(n, weight);
	} else {
		die("%s: there is neither a token for '%.*s' nor an unknown token", t->name,
			valid ? (int)n : 1, valid ? s : "?");
	}
}

static void encode_word(struct encoder *e, size_t n, const char *s, const uint16_t weight[n])
{
	const struct tokenizer *t = e->t;
	int32_t id = t->ignore_merges ? words_find(&t->vocab, s, n) : NONE;
	uint64_t last = 0;

	if (id >= 0) {
		put_token(e, id, sum(n, weight));
		return;
	}
	for (size_t i = 0, length; i < n; i += length) {
		bool valid;
		uint64_t here;

		length = utf8_character(s + i, n - i, &valid);
		here = text_hash(s + i, length);
		if (e->symbols && !t->uncut && !e->unknown && !seams_have(t->seam, last, here))
			flush(e);
		put_character(e, length, s + i, weight + i, valid);
		last = here;
	}
	put_unknown(e);
	flush(e);
}

static void encode_words(struct encoder *e, size_t n, const char *s, const uint16_t weight[n])
{
	size_t d = e->t->delimiter ? strlen(e->t->delimiter) : 0;

	while (n) {
		const char *next = d && n > d ? memmem(s + 1, n - 1, e->t->delimiter, d) : NULL;
		size_t length = next ? (size_t)(next - s) : n;

		encode_word(e, length, s, weight);
		s += length;
		weight += length;
		n -= length;
	}
}

/* Bytes of white space (Unicode's property) at s, or 0. */
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

/* The longest added token at the start of s; NONE if there is none. */
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

/* Adds the added tokens to the output, and calls piece for the text between them. weight NULL: every byte
 * counts one. */
static void split_added(struct encoder *e, const struct finder *f, size_t n, const char *s,
	const uint16_t *weight, bool first,
	void (*piece)(struct encoder *e, size_t n, const char *s, const uint16_t *weight, bool first))
{
	size_t done = 0, length;

	for (size_t i = 0; f->longest && i < n; i += length) {
		int32_t index = finder_match(f, n - i, s + i, &length);
		const struct added *a = e->t->added + index;
		size_t begin = i, end, w;

		if (index < 0)
			length = 1;
		if (index < 0 || (a->special && !e->special))
			continue;
		end = i + length;
		if (a->lstrip)
			for (size_t k = i; k-- > done;)	/* back over white space, by characters */
				if ((s[k] & 0xc0) != 0x80) {
					if (space(s + k, begin - k) != begin - k)
						break;
					begin = k;
				}
		while (a->rstrip && end < n && (w = space(s + end, n - end)))
			end += w;
		if (begin > done)
			piece(e, begin - done, s + done, weight ? weight + done : NULL, first && !done);
		put_token(e, a->id, weight ? sum(end - begin, weight + begin) : end - begin);
		done = end;
		length = end - i;
	}
	if (done < n)
		piece(e, n - done, s + done, weight ? weight + done : NULL, first && !done);
}

static void encode_normal(struct encoder *e, size_t n, const char *s, const uint16_t *weight, bool first)
{
	const struct steps *steps = &e->t->pretokenizer;
	struct weighted b = { 0 }, spare = { 0 };

	if (!steps->n) {
		encode_words(e, n, s, weight);
		return;
	}
	weighted_copy(&b, &(struct weighted){ .text = (char *)s, .weight = (uint16_t *)weight }, 0, n);
	steps_run(steps, &b, &spare, first);
	weighted_free(&spare);
	encode_words(e, b.n, b.text, b.weight);
	weighted_free(&b);
}

static void encode_raw(struct encoder *e, size_t n, const char *s, const uint16_t *weight, bool first)
{
	struct weighted b = { 0 }, spare = { 0 };

	(void)weight;
	weighted_reserve(&b, n);
	memcpy(b.text, s, n);
	for (b.n = 0; b.n < n; b.n++)
		b.weight[b.n] = 1;
	steps_run(&e->t->normalizer, &b, &spare, first);
	weighted_free(&spare);
	split_added(e, &e->t->normal, b.n, b.text, b.weight, first, encode_normal);
	weighted_free(&b);
}

struct encoding tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special)
{
	struct encoder e = { .t = t, .special = special };

	split_added(&e, &t->raw, n, text, NULL, true, encode_raw);
	free(e.symbol);
	free(e.heap);
	return e.out;
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
