/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * utf8.h -- characters of UTF-8, white space, and replacement of invalid bytes
 *
 * White space is what Python's str.isspace() calls so: characters of the general category Zs, or of the
 * bidirectional classes WS, B and S.
 *
 * Source: The Unicode Standard 15.0, section 3.9: table 3-7 (well-formed sequences),
 * and "U+FFFD Substitution of Maximal Subparts", which Python's bytes.decode(errors='replace') also
 * follows.
 */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd"	/* U+FFFD */

/* The number of bytes of the character at the start of s, of n > 0 bytes. If it is not valid: the number of
 * bytes that one U+FFFD replaces, that is the longest valid beginning of a character, or 1. */
size_t utf8_character(const char *s, size_t n, bool *valid);
size_t utf8_valid(const char *s, size_t n);	/* valid bytes from the start of s */
uint32_t utf8_value(const char *s);		/* of a valid character */
size_t utf8_length(const char *s);		/* bytes of a valid character */
size_t utf8_space(const char *s);		/* the same if it is white space; otherwise 0 */
size_t utf8_last(const char *s, size_t n);	/* where the last character of n > 0 valid bytes begins */
size_t utf8_mark(const char *s, size_t n);	/* bytes of a byte order mark at the start, or 0 */
size_t utf8_put(char to[4], uint32_t value);	/* stores its bytes; returns their number */
#endif
