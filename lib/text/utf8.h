/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * utf8.h -- characters of UTF-8, and what stands for bytes that are none
 *
 * Internal to lib/text. Source: The Unicode Standard 15.0, section 3.9: table 3-7 (well-formed sequences),
 * and "U+FFFD Substitution of Maximal Subparts", which Python's bytes.decode(errors='replace') follows too.
 */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd"	/* U+FFFD */

/*
 * Bytes of the character at the start of s, n > 0 bytes. Not valid: of the longest beginning of a character
 * that stands there, or 1; one U+FFFD stands for them.
 */
size_t utf8_character(const char *s, size_t n, bool *valid);
size_t utf8_valid(const char *s, size_t n);	/* how many bytes from the start on are valid */
uint32_t utf8_value(const char *s);		/* of a valid character */
size_t utf8_put(char to[4], uint32_t value);	/* its bytes; returns how many */
#endif
