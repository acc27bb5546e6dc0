/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unicode.c -- see unicode.h */
#include "text/unicode.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "base/error.h"
#include "text/utf8.h"

enum {
	MARKS = 256,
	EXPANSION = 18,		/* most code points that one decomposes into (U+FDFA) */
	MAX = (MARKS + 1) * EXPANSION,
};

/* Whether a code point may combine with the one before it: a mark, a Hangul vowel or final, or one that
 * decomposes to one. */
static bool joins(uint32_t c)
{
	utf8proc_category_t category;

	if (c < 0x300)
		return false;
	if ((c >= 0x1160 && c <= 0x11ff) || (c >= 0xff9e && c <= 0xffdc))
		return true;
	category = utf8proc_category((utf8proc_int32_t)c);
	return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
		category == UTF8PROC_CATEGORY_ME;
}

/* The length in bytes of a character and the marks after it. */
static size_t cluster(struct piece p)
{
	size_t n = 0;
	bool valid;

	for (size_t i = 0; n < p.n && i <= MARKS && (!i || joins(utf8_value(p.text + n))); i++)
		n += utf8_character(p.text + n, p.n - n, &valid);
	return n;
}

static void put_codes(struct weighted *to, struct piece from, size_t n, const utf8proc_int32_t code[n])
{
	char text[4 * MAX];
	size_t length = 0;

	*text = '\0';	/* n > 0 */
	for (size_t i = 0; i < n; i++)
		length += utf8_put(text + length, (uint32_t)code[i]);
	if (length == from.n && !memcmp(text, from.text, length))
		weighted_copy(to, from);
	else
		weighted_put(to, length, text, piece_weight(from));
}

void unicode_normalize(struct weighted *to, struct piece from, enum unicode_form form)
{
	static const utf8proc_option_t options[] = {
		[UNICODE_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
		[UNICODE_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
		[UNICODE_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
		[UNICODE_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT };
	utf8proc_int32_t code[MAX];

	for (size_t i = 0, n; i < from.n; i += n) {
		struct piece rest = piece_part(from, i, from.n), p;
		utf8proc_ssize_t got;

		/* ASCII is unchanged, except for its last character before non-ASCII */
		for (n = 0; n < rest.n && !(rest.text[n] & 0x80); n++)
			;
		n -= n && n < rest.n;
		if (n) {
			weighted_copy(to, piece_part(rest, 0, n));
			continue;
		}
		n = cluster(rest);
		p = piece_part(rest, 0, n);
		got = utf8proc_decompose((const utf8proc_uint8_t *)p.text, (utf8proc_ssize_t)n, code, MAX,
			options[form]);
		if (got > 0 && got <= MAX)
			got = utf8proc_normalize_utf32(code, got, options[form]);
		if (got <= 0 || got > MAX)
			die("utf8proc cannot normalize the text: %s",
				got < 0 ? utf8proc_errmsg(got) : "too long");
		put_codes(to, p, (size_t)got, code);
	}
}

void unicode_lower(struct weighted *to, struct piece from)
{
	for (size_t i = 0, n; i < from.n; i += n) {
		bool valid;
		utf8proc_int32_t code[2] = { 0, 0x307 };
		uint32_t c;

		n = utf8_character(from.text + i, from.n - i, &valid);
		c = utf8_value(from.text + i);
		code[0] = c == 0x130 ? 'i' : utf8proc_tolower((utf8proc_int32_t)c);
		put_codes(to, piece_part(from, i, i + n), c == 0x130 ? 2 : 1, code);
	}
}
