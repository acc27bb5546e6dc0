/* SPDX-License-Identifier: GPL-3.0-or-later */
/* weighted.c -- see weighted.h */
#include "text/weighted.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/utf8.h"

/* Twice the growth of the longest decomposition (NFKD of U+FDFA, 11 times), written as two bytes each, with
 * strings between them. AT_MIN lets a short text have a long prefix. */
enum { LONGER = 64, AT_MIN = 1 << 16 };

size_t weighted_room(size_t n)
{
	return LONGER * n + AT_MIN;
}

void weighted_refuse(const char *name)
{
	die("%s: makes a text more than %d times as long; its steps may have no end", name, LONGER);
}

void weighted_reserve(struct weighted *b, size_t n)
{
	if (b->room && b->n + n > b->room)
		weighted_refuse(b->name);
	if (b->n + n <= b->capacity)
		return;
	b->capacity = b->capacity + b->capacity / 2 + n;
	b->text = xgrow(b->text, b->capacity, 1);
	b->weight = xgrow(b->weight, b->capacity, sizeof *b->weight);
}

void weighted_put(struct weighted *b, size_t n, const char *s, size_t weight)
{
	if (weight > UINT16_MAX)
		die("the normalizer joins more than %d bytes of the text into one", UINT16_MAX);
	weighted_reserve(b, n);
	memcpy(b->text + b->n, s, n);
	memset(b->weight + b->n, 0, n * sizeof *b->weight);
	b->weight[b->n] = (uint16_t)weight;
	b->n += n;
}

void weighted_copy(struct weighted *b, struct piece from)
{
	if (!from.n)
		return;
	weighted_reserve(b, from.n);
	memcpy(b->text + b->n, from.text, from.n);
	if (from.weight)
		memcpy(b->weight + b->n, from.weight, from.n * sizeof *b->weight);
	for (size_t i = 0; !from.weight && i < from.n; i++)
		b->weight[b->n + i] = 1;
	b->n += from.n;
}

void weighted_put_valid(struct weighted *b, size_t n, const char text[n])
{
	static const uint16_t weights[3][3] = { { 1, 0, 0 }, { 1, 1, 0 }, { 1, 1, 1 } };

	for (size_t i = 0; i < n;) {
		size_t good = utf8_valid(text + i, n - i), bad;
		bool valid;

		weighted_copy(b, (struct piece){ good, text + i, NULL, false });
		i += good;
		if (i == n)
			break;
		bad = utf8_character(text + i, n - i, &valid);
		weighted_copy(b, (struct piece){ 3, UTF8_REPLACEMENT, weights[bad - 1], false });
		i += bad;
	}
}

void weighted_swap(struct weighted *a, struct weighted *b)
{
	struct weighted c = *a;

	*a = *b;
	*b = c;
}

void weighted_free(struct weighted *b)
{
	free(b->text);
	free(b->weight);
}

struct piece weighted_piece(const struct weighted *b, bool first)
{
	return (struct piece){ b->n, b->text, b->weight, first };
}

struct piece piece_part(struct piece p, size_t begin, size_t end)
{
	return (struct piece){ end - begin, p.text + begin, p.weight ? p.weight + begin : NULL,
		p.first && !begin };
}

size_t piece_weight(struct piece p)
{
	size_t w = 0;

	if (!p.weight)
		return p.n;
	for (size_t i = 0; i < p.n; i++)
		w += p.weight[i];
	return w;
}
