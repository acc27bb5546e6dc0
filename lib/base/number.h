/* SPDX-License-Identifier: GPL-3.0-or-later */
/* number.h -- numbers as text: read from option values, and written so that they read back the same */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H
#include <stddef.h>

/* At the start of the text, without blanks. Both return what follows the number, or NULL where there is none
 * or it does not fit. */
const char *number_size(const char *text, size_t *value);	/* digits */
const char *number_real(const char *text, double *value);	/* [-]digits[.digits][e5], finite */

enum { NUMBER_CHARS = 32 };
/* The number in as few digits as strtod(), or strtof(), reads back as the same one; returns text. */
char *number_text(double x, char text[NUMBER_CHARS]);
char *number_text_float(float x, char text[NUMBER_CHARS]);
#endif
