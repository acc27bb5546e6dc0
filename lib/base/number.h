/* SPDX-License-Identifier: GPL-3.0-or-later */
/* number.h -- numbers as text: parsing of option values, and the shortest text that reads back the same */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H
#include <stddef.h>

/* Parse a number at the start of the text; blanks are not skipped. Both return a pointer to the text after
 * the number, or NULL if there is no number or it is out of range. */
const char *number_size(const char *text, size_t *value);	/* digits */
const char *number_suffixed(const char *text, size_t *value);	/* digits[K|M|G], times 2^10, 2^20, 2^30 */
const char *number_real(const char *text, double *value);	/* [-]digits[.digits][e5], finite */

enum { NUMBER_CHARS = 40 };
/* The number in the fewest digits from which strtod(), or strtof(), reads the same number; returns text. */
char *number_text(double x, char text[NUMBER_CHARS]);
char *number_text_float(float x, char text[NUMBER_CHARS]);
#endif
