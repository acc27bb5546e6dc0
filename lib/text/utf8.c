/* SPDX-License-Identifier: GPL-3.0-or-later */
/* utf8.c -- see utf8.h */
#include "text/utf8.h"
#include <string.h>
#include <utf8proc.h>

size_t utf8_character(const char *s, size_t n, bool *valid)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t length = *u < 0x80 ? 1 : *u < 0xc2 ? 0 : *u < 0xe0 ? 2 : *u < 0xf0 ? 3 : *u < 0xf5 ? 4 : 0;
	/* the second byte excludes overlong forms, surrogates, and values beyond U+10FFFF */
	unsigned char low = *u == 0xe0 ? 0xa0 : *u == 0xf0 ? 0x90 : 0x80;
	unsigned char high = *u == 0xed ? 0x9f : *u == 0xf4 ? 0x8f : 0xbf;
	size_t have = 1;

	for (; have < length && have < n && u[have] >= low && u[have] <= high; have++)
		low = 0x80, high = 0xbf;
	*valid = have == length;
	return have;
}

size_t utf8_valid(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint64_t eight;
		bool valid;
		size_t length;

		for (; n - i >= 8; i += 8) {
			memcpy(&eight, s + i, 8);
			if (eight & 0x8080808080808080u)
				break;
		}
		if (i == n)
			break;
		length = utf8_character(s + i, n - i, &valid);
		if (!valid)
			break;
		i += length;
	}
	return i;
}

uint32_t utf8_value(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (*u < 0x80)
		return *u;
	if (*u < 0xe0)
		return (*u & 0x1fu) << 6 | (u[1] & 0x3fu);
	if (*u < 0xf0)
		return (*u & 0xfu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
	return (*u & 7u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
}

size_t utf8_length(const char *s)
{
	const unsigned char first = (unsigned char)*s;

	return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t utf8_space(const char *s)
{
	const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)utf8_value(s));

	return p->category == UTF8PROC_CATEGORY_ZS || p->bidi_class == UTF8PROC_BIDI_CLASS_WS ||
		p->bidi_class == UTF8PROC_BIDI_CLASS_B || p->bidi_class == UTF8PROC_BIDI_CLASS_S ?
		utf8_length(s) : 0;
}

size_t utf8_last(const char *s, size_t n)
{
	while (--n && (s[n] & 0xc0) == 0x80)
		;
	return n;
}

size_t utf8_mark(const char *s, size_t n)
{
	static const char mark[] = "\xef\xbb\xbf";	/* U+FEFF */

	return n >= strlen(mark) && !memcmp(s, mark, strlen(mark)) ? strlen(mark) : 0;
}

size_t utf8_put(char to[4], uint32_t value)
{
	size_t n = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;

	for (size_t i = n; --i; value >>= 6)
		to[i] = (char)(0x80 | (value & 0x3f));
	to[0] = (char)(n == 1 ? value : (0xf00u >> n & 0xf0) | value);
	return n;
}
