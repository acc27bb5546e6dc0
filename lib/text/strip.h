/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * strip.h -- white space (text/utf8.h) at the ends of a text, which is valid UTF-8
 */
#ifndef TEXT_STRIP_H
#define TEXT_STRIP_H
#include <stddef.h>

const char *strip_begin(const char *s);	/* the first character that is not white space, or the end */
size_t strip_end(const char *s);	/* bytes without the white space at the end */
char *strip(const char *s);		/* without both; free() it */
#endif
