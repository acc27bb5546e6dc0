/* SPDX-License-Identifier: GPL-3.0-or-later */
/* setting.c -- see setting.h */
#include "model/setting.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"
#include "quant/linear.h"
#include "text/utf8.h"

void setting_utf8(void *to, const char *option, const char *text)
{
	if (!*text)
		misuse("--%s is empty, expected a text", option);
	if (utf8_valid(text, strlen(text)) < strlen(text))
		misuse("--%s is not valid UTF-8", option);
	*(const char **)to = text;
}

/* grid: whether the option takes only formats with a grid. */
static void parse(void *format, const char *option, const char *text, bool grid)
{
	if (!format_parse(format, text)) {
		char *closest = format_closest(text);

		misuse("--%s: there is no format '%s'%s%s%s one of %s", option, text,
			closest ? "; did you mean " : "", closest ? closest : "",
			closest ? "? Expected" : ", expected", format_list(grid));
	}
}

void setting_storage(void *format, const char *option, const char *text)
{
	parse(format, option, text, false);
}

void setting_format(void *format, const char *option, const char *text)
{
	const struct format *f = format;

	parse(format, option, text, true);
	if (!format_has_grid(f))
		misuse("--%s: %s has no grid that numbers are rounded to, only codes of several weights; "
			"expected a format with one", option, f->name);
}

void setting_hint(const struct format *f, const char *option)
{
	if (format_hint(f))
		warn("--%s: %s is FPE2M2's format, with bias 0 and without infinities; "
			"the FP8 of hardware is %s", option, f->name, format_hint(f));
}

void setting_format_or_none(void *format, const char *option, const char *text)
{
	if (strcmp(text, "none"))
		setting_format(format, option, text);
	else
		*(struct format *)format = (struct format){ 0 };
}

bool setting_kv_parse(struct cache_format *f, const char *text)
{
	const size_t n = strcspn(text, ":");
	char *name = xformat("%.*s", (int)n, text);
	const char *end = "";
	bool known;

	*f = (struct cache_format){ .group = 0 };
	known = format_parse(&f->format, name) && format_has_grid(&f->format) &&
		!scale_kinds[f->format.scales].divided;
	f->group = (size_t)f->format.group;
	if (text[n])
		end = number_suffixed(text + n + 1, &f->group);
	free(name);
	return known && end && !*end && (!text[n] || f->group) && f->group <= LINEAR_MAX;
}

void setting_kv_format(void *format, const char *option, const char *text)
{
	struct cache_format *f = format;
	char *name = xformat("%.*s", (int)strcspn(text, ":"), text);
	struct format named;

	setting_format_or_none(&named, option, name);
	free(name);
	if (named.kind && scale_kinds[named.scales].divided)
		misuse("--%s: '%s' divides its scales by a number of the whole tensor, which tokens one by "
			"one do not have; expected a format such as mxfp4 or e2m1:16", option, text);
	if (!strcmp(text, "none"))
		*f = (struct cache_format){ .group = 0 };
	else if (!setting_kv_parse(f, text))
		misuse("--%s: '%s' is neither 'none' nor a format, alone or with a colon and a number of "
			"channels, from 1 to %d", option, text, LINEAR_MAX);
	f->given = true;
}

char *setting_kv_form(const void *format)
{
	const struct cache_format *f = format;

	if (!f->format.kind)
		return xformat("none");
	return f->group ? xformat("%s:%zu", f->format.name, f->group) : xformat("%s", f->format.name);
}

void setting_group(void *group, const char *option, const char *text)
{
	size_t columns = 0;
	const char *end = number_suffixed(text, &columns);
	const bool channel = !strcmp(text, "channel"), tensor = !strcmp(text, "tensor");

	if (!channel && !tensor && (!end || *end || !columns || columns > LINEAR_MAX))
		misuse("--%s: '%s' is neither a number of columns, from 1 to %d, nor 'channel' nor 'tensor'",
			option, text, LINEAR_MAX);
	*(long *)group = channel ? 0 : tensor ? -1 : (long)columns;
}

char *setting_group_form(const void *group)
{
	const long g = *(const long *)group;

	return g > 0 ? xformat("%ld", g) : xformat("%s", g ? "tensor" : "channel");
}
