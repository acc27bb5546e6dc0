/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unicode.h -- normalization forms and lower case, by utf8proc
 *
 * Internal to lib/text. Source: Unicode Standard Annex 15, "Unicode Normalization Forms".
 */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H
#include "text/weighted.h"

enum unicode_form { UNICODE_NFC, UNICODE_NFD, UNICODE_NFKC, UNICODE_NFKD };

/*
 * Append a text in the normalization form, or in lower case, character by character. A character and the
 * marks that follow it are one unit; if it changes, the first byte of the result has the weight of the
 * whole unit. A run of more than 256 marks is normalized in groups of 256, since the time to sort marks
 * grows with the square of their number.
 */
void unicode_normalize(struct weighted *to, struct piece from, enum unicode_form form);
void unicode_lower(struct weighted *to, struct piece from);
#endif
