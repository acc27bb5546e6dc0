/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * capitalize.h -- the first character of a text in title case, all others in lower case
 *
 * The result is that of Python's str.capitalize(): full case mappings (ß becomes Ss), and a sigma at the end
 * of a word becomes ς.
 *
 * Source: The Unicode Standard 15.0, section 3.13, and SpecialCasing.txt.
 */
#ifndef TEXT_CAPITALIZE_H
#define TEXT_CAPITALIZE_H

char *capitalize(const char *s);	/* s: valid UTF-8; free() it */
#endif
