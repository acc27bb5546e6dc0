/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vocabulary.c -- hash tables of tokens, merges and seams; see vocabulary.h */
#include "text/vocabulary.h"
#include <string.h>
#include "base/error.h"
#include "text/utf8.h"

enum { SEAM_BITS = 20 };

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

uint64_t text_hash(const char *s, size_t n)
{
	uint64_t h = n;

	for (; n >= 8; s += 8, n -= 8) {
		uint64_t w;

		memcpy(&w, s, 8);
		h = mix(h ^ w);
	}
	for (size_t i = 0; i < n; i++)
		h = h << 8 ^ h >> 56 ^ (unsigned char)s[i];
	return mix(h);
}

static size_t table_size(size_t n)
{
	size_t size = 16;

	while (size < 2 * n)
		size *= 2;
	return size;
}

struct words words_make(size_t n)
{
	size_t size = table_size(n);

	return (struct words){ size - 1, xalloc(size, sizeof(struct word)) };
}

static struct word *words_slot(const struct words *w, const char *s, size_t n)
{
	size_t i = text_hash(s, n) & w->mask;

	while (w->slot[i].text && (w->slot[i].length != n || memcmp(w->slot[i].text, s, n)))
		i = (i + 1) & w->mask;
	return w->slot + i;
}

int32_t words_find(const struct words *w, const char *s, size_t n)
{
	const struct word *slot = words_slot(w, s, n);

	return slot->text ? slot->id : NONE;
}

void words_put(struct words *w, const char *s, size_t n, int32_t id)
{
	*words_slot(w, s, n) = (struct word){ s, (uint32_t)n, id };
}

struct merges merges_make(size_t n)
{
	size_t size = table_size(n);
	struct merges m = { size - 1, xalloc(size, sizeof(struct merge)) };

	for (size_t i = 0; i < size; i++)
		m.slot[i].rank = NONE;
	return m;
}

struct merge *merges_slot(const struct merges *m, int32_t left, int32_t right)
{
	size_t i = mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right) & m->mask;

	while (m->slot[i].rank >= 0 && (m->slot[i].left != left || m->slot[i].right != right))
		i = (i + 1) & m->mask;
	return m->slot + i;
}

static size_t seam_bit(uint64_t left, uint64_t right)
{
	return mix(left + 3 * right) >> (64 - SEAM_BITS);
}

uint64_t *seams_make(void)
{
	return xalloc(((size_t)1 << SEAM_BITS) / 64, sizeof(uint64_t));
}

void seams_put(uint64_t *seam, const char *left, size_t n, const char *right, size_t m)
{
	size_t last = n - 1, bit;	/* start of the last character of `left` */
	bool valid;

	while (last && n - last < 4 && (left[last] & 0xc0) == 0x80)
		last--;
	bit = seam_bit(text_hash(left + last, n - last), text_hash(right, utf8_character(right, m, &valid)));
	seam[bit / 64] |= (uint64_t)1 << bit % 64;
}

bool seams_have(const uint64_t *seam, uint64_t left, uint64_t right)
{
	size_t bit = seam_bit(left, right);

	return seam[bit / 64] >> bit % 64 & 1;
}
