/* SPDX-License-Identifier: GPL-3.0-or-later */
/* setting.c -- see setting.h */
#include "model/setting.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"
#include "quant/linear.h"

void setting_format(struct format *f, const char *option, const char *name)
{
	if (!format_parse(f, name)) {
		char *closest = format_closest(name);

		misuse("--%s: there is no format '%s'; %s%s%sknown are %s", option, name,
			closest ? "did you mean " : "", closest ? closest : "", closest ? "? " : "",
			format_list());
	}
}

void setting_hint(const struct format *f, const char *option)
{
	if (format_hint(f))
		warn("--%s: %s is FPE2M2's format, with bias 0 and without infinities; FP8 of hardware is %s",
			option, f->name, format_hint(f));
}

long setting_group(const char *text)
{
	size_t g = 0;
	const char *end = number_size(text, &g);

	if (!strcmp(text, "channel"))
		return 0;
	if (!strcmp(text, "tensor"))
		return -1;
	if (!end || *end || !g || g > LINEAR_COLUMNS)
		misuse("--group: '%s' is neither a number of columns, from 1 to %d, nor 'channel' nor 'tensor'",
			text, LINEAR_COLUMNS);
	return (long)g;
}
