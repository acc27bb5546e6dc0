/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cut.h -- cuts a workspace into arrays, each at a multiple of 64 bytes from its start
 *
 *	size_t at = 0;
 *
 *	u->sum = cut(base, &at, n, sizeof *u->sum);
 *	...
 *	return at;			the bytes of all arrays
 *
 * base NULL: only the size is wanted. Then all arrays are NULL; so is an array without elements.
 */
#ifndef BASE_CUT_H
#define BASE_CUT_H
#include <stddef.h>
#include "base/size.h"

enum { CUT_ALIGN = 64 };

static inline void *cut(char *base, size_t *at, size_t n, size_t size)
{
	char *y = base && n ? base + *at : NULL;

	*at += ceil_div(n * size, CUT_ALIGN) * CUT_ALIGN;
	return y;
}
#endif
