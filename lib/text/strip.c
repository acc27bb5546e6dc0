/* SPDX-License-Identifier: GPL-3.0-or-later */
/* strip.c -- see strip.h */
#include "text/strip.h"
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>
#include "base/error.h"
#include "text/utf8.h"

static bool is_white(uint32_t c)
{
	const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);

	return p->category == UTF8PROC_CATEGORY_ZS || p->bidi_class == UTF8PROC_BIDI_CLASS_WS ||
		p->bidi_class == UTF8PROC_BIDI_CLASS_B || p->bidi_class == UTF8PROC_BIDI_CLASS_S;
}

const char *strip_begin(const char *s)
{
	bool valid;

	while (*s && is_white(utf8_value(s)))
		s += utf8_character(s, strlen(s), &valid);
	return s;
}

size_t strip_end(const char *s)
{
	size_t n = strlen(s);

	while (n) {
		size_t at = n - 1;

		while (at && (s[at] & 0xc0) == 0x80)
			at--;
		if (!is_white(utf8_value(s + at)))
			break;
		n = at;
	}
	return n;
}

char *strip(const char *s)
{
	const char *begin = strip_begin(s);

	return xformat("%.*s", (int)strip_end(begin), begin);
}
