/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * strip.h -- white space at the ends of a text
 *
 * White space is what Python's str.isspace() calls so: characters of the general category Zs, or of the
 * bidirectional classes WS, B and S. Texts are valid UTF-8.
 */
#ifndef TEXT_STRIP_H
#define TEXT_STRIP_H
#include <stddef.h>

const char *strip_begin(const char *s);	/* the first character that is not white space, or the end */
size_t strip_end(const char *s);	/* bytes without the white space at the end */
char *strip(const char *s);		/* without both; free() it */
#endif
