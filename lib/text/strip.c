/* SPDX-License-Identifier: GPL-3.0-or-later */
/* strip.c -- see strip.h */
#include "text/strip.h"
#include <string.h>
#include "base/error.h"
#include "text/utf8.h"

const char *strip_begin(const char *s)
{
	for (size_t n; (n = utf8_space(s)); s += n)
		;
	return s;
}

size_t strip_end(const char *s)
{
	size_t n = strlen(s);

	while (n && utf8_space(s + utf8_last(s, n)))
		n = utf8_last(s, n);
	return n;
}

char *strip(const char *s)
{
	const char *begin = strip_begin(s);

	return xformat("%.*s", (int)strip_end(begin), begin);
}
