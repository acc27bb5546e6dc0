/* SPDX-License-Identifier: GPL-3.0-or-later */
/* names.c -- see names.h */
#include "base/names.h"
#include <stdlib.h>
#include "base/error.h"

char *names_of_rows(const void *rows, size_t size)
{
	const char *const *name = rows;
	char *y = xformat("%s", *name ? *name : "");

	while (*name && *(name = (const void *)((const char *)name + size))) {
		char *longer = xformat("%s, %s", y, *name);

		free(y);
		y = longer;
	}
	return y;
}
