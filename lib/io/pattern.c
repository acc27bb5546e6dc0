/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pattern.c -- see pattern.h */
#include "io/pattern.h"
#include <string.h>
#include "base/error.h"

static struct pattern parse(const char *text)
{
	size_t n = strlen(text);

	if (!strcmp(text, "*"))
		return (struct pattern){ PATTERN_ALL, 0, text };
	if (n >= 2 && !strcmp(text + n - 2, "/#"))
		return (struct pattern){ PATTERN_NUMBERED, n - 2, text };
	return (struct pattern){ PATTERN_PATH, n, text };
}

struct pattern *pattern_list(const char *const text[], size_t *n)
{
	struct pattern *list = NULL;

	for (*n = 0; text && text[*n]; ++*n) {
		list = xgrow(list, *n + 1, sizeof *list);
		list[*n] = parse(text[*n]);
	}
	return list;
}

enum pattern_match pattern_match(const struct pattern *p, const char *path, const char **number)
{
	size_t n = strlen(path), digits;

	if (n < p->length)
		return strncmp(path, p->path, n) || p->path[n] != '/' ? MATCH_NONE : MATCH_LEADS;
	if (strncmp(path, p->path, p->length) || (path[p->length] && path[p->length] != '/' && p->length))
		return MATCH_NONE;
	if (p->kind != PATTERN_NUMBERED)
		return MATCH_WITHIN;
	path += p->length;
	if (!*path)
		return MATCH_LEADS;
	digits = strspn(path + 1, "0123456789");
	if (!digits || (path[1 + digits] && path[1 + digits] != '/'))
		return MATCH_NONE;
	*number = path + 1;
	return MATCH_WITHIN;
}
