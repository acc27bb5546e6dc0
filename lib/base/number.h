/* SPDX-License-Identifier: GPL-3.0-or-later */
/* number.h -- numbers in option values: plain decimal, nothing before them */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H
#include <stddef.h>

/* Both return what follows the number, or NULL where there is none or it does not fit. */
const char *number_size(const char *text, size_t *value);	/* digits */
const char *number_real(const char *text, double *value);	/* [-]digits[.digits][e5], finite */
#endif
