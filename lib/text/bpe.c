/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bpe.c -- see bpe.h
 *
 * A heap has the candidates, ordered by rank and position. A candidate whose pair has changed is dropped
 * when it is taken from the heap. The time is O(n log n), even for a word that cannot be cut.
 *
 * If a whole text is one word, as in the style of SentencePiece, it is cut between two characters that no
 * merge joins. The ids are the same, and each span is short. If a text has many words, most are repeated:
 * after MANY tokens a table, of 4 MB, keeps the tokens of short words. Of words with equal hashes it keeps
 * the last one.
 */
#include "text/bpe.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/utf8.h"

struct symbol {
	int32_t id;
	uint32_t previous, next;	/* UINT32_MAX: none */
	uint32_t bytes;			/* of the word */
	bool gone;
};

struct candidate { int32_t rank; uint32_t at; int32_t id; };

enum { KNOWN_WORDS = 1 << 15, KNOWN_BYTES = 60, KNOWN_TOKENS = 12, MANY = 2048 };

/* A word and its tokens; length 0: none. */
struct known {
	int32_t id[KNOWN_TOKENS];
	char text[KNOWN_BYTES];
	uint8_t bytes[KNOWN_TOKENS], length, tokens;
};

struct coder {
	const struct bpe *bpe;
	const char *name;
	struct encoding out;
	size_t capacity, skipped;
	struct symbol *symbol;
	size_t symbols, max_symbols;
	struct candidate *heap;
	size_t heaps, max_heaps;
	size_t unknown_bytes;		/* of unknown characters that will become one token */
	bool unknown;
	struct piece word;
	size_t done;			/* bytes of the word that have tokens */
	struct known *known, next;	/* next: tokens so far; UINT8_MAX: too many */
};

struct coder *coder_make(const struct bpe *bpe, const char *name)
{
	struct coder *c = xalloc(1, sizeof *c);

	c->bpe = bpe;
	c->name = name;
	return c;
}

void coder_token(struct coder *c, int32_t id, size_t weight)
{
	if (c->out.n == c->capacity) {
		c->capacity += c->capacity / 2 + 256;
		c->out.id = xgrow(c->out.id, c->capacity, sizeof *c->out.id);
		c->out.bytes = xgrow(c->out.bytes, c->capacity, sizeof *c->out.bytes);
	}
	weight += c->skipped;
	c->skipped = 0;
	if (weight > UINT16_MAX)
		die("%s: token %zu (id %d) stands for %zu bytes of the text, expected at most %d",
			c->name, c->out.n, id, weight, UINT16_MAX);
	c->out.id[c->out.n] = id;
	c->out.bytes[c->out.n++] = (uint16_t)weight;
}

void coder_skip(struct coder *c, size_t weight)
{
	c->skipped += weight;
}

struct encoding coder_end(struct coder *c)
{
	struct encoding out = c->out;

	if (out.n && c->skipped) {
		c->out.n--;
		coder_token(c, out.id[out.n - 1], out.bytes[out.n - 1]);
	}
	free(c->symbol);
	free(c->heap);
	free(c->known);
	free(c);
	return out;
}

