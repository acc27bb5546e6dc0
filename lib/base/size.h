/* SPDX-License-Identifier: GPL-3.0-or-later */
/* size.h -- arithmetic of sizes: minimum, maximum, quotient rounded up */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H
#include <stddef.h>

static inline size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t max(size_t a, size_t b)
{
	return a > b ? a : b;
}

static inline size_t ceil_div(size_t a, size_t b)
{
	return (a + b - 1) / b;
}
#endif
