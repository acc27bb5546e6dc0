/* SPDX-License-Identifier: GPL-3.0-or-later */
/* option_row.c -- see option_row.h */
#include "base/option_row.h"
#include <stdlib.h>
#include "base/error.h"

bool option_has_argument(const struct option_row *o)
{
	return o->type != OPTION_BOOL && o->type != OPTION_HELP && o->type != OPTION_VERSION;
}

static char *size_text(size_t v)
{
	for (int shift = 30; v && shift >= 20; shift -= 10)
		if (v % ((size_t)1 << shift) == 0)
			return xformat("%zu%c", v >> shift, shift == 30 ? 'G' : 'M');
	return xformat("%zu", v);
}

char *option_range(const struct option_row *o)
{
	char *max, *y;

	if (!(o->max > 0))
		return NULL;
	max = o->type == OPTION_SIZE ? size_text((size_t)o->max) : xformat("%.15g", o->max);
	y = xformat("%.15g to %s", o->min, max);
	free(max);
	return y;
}