static bool before(struct candidate a, struct candidate b)
{
	return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(struct coder *c, uint32_t left, uint32_t right)
{
	const struct merge *m = merges_slot(&c->bpe->merges, c->symbol[left].id, c->symbol[right].id);
	struct candidate x = { m->rank, left, m->id };
	size_t i;

	if (m->rank < 0)
		return;
	if (c->heaps == c->max_heaps)
		c->heap = xgrow(c->heap, c->max_heaps = 2 * c->max_heaps + 64, sizeof *c->heap);
	for (i = c->heaps++; i && before(x, c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = x;
}

static struct candidate pop(struct coder *c)
{
	struct candidate top = c->heap[0], x = c->heap[--c->heaps];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < c->heaps; i = child) {
		child += child + 1 < c->heaps && before(c->heap[child + 1], c->heap[child]);
		if (!before(c->heap[child], x))
			break;
		c->heap[i] = c->heap[child];
	}
	c->heap[i] = x;
	return top;
}

/* Appends the next token of the word, for `bytes` of its bytes. */
static void put_part(struct coder *c, int32_t id, size_t bytes)
{
	struct known *k = &c->next;

	coder_token(c, id, piece_weight(piece_part(c->word, c->done, c->done + bytes)));
	c->done += bytes;
	if (k->tokens < KNOWN_TOKENS && bytes <= KNOWN_BYTES) {
		k->id[k->tokens] = id;
		k->bytes[k->tokens++] = (uint8_t)bytes;
	} else {
		k->tokens = UINT8_MAX;
	}
}

/* Merges the symbols, lowest rank first, and appends the resulting tokens. */
static void flush(struct coder *c)
{
	struct symbol *s = c->symbol;
	size_t n = c->symbols;

	for (size_t i = 1; i < n; i++)
		push(c, (uint32_t)i - 1, (uint32_t)i);
	while (c->heaps) {
		struct candidate x = pop(c);
		struct symbol *left = s + x.at, *right;
		const struct merge *m;

		if (left->gone || left->next == UINT32_MAX)
			continue;
		right = s + left->next;
		m = merges_slot(&c->bpe->merges, left->id, right->id);
		if (m->rank < 0 || m->id != x.id)	/* the pair has changed since */
			continue;
		left->id = x.id;
		left->bytes += right->bytes;
		left->next = right->next;
		right->gone = true;
		if (left->next != UINT32_MAX) {
			s[left->next].previous = x.at;
			push(c, x.at, left->next);
		}
		if (left->previous != UINT32_MAX)
			push(c, left->previous, x.at);
	}
	for (size_t i = 0; i < n; i++)
		if (!s[i].gone)
			put_part(c, s[i].id, s[i].bytes);
	c->symbols = 0;
}

static void put_symbol(struct coder *c, int32_t id, size_t bytes)
{
	struct symbol *s;

	if (c->symbols == c->max_symbols)
		c->symbol = xgrow(c->symbol, c->max_symbols = 2 * c->max_symbols + 64, sizeof *c->symbol);
	if (bytes > UINT32_MAX || c->symbols >= UINT32_MAX - 1)
		die("%s: the text has 4 GiB in a row that cannot be cut", c->name);
	s = c->symbol + c->symbols;
	*s = (struct symbol){ id, c->symbols ? (uint32_t)c->symbols - 1 : UINT32_MAX, UINT32_MAX,
		(uint32_t)bytes, false };
	if (c->symbols)
		s[-1].next = (uint32_t)c->symbols;
	c->symbols++;
}

static void put_unknown(struct coder *c)
{
	if (c->unknown)
		put_symbol(c, c->bpe->unknown, c->unknown_bytes);
	c->unknown = false;
	c->unknown_bytes = 0;
}

static bool has_byte_tokens(const struct bpe *b, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (b->byte[(unsigned char)s[i]] < 0)
			return false;
	return b->fallback;
}

/* Adds a character of n bytes as a symbol, as byte tokens, or as unknown. */
static void put_character(struct coder *c, size_t n, const char *s)
{
	const struct bpe *b = c->bpe;
	int32_t id = words_find(&b->vocab, s, n);

	if (id >= 0) {
		put_unknown(c);
		put_symbol(c, id, n);
	} else if (has_byte_tokens(b, n, s)) {
		put_unknown(c);
		for (size_t i = 0; i < n; i++)
			put_symbol(c, b->byte[(unsigned char)s[i]], 1);
	} else if (b->unknown >= 0) {
		if (!b->fuse_unknown)
			put_unknown(c);
		c->unknown = true;
		c->unknown_bytes += n;
	} else {
		die("%s: has neither a token for '%.*s' nor an unknown token", c->name, (int)n, s);
	}
}

static void merge_word(struct coder *c)
{
	const struct bpe *b = c->bpe;
	const char *s = c->word.text;
	size_t n = c->word.n;
	int32_t id = b->ignore_merges ? words_find(&b->vocab, s, n) : NONE;
	uint64_t last = 0;

	if (id >= 0) {
		put_part(c, id, n);
		return;
	}
	for (size_t i = 0, length; i < n; i += length) {
		bool valid;
		uint64_t here;

		length = utf8_character(s + i, n - i, &valid);
		here = text_hash(s + i, length);
		if (c->symbols && !b->uncut && !c->unknown && !seams_have(b->seam, last, here))
			flush(c);
		put_character(c, length, s + i);
		last = here;
	}
	put_unknown(c);
	flush(c);
}

void coder_word(struct coder *c, struct piece word)
{
	struct known *k = NULL;

	if (word.n <= KNOWN_BYTES && (c->known || c->out.n > MANY)) {
		if (!c->known)
			c->known = xalloc(KNOWN_WORDS, sizeof *c->known);
		k = c->known + text_hash(word.text, word.n) % KNOWN_WORDS;
		if (k->length == word.n && !memcmp(k->text, word.text, word.n)) {
			for (size_t i = 0, at = 0; i < k->tokens; at += k->bytes[i++])
				coder_token(c, k->id[i],
					piece_weight(piece_part(word, at, at + k->bytes[i])));
			return;
		}
	}
	c->word = word;
	c->done = 0;
	c->next.tokens = 0;
	merge_word(c);
	if (k && c->next.tokens <= KNOWN_TOKENS) {
		c->next.length = (uint8_t)word.n;
		memcpy(c->next.text, word.text, word.n);
		*k = c->next;
	}
}
