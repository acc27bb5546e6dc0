/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_name.c -- see compressed_name.h */
#include "export/compressed_name.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

static bool begins(const char **name, const char *with)
{
	const size_t n = strlen(with);

	if (strncmp(*name, with, n))
		return false;
	*name += n;
	return true;
}

/* The name with dots escaped for a pattern. */
static char *escaped(const char *name, size_t length)
{
	char *y = xalloc(2 * length + 1, 1), *p = y;

	for (size_t i = 0; i < length; i++) {
		if (name[i] == '.')
			*p++ = '\\';
		*p++ = name[i];
	}
	return y;
}

/* The name from "layers." or "blocks." on, or its last word. */
static const char *tail_of(const char *name)
{
	const char *layers = strstr(name, "layers."), *blocks = strstr(name, "blocks.");

	return layers ? layers : blocks ? blocks : strrchr(name, '.') + 1;
}

char *compressed_name(const struct config *c, const char *name)
{
	const char *rest = name;
	const bool language = begins(&rest, "language_model.") | begins(&rest, "model.") ||
		!strncmp(name, "lm_head", strlen("lm_head"));
	char *stem, *tail, *y;

	if (!c->vision.class)
		return xformat("%s", name);
	if (!language)
		rest = tail_of(name);
	stem = escaped(name, strcspn(name, "."));
	tail = escaped(rest, strlen(rest));
	y = language ? xformat("re:(model\\.)?(language_model\\.)?(model\\.)?%s$", tail) :
		xformat("re:(.*\\.)?%s\\.(.*\\.)?%s$", stem, tail);
	free(stem);
	free(tail);
	return y;
}
