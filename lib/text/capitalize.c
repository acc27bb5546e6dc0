/* SPDX-License-Identifier: GPL-3.0-or-later */
/* capitalize.c -- see capitalize.h */
#include "text/capitalize.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "base/error.h"
#include "text/regex.h"
#include "text/utf8.h"

enum { TITLE = 3 };	/* most characters that one becomes */

/* Characters whose title case has several characters, and is not that of the parts of their canonical
 * decomposition. */
static const struct title { uint32_t c, title[TITLE]; } titles[] = {
	{ 0xdf, { 'S', 's' } }, { 0x149, { 0x2bc, 'N' } }, { 0x587, { 0x535, 0x582 } },
	{ 0x1e9a, { 'A', 0x2be } }, { 0x1fb2, { 0x1fba, 0x345 } }, { 0x1fb4, { 0x386, 0x345 } },
	{ 0x1fc2, { 0x1fca, 0x345 } }, { 0x1fc4, { 0x389, 0x345 } }, { 0x1ff2, { 0x1ffa, 0x345 } },
	{ 0x1ff4, { 0x38f, 0x345 } }, { 0xfb00, { 'F', 'f' } }, { 0xfb01, { 'F', 'i' } },
	{ 0xfb02, { 'F', 'l' } }, { 0xfb03, { 'F', 'f', 'i' } }, { 0xfb04, { 'F', 'f', 'l' } },
	{ 0xfb05, { 'S', 't' } }, { 0xfb06, { 'S', 't' } }, { 0xfb13, { 0x544, 0x576 } },
	{ 0xfb14, { 0x544, 0x565 } }, { 0xfb15, { 0x544, 0x56b } }, { 0xfb16, { 0x54e, 0x576 } },
	{ 0xfb17, { 0x544, 0x56d } },
};

static uint32_t simple_title(uint32_t c)
{
	return (uint32_t)utf8proc_totitle((utf8proc_int32_t)c);
}

/* Returns the number of characters. */
static size_t title_of(uint32_t c, uint32_t title[TITLE])
{
	utf8proc_int32_t part[TITLE + 1];
	utf8proc_ssize_t n;
	int boundary = 0;

	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		if (titles[i].c == c) {
			memcpy(title, titles[i].title, sizeof titles[i].title);
			return title[2] ? 3 : 2;
		}
	title[0] = simple_title(c);
	if (title[0] != c || utf8proc_category((utf8proc_int32_t)c) != UTF8PROC_CATEGORY_LL)
		return 1;
	n = utf8proc_decompose_char((utf8proc_int32_t)c, part, TITLE + 1, UTF8PROC_DECOMPOSE, &boundary);
	if (n < 2 || n > TITLE)
		return 1;
	for (utf8proc_ssize_t i = 0; i < n; i++)
		title[i] = i ? (uint32_t)part[i] : simple_title((uint32_t)part[i]);
	return (size_t)n;
}

/* Whether the sigma at `at` of n bytes is the last letter of a word. */
static bool sigma_ends(size_t n, const char *s, size_t at)
{
	struct regex *before = regex_make("capitalize",
		"\\p{Cased}(?<!\\p{Case_Ignorable})\\p{Case_Ignorable}*+\\z", DIALECT_PCRE2);
	struct regex *after = regex_make("capitalize", "\\G\\p{Case_Ignorable}*+\\p{Cased}", DIALECT_PCRE2);
	const size_t next = at + strlen("σ");
	size_t begin, end;
	const bool ends = regex_find(before, at, s, 0, &begin, &end) &&
		!regex_find(after, n, s, next, &begin, &end);

	regex_free(before), regex_free(after);
	return ends;
}

static size_t put_lower(char to[8], size_t n, const char *s, size_t at)
{
	enum { CAPITAL_I_WITH_DOT = 0x130, DOT_ABOVE = 0x307, SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2 };
	const uint32_t c = utf8_value(s + at);

	if (c == SIGMA && sigma_ends(n, s, at))
		return utf8_put(to, FINAL_SIGMA);
	if (c == CAPITAL_I_WITH_DOT) {
		*to = 'i';
		return 1 + utf8_put(to + 1, DOT_ABOVE);
	}
	return utf8_put(to, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

char *capitalize(const char *s)
{
	const size_t n = strlen(s);
	char *y = xalloc(4 * TITLE + 3 * n + 1, 1);
	size_t length = 0;
	bool valid;

	for (size_t at = 0; at < n; at += utf8_character(s + at, n - at, &valid))
		if (!at) {
			uint32_t title[TITLE];
			const size_t characters = title_of(utf8_value(s), title);

			for (size_t i = 0; i < characters; i++)
				length += utf8_put(y + length, title[i]);
		} else {
			length += put_lower(y + length, n, s, at);
		}
	y[length] = '\0';
	return y;
}
