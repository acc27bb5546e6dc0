/* SPDX-License-Identifier: GPL-3.0-or-later */
/* casing.c -- see casing.h */
#include "text/casing.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "base/error.h"
#include "text/regex.h"
#include "text/utf8.h"

enum {
	LONGEST = 3,			/* code points that one becomes; times as many bytes */
	IOTA = 0x399, YPOGEGRAMMENI = 0x345, SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2,
};

/* Characters whose upper case is several: SpecialCasing.txt, without U+1F80 to U+1FAF. */
static const uint32_t several[][1 + LONGEST] = {
	{ 0xdf, 'S', 'S' }, { 0x149, 0x2bc, 'N' }, { 0x1f0, 'J', 0x30c },
	{ 0x390, 0x399, 0x308, 0x301 }, { 0x3b0, 0x3a5, 0x308, 0x301 }, { 0x587, 0x535, 0x552 },
	{ 0x1e96, 'H', 0x331 }, { 0x1e97, 'T', 0x308 }, { 0x1e98, 'W', 0x30a }, { 0x1e99, 'Y', 0x30a },
	{ 0x1e9a, 'A', 0x2be }, { 0x1f50, 0x3a5, 0x313 }, { 0x1f52, 0x3a5, 0x313, 0x300 },
	{ 0x1f54, 0x3a5, 0x313, 0x301 }, { 0x1f56, 0x3a5, 0x313, 0x342 }, { 0x1fb2, 0x1fba, IOTA },
	{ 0x1fb3, 0x391, IOTA }, { 0x1fb4, 0x386, IOTA }, { 0x1fb6, 0x391, 0x342 },
	{ 0x1fb7, 0x391, 0x342, IOTA }, { 0x1fbc, 0x391, IOTA }, { 0x1fc2, 0x1fca, IOTA },
	{ 0x1fc3, 0x397, IOTA }, { 0x1fc4, 0x389, IOTA }, { 0x1fc6, 0x397, 0x342 },
	{ 0x1fc7, 0x397, 0x342, IOTA }, { 0x1fcc, 0x397, IOTA }, { 0x1fd2, 0x399, 0x308, 0x300 },
	{ 0x1fd3, 0x399, 0x308, 0x301 }, { 0x1fd6, 0x399, 0x342 }, { 0x1fd7, 0x399, 0x308, 0x342 },
	{ 0x1fe2, 0x3a5, 0x308, 0x300 }, { 0x1fe3, 0x3a5, 0x308, 0x301 }, { 0x1fe4, 0x3a1, 0x313 },
	{ 0x1fe6, 0x3a5, 0x342 }, { 0x1fe7, 0x3a5, 0x308, 0x342 }, { 0x1ff2, 0x1ffa, IOTA },
	{ 0x1ff3, 0x3a9, IOTA }, { 0x1ff4, 0x38f, IOTA }, { 0x1ff6, 0x3a9, 0x342 },
	{ 0x1ff7, 0x3a9, 0x342, IOTA }, { 0x1ffc, 0x3a9, IOTA }, { 0xfb00, 'F', 'F' },
	{ 0xfb01, 'F', 'I' }, { 0xfb02, 'F', 'L' }, { 0xfb03, 'F', 'F', 'I' },
	{ 0xfb04, 'F', 'F', 'L' }, { 0xfb05, 'S', 'T' }, { 0xfb06, 'S', 'T' },
	{ 0xfb13, 0x544, 0x546 }, { 0xfb14, 0x544, 0x535 }, { 0xfb15, 0x544, 0x53b },
	{ 0xfb16, 0x54e, 0x546 }, { 0xfb17, 0x544, 0x53d },
};

static uint32_t simple(utf8proc_int32_t (*map)(utf8proc_int32_t), uint32_t c)
{
	return (uint32_t)map((utf8proc_int32_t)c);
}

