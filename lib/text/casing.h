/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * casing.h -- upper, lower and title case of whole texts, as Python's str methods make them
 *
 * Internal to lib/text. One character may become several ("ß" in upper case is "SS"), and a final sigma has
 * a form of its own. In title case, a letter after a letter is lower case. The result is malloc'd.
 *
 * Source: The Unicode Standard 15.0, section 3.13 (default case conversion) and SpecialCasing.txt; single
 * characters by utf8proc.
 */
#ifndef TEXT_CASING_H
#define TEXT_CASING_H
#include <stddef.h>

enum casing { CASING_UPPER, CASING_LOWER, CASING_TITLE };

/* n bytes of valid UTF-8; *length: bytes of the result. */
char *casing_make(enum casing casing, size_t n, const char *text, size_t *length);
#endif
