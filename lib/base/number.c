/* SPDX-License-Identifier: GPL-3.0-or-later */
/* number.c -- see number.h; strtod() and strtoumax() also accept blanks, signs, hexadecimal and "nan" */
#include "base/number.h"
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *number_size(const char *text, size_t *value)
{
	uintmax_t v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	errno = 0;
	v = strtoumax(text, &end, 10);
	if (errno || v > SIZE_MAX)
		return NULL;
	*value = (size_t)v;
	return end;
}

const char *number_suffixed(const char *text, size_t *value)
{
	size_t v = 0;
	const char *end = number_size(text, &v);
	int shift = 0;

	if (end && *end && strchr("KMG", *end))
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	if (!end || v > SIZE_MAX >> shift)
		return NULL;
	*value = v << shift;
	return end;
}

const char *number_real(const char *text, double *value)
{
	const char *digits = text + (*text == '-');
	char *end;

	if (!isdigit((unsigned char)digits[*digits == '.']) ||
	    (*digits && tolower((unsigned char)digits[1]) == 'x'))
		return NULL;
	*value = strtod(text, &end);
	return isfinite(*value) ? end : NULL;
}

/* A text of at most DBL_DIG digits survives the conversion to a normal double and back; DBL_DECIMAL_DIG
 * digits reproduce any double. */
char *number_text(double x, char text[NUMBER_CHARS])
{
	for (int digits = fabs(x) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
		double y;

		snprintf(text, NUMBER_CHARS, "%.*g", digits, x);
		y = strtod(text, NULL);
		if (!(y < x) && !(y > x))
			break;
	}
	return text;
}

char *number_text_float(float x, char text[NUMBER_CHARS])
{
	for (int digits = 1; digits <= FLT_DECIMAL_DIG; digits++) {
		float y;

		snprintf(text, NUMBER_CHARS, "%.*g", digits, (double)x);
		y = strtof(text, NULL);
		if (!(y < x) && !(y > x))
			break;
	}
	return text;
}