static size_t upper(uint32_t c, uint32_t to[LONGEST])
{
	static const uint32_t bases[] = { 0x1f08, 0x1f28, 0x1f68 };
	size_t n = 0;

	if (c >= 0x1f80 && c < 0x1fb0) {
		to[0] = bases[(c - 0x1f80) / 16] + c % 8;
		to[1] = IOTA;
		return 2;
	}
	for (size_t i = 0; i < sizeof several / sizeof *several; i++)
		if (several[i][0] == c) {
			for (; n < LONGEST && several[i][1 + n]; n++)
				to[n] = several[i][1 + n];
			return n;
		}
	to[0] = simple(utf8proc_toupper, c);
	return 1;
}

/* Properties of characters: Cased and Case_Ignorable. */
struct properties { struct regex *cased, *ignorable; };

static bool has(const struct regex *property, const char *s)
{
	size_t begin, end;
	bool valid;

	return regex_find(property, utf8_character(s, 4, &valid), s, 0, &begin, &end);
}

/* Whether the first character that is not ignorable, before or from `at`, is a letter with case. */
static bool meets_cased(const struct properties *p, size_t n, const char *text, size_t at, bool before)
{
	bool valid;

	while (before ? at > 0 : at < n) {
		while (before && at && (text[--at] & 0xc0) == 0x80)
			;
		if (!has(p->ignorable, text + at))
			return has(p->cased, text + at);
		at += before ? 0 : utf8_character(text + at, n - at, &valid);
	}
	return false;
}

static size_t lower(const struct properties *p, size_t n, const char *text, size_t at, uint32_t to[LONGEST])
{
	const uint32_t c = utf8_value(text + at);

	to[0] = c == 0x130 ? 'i' : simple(utf8proc_tolower, c);
	to[1] = 0x307;
	if (c == SIGMA && meets_cased(p, n, text, at, true) && !meets_cased(p, n, text, at + 2, false))
		to[0] = FINAL_SIGMA;
	return c == 0x130 ? 2 : 1;
}

/* Title case of one character: of several in upper case, letters after a letter are in lower case. */
static size_t title(const struct properties *p, uint32_t c, uint32_t to[LONGEST])
{
	const uint32_t one = simple(utf8proc_totitle, c);
	const bool is_title = utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LT;
	size_t n = upper(c, to);
	bool after = false;

	if ((one != c && c != 0xdf) || n == 1 || is_title) {
		to[0] = one;
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		char s[4];
		const uint32_t is = to[i];

		utf8_put(s, is);
		if (after)
			to[i] = is == IOTA ? YPOGEGRAMMENI : simple(utf8proc_tolower, is);
		after |= has(p->cased, s);
	}
	return n;
}

char *casing_make(enum casing casing, size_t n, const char *text, size_t *length)
{
	struct properties p = { NULL, NULL };
	char *y = xalloc(LONGEST * n + 1, 1), *padded = xalloc(n + 4, 1);
	size_t k = 0;
	bool valid, after = false;

	memcpy(padded, text, n);	/* has() reads a whole character */
	if (casing != CASING_UPPER) {
		p.cased = regex_make("Unicode", "\\p{Cased}", DIALECT_PCRE2);
		p.ignorable = regex_make("Unicode", "\\p{Case_Ignorable}", DIALECT_PCRE2);
	}
	for (size_t i = 0; i < n; i += utf8_character(text + i, n - i, &valid)) {
		const uint32_t c = utf8_value(padded + i);
		uint32_t to[LONGEST];
		const size_t codes = casing == CASING_UPPER ? upper(c, to) : casing == CASING_LOWER || after ?
			lower(&p, n, padded, i, to) : title(&p, c, to);

		for (size_t j = 0; j < codes; j++)
			k += utf8_put(y + k, to[j]);
		if (casing == CASING_TITLE)
			after = has(p.cased, padded + i);
	}
	if (p.cased)
		regex_free(p.cased), regex_free(p.ignorable);
	free(padded);
	*length = k;
	return y;
}
